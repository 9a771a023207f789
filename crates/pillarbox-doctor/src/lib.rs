//! Examines the databases and brokers of an outbox, and says of each condition that harms deliveries its cause, the evidence and the
//! remedy. `pillarbox doctor` prints its report, and a console can show it:
//!
//! ```no_run
//! # async fn example(store: std::sync::Arc<dyn pillarbox_core::store::Store>) {
//! use pillarbox_doctor::Doctor;
//!
//! let report = Doctor::new().store("shop", store).run().await;
//! for finding in &report.findings {
//!     println!("{}: {} ({})", finding.code, finding.evidence, finding.remedy);
//! }
//! # }
//! ```
//!
//! It is harmless on a database under load: it has one connection to each database and broker, takes no lock that a writer or a node would wait
//! for, and each statement ends within a limit, on the server too where it can be told. A check that cannot be made is told with the reason.
//!
//! The conditions that all stores have in common are in `outbox/`; those of a database are in its store, those of a broker in its publisher.

mod broker;
mod configuration;
mod doctor;
mod outbox;
mod relay;
mod report;

pub use broker::ALL as BROKER_CHECKS;
pub use configuration::{ALL as CONFIGURATION_CHECKS, Configuration, InForce};
pub use doctor::Doctor;
pub use outbox::ALL as OUTBOX_CHECKS;
pub use pillarbox_core::examine::{Check, Severity, Thresholds};
pub use relay::{ALL as RELAY_CHECKS, NoAnswer, RoutePause, SourceStatus, Sources};
pub use report::{Finding, Healthy, NotChecked, Report};
