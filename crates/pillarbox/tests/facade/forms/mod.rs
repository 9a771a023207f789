//! Every form of what a user writes compiles, and says what it should.

#![cfg(feature = "macros")]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]
#![allow(dead_code, unused_qualifications, reason = "it has to compile; not all of it is called, or needed")]

mod codecs;
mod derive;
mod handler_attribute;
mod handlers;
