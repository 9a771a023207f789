//! The relay's file, and the pages that describe it.

mod documentation;
mod file;
