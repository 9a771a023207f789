//! The context that travels with an event besides its payload: its trace, its tenant and anything else that a provider carries.
//!
//! A provider takes headers from the context of the writer, and makes a context of them around the handler. In between
//! they are headers of the event like any other, in the row: that is why they arrive on the hot path, from the table,
//! with every retry, and in another process.

mod provider;
#[cfg(feature = "otel")]
mod trace;

pub use provider::ContextProvider;

/// The provider of every outbox, behind those that were registered: they may have set its headers already.
#[cfg(feature = "otel")]
pub const BUILT_IN: Option<&dyn ContextProvider> = Some(&trace::TraceContext);
/// The provider of every outbox: none without the feature `otel`.
#[cfg(not(feature = "otel"))]
pub const BUILT_IN: Option<&dyn ContextProvider> = None;
