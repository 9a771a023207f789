//! The Rust of the guides within what it leaves out. It is compiled, not run.
#![allow(
    dead_code,
    missing_debug_implementations,
    unreachable_code,
    unreachable_pub,
    unused_imports,
    unused_mut,
    unused_variables,
    clippy::all,
    clippy::unimplemented,
    clippy::needless_pass_by_value,
    clippy::print_stdout,
    clippy::uninlined_format_args,
    reason = "a guide shows the part that matters"
)]

include!(concat!(env!("OUT_DIR"), "/harnesses.rs"));
