//! The in-memory store against its port.

use std::process::ExitCode;

use pillarbox_testkit::{MemoryHarness, conformance};

fn main() -> ExitCode {
    conformance::run::<MemoryHarness>()
}
