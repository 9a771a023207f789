//! The program under "First event" of the README, word for word; `build.rs` takes it from there.
#![allow(clippy::print_stdout, reason = "a program that shows what it does")]

include!(concat!(env!("OUT_DIR"), "/program.rs"));
