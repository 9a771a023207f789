//! Passes the events of one or several outboxes on to brokers, as a configuration file says.
//!
//! ```text
//! source: database ──▶ outbox ──▶ routes ──▶ publisher ──▶ broker
//! source: database ──▶ outbox ──▶ routes ──┘
//!                        │           │
//!                        └─ /health ─┴─ /status, /metrics
//! ```
//!
//! [`RelayFile::read`] reads and checks the file; [`Relay::new`] makes what it names; [`Relay::check`] asks the brokers and the
//! databases; [`Relay::preview`] says where what is pending would go; [`Relay::run`] delivers; [`Relay::drain`] delivers
//! what is due and ends.

mod doctor;
mod file;
mod preview;
mod relay;
mod report;
mod run;
mod serve;

pub use doctor::doctor_of_unusable;
pub use file::{ConsoleError, ConsoleSettings, FileError, OnUnavailable, RelayFile, ServerSettings, publisher_at};
pub use preview::{Preview, PreviewLine};
pub use relay::{Checked, Relay, RelayError, SourceDrained};
pub use report::{ConfigurationReport, RefusedConfiguration, Report, SourceHealth, SourceReport};
pub use serve::{ConsoleServer, Endpoint, Reports, ServeError, Serving};
