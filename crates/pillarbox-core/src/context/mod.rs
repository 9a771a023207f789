//! What travels with an event besides its payload: the trace it belongs to, the tenant, whatever a provider carries.
//!
//! A provider takes headers from the context of the writer, and makes a context of them around the handler. In between
//! they are headers of the event like any other, in the row: that is why they arrive on the hot path, from the table,
//! with every retry, and in another process.

mod contexts;
mod provider;
#[cfg(feature = "otel")]
mod trace;

pub(crate) use contexts::Contexts;
pub use provider::ContextProvider;
