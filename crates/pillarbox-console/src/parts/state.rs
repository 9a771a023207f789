use maud::{Markup, html};
use pillarbox_core::store::EventState;

/// The sign of a state, its word, and the class of its color: never the color alone.
const fn look(state: EventState) -> (&'static str, &'static str, &'static str) {
    match state {
        EventState::New => ("○", state.name(), "neutral"),
        EventState::Delayed => ("◷", state.name(), "neutral"),
        EventState::Retrying => ("↻", state.name(), "warn"),
        EventState::Done => ("✓", state.name(), "good"),
        EventState::Cancelled => ("⊘", state.name(), "neutral"),
        EventState::Dead => ("✕", "DEAD", "bad"),
        EventState::Unknown => ("?", state.name(), "warn"),
    }
}

/// The state as a sign and a word.
pub(crate) fn badge(state: EventState) -> Markup {
    let (sign, word, class) = look(state);
    html! { span class={ "badge " (class) } { span aria-hidden="true" { (sign) } " " (word) } }
}
