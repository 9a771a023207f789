//! PostgreSQL store.
