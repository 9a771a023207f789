//! Every block of code in the guides is compiled, read by what it is for, or run; the others are named, with the reason. A block
//! that is in none of these classes fails the test in [`classes`].
#![allow(clippy::expect_used, clippy::panic, reason = "a test's helpers fail as the test does")]

#[path = "../../blocks.rs"]
mod blocks;

mod classes;
mod files;
mod harnesses;
mod shop;
mod statements;
