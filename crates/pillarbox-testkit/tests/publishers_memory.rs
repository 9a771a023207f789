//! The publisher in memory against its port.

use std::process::ExitCode;

use pillarbox_testkit::publishers::{self, MemoryPublisherHarness};

fn main() -> ExitCode {
    publishers::run::<MemoryPublisherHarness>()
}
