//! No code: the suite of adapters, run on each driver by `tests/adapters`.
