//! Stores that need no database.
