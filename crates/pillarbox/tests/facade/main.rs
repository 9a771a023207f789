//! What a user writes who depends on this crate alone.

mod codecs;
mod derive;
mod end_to_end;
mod forms;
mod sql_contract;
