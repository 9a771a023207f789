//! Error texts that name what was probably meant.

/// The likeness, from 0 to 1, that two names must have for one to be taken for a misspelling of the other.
const ALIKE: f64 = 0.8;

/// A sentence that proposes the likeliest of `known` for `word`; empty when nothing comes near.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map_or_else(String::new, |(_, name)| format!("did you mean `{name}`? "))
}

/// The names in backticks, separated by commas.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
