//! Pieces of pages.

mod filters;
mod json;
mod state;
mod time;

pub(crate) use filters::{Filters, PENDING, Unknown, query, text};
pub(crate) use json::{masked, pretty};
pub(crate) use state::badge;
pub(crate) use time::{ago, within};

use maud::{Markup, html};

/// Rows of a page of a list.
pub(crate) const PAGE: usize = 50;

/// The number with commas between its thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of things: `1 event`, `2 events`.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A text of a table, or a dash.
pub(crate) fn or_dash(text: Option<&str>) -> Markup {
    html! { @match text { Some(text) => (text), None => span.faint { "–" } } }
}

/// Characters of a text that is shown where a pointer rests.
const RESTS: usize = 1_000;

/// The beginning of a text, and more of it where a pointer rests or a reader listens.
pub(crate) fn short(text: &str, characters: usize) -> Markup {
    let until = |characters| text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end]);
    match text.char_indices().nth(characters) {
        None => html! { (text) },
        Some(_) => html! { span title=(until(RESTS)) { (until(characters)) "…" } },
    }
}

/// A command for a shell, with a button that copies it.
pub(crate) fn command(text: &str) -> Markup {
    html! {
        div.command {
            code { (text) }
            button.copy type="button" data-copy=(text) hidden { "Copy" span.sr { " the command " (text) } }
        }
    }
}

/// Says that there is nothing, and what may be done.
pub(crate) fn empty(title: &str, advice: &Markup) -> Markup {
    html! {
        div.empty {
            p.title { (title) }
            p { (advice) }
        }
    }
}

/// Leads to the next page of a list, and back to its beginning.
pub(crate) fn pager(first: Option<&str>, next: Option<&str>, shown: usize) -> Markup {
    html! {
        nav.pager aria-label="Pages" {
            span.faint { (counted(shown as u64, "row")) " on this page" }
            span.grow {}
            @if let Some(first) = first { a.button href=(first) { "« First page" } }
            @if let Some(next) = next { a.button href=(next) rel="next" { "Next page »" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1, 2].map(|number| counted(number, "event")), ["1 event", "2 events"]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(short("é".repeat(3).as_str(), 2).into_string(), "<span title=\"ééé\">éé…</span>");
        assert_eq!(short("<b>", 3).into_string(), "&lt;b&gt;");
    }
}
