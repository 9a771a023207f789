//! The suite of adapters on each driver, and what is one driver's own.

mod blocking_handlers;
mod diesel;
mod diesel_async;
mod mysql_async;
mod place;
mod rusqlite;
mod sea_orm;
mod sqlx;
mod tokio_postgres;
