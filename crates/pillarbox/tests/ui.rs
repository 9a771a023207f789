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
