//! tokio-postgres adapter.
