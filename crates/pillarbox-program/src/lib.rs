//! The parts that the programs of Pillarbox share: `pillarbox`, `pillarbox-bench` and `pillarbox-demo`.
//!
//! | Module | |
//! |---|---|
//! | [`address`] | the database that `--store` names |
//! | [`arguments`] | options that several programs have, and the refusal of a command line |
//! | [`failure`] | the errors that all of them know, in one sentence, with an exit code |
//! | [`log`] | the log on stderr |
//! | [`progress`] | a bar while something is under way |
//! | [`report`] | results, as text for a person or as one line of JSON |
//! | [`service`] | connections of a service's own, beside those of its outbox |
//! | [`signals`] | the signals that stop a process |
//! | [`stopwatch`] | the time from commit to handler |
//! | [`store`] | the outbox's side of a database |
//! | `traces` | spans for a collector of OpenTelemetry |

pub mod address;
pub mod arguments;
pub mod failure;
#[cfg(feature = "log")]
pub mod log;
pub mod progress;
pub mod report;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub mod service;
pub mod signals;
pub mod stopwatch;
pub mod store;
#[cfg(feature = "otlp")]
pub mod traces;
