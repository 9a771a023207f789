//! What the compiler says to a mistake must name the mistake and the remedy; the texts are kept beside the cases.
//!
//! After a change of wording, `TRYBUILD=overwrite cargo test -p pillarbox --test ui` writes them anew; read the difference.
#![cfg(feature = "macros")]

#[test]
fn what_is_right_compiles() {
    trybuild::TestCases::new().pass("tests/ui/pass/*.rs");
}

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}

/// The compiler lists every transaction it knows, and in no order that is the same in every build.
#[test]
#[cfg_attr(
    any(feature = "sqlx-postgres", feature = "sqlx-sqlite", feature = "tokio-postgres"),
    ignore = "the text names the enabled adapters: run it with --no-default-features --features macros"
)]
fn a_missing_transaction_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail_without_adapters/*.rs");
}
