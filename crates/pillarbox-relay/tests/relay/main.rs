//! The relay's file, the pages that describe it, and its console.

mod console;
mod documentation;
mod file;
