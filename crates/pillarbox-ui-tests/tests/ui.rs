//! What the compiler says to a mistake must name the mistake and the remedy; the texts are kept beside the cases.
//!
//! After a change of wording, `TRYBUILD=overwrite cargo test -p pillarbox-ui-tests` writes them anew; read the difference.
//! Cases that compile are no cases of these, which are only checked: they stand in `crates/pillarbox/tests/forms`.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
