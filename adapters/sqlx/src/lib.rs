//! sqlx adapter.
