//! The conformance suite of every publisher: one test for each behaviour that [`Publisher`](pillarbox_core::publisher::Publisher)
//! lists, tried on a broker.
//!
//! A publisher's crate calls it from a test target with `harness = false`:
//!
//! ```no_run
//! # use pillarbox_testkit::publishers::MemoryPublisherHarness as MyHarness;
//! fn main() -> std::process::ExitCode {
//!     pillarbox_testkit::publishers::run::<MyHarness>()
//! }
//! ```
//!
//! The usual arguments of a test binary work: a part of a name, `--list`, `--ignored`, `--test-threads`. One broker is
//! started for all tests of a run; each test has targets of its own, and a [`Link`] of its own to the broker, which it
//! cuts, refuses and stalls.
//!
//! For the tests that a publisher's crate writes itself there are a [`Proxy`] before any broker, a [`Server`] that is
//! killed and started again, and [`load_through`] that publishes while this happens.

mod check;
mod close;
mod cut;
mod drop;
mod harness;
mod keep;
mod link;
mod load;
mod memory;
mod messages;
mod publish;
mod refuse;
mod run;
mod server;

use std::process::ExitCode;

pub use harness::{Arrived, PublisherCapabilities, PublisherHarness};
pub use link::{Link, Proxy};
pub use load::{Confirmed, Load, load_through};
pub use memory::{Answer, MemoryLink, MemoryPublisher, MemoryPublisherHarness};
pub use messages::{message, messages};
pub use server::{Place, Server};

use run::{Case, Suite};

/// Runs the suite on a publisher, as the `main` of a test target.
#[must_use]
pub fn run<H: PublisherHarness>() -> ExitCode {
    let arguments = crate::run::arguments();
    let suite = match Suite::<H>::new() {
        Ok(suite) => suite,
        Err(error) => return Suite::<H>::refuse(&error),
    };
    let trials = cases::<H>().into_iter().map(|case| case.into_trial(&suite)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Err(error) = suite.stop() {
        return Suite::<H>::refuse(&*error);
    }
    conclusion.exit_code()
}

/// The registry: every behaviour, by the module of its test, with what it asks of the broker.
macro_rules! behaviors {
    ($($module:ident { $($name:ident $(needs $capability:ident)?),* $(,)? })*) => {
        /// The names of all behaviours that are tested.
        pub const BEHAVIORS: &[&str] = &[$($(stringify!($name)),*),*];

        fn cases<H: PublisherHarness>() -> Vec<Case<H>> {
            vec![$($(Case {
                name: stringify!($name),
                lacking: if true $(&& H::CAPABILITIES.$capability)? { &[] } else { &[$(stringify!($capability))?] },
                test: |harness| Box::pin($module::$name(harness)),
            }),*),*]
        }
    };
}

behaviors! {
    check {
        check_accepts_what_is_there,
        check_names_a_missing_target needs missing_targets,
        check_refuses_wrong_credentials_and_shows_none needs credentials,
        check_says_unavailable_when_nobody_answers,
    }
    publish {
        publish_confirms_each_message,
        publish_tells_each_message_its_position needs positions,
        publish_the_same_message_again_is_confirmed_again,
        publish_concurrently_confirms_each_message,
    }
    keep {
        publish_keeps_bytes_headers_and_key,
        publish_lets_no_header_of_an_event_pass_for_a_reserved_one,
        publish_keeps_the_order_within_a_key needs order,
    }
    refuse {
        publish_answers_for_each_message_of_a_mixed_batch,
        publish_to_a_missing_target_is_refused_for_that_message_alone needs missing_targets,
    }
    cut {
        publish_goes_on_after_the_connection_was_cut,
        publish_while_the_broker_is_away_is_unavailable,
        publish_waits_for_a_silent_broker_no_longer_than_its_limit,
    }
    drop {
        publish_dropped_half_way_spoils_nothing,
    }
    close {
        close_twice_is_fine,
    }
}
