//! The engine of [Pillarbox](https://docs.rs/pillarbox): it delivers the events of a table to their handlers.
//!
//! The contract with databases, brokers and handlers is `pillarbox-core`. No module imports one that stands above it in this list:
//!
//! | Module | |
//! |---|---|
//! | [`run`] | settings, start, stop: the only place that starts tasks |
//! | [`maintain`] | maintenance of the table: DEAD events, purging, gauges |
//! | [`follow`] | waiting for the end of events, on whichever node they are delivered |
//! | `ownership` | the lease of a node, and the rows of dead nodes |
//! | `dispatch` | workers: from the queue to a handler, and its verdict onwards |
//! | `settle` | recording verdicts in batches |
//! | `claim` | from the table to the queue: the start and the size of each read |
//! | `tenure` | a node's right to deliver during one term, and the check that its database is still the same |
//! | `queue` | the events in memory, and the register that lets each row in once |
//! | [`handlers`] | registering handlers, and finding the handler of an event |
//! | [`observe`] | counters, metrics, health, and a log that does not grow with the events |
//! | `poll_schedule`, `type_pause`, `operator_pauses`, `backoff`, `trusted_clock` | the schedule of polls, the rows to leave in the table, the wait after a failure, a clock that is trusted |
//! | `config` | settings |

use pillarbox_core::planted_bug;

mod backoff;
mod claim;
mod config;
mod dispatch;
pub mod follow;
pub mod handlers;
pub mod maintain;
pub mod observe;
mod operator_pauses;
mod ownership;
mod poll_schedule;
mod queue;
pub mod run;
mod settle;
mod tenure;
mod trusted_clock;
mod type_pause;
