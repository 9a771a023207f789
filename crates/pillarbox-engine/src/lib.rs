//! The engine of [Pillarbox](https://docs.rs/pillarbox): it delivers the events of a table to their handlers.
//!
//! The contract with databases, brokers and handlers is `pillarbox-core`. No module imports one that stands above it in this list:
//!
//! | Module | |
//! |---|---|
//! | [`run`] | settings, start, stop: the only place that starts tasks |
//! | [`maintain`] | looking after the table: DEAD events, purging, gauges |
//! | [`follow`] | waiting for the end of events, wherever they are delivered |
//! | `ownership` | the lease of a node, and what becomes of the rows of dead ones |
//! | `dispatch` | workers: from the queue to a handler, and its verdict onwards |
//! | `settle` | recording verdicts in batches |
//! | `claim` | from the table to the queue: where to begin, how much to take |
//! | `tenure` | the right by which a node delivers, and whether its database is still the same |
//! | `queue` | what is in memory, and the register that lets each row in once |
//! | [`handlers`] | registering handlers, and finding that of an event |
//! | [`observe`] | counters, metrics, health, and a log that does not grow with the events |
//! | `poll_schedule`, `type_pause`, `operator_pauses`, `backoff`, `standing_clock` | when to poll the table, what to leave in it, how long to wait after a failure, which time to believe |
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
mod standing_clock;
mod tenure;
mod type_pause;
