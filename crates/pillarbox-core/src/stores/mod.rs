//! Stores that need no database.

pub mod memory;
