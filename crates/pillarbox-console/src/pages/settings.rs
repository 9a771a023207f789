use std::borrow::Cow;

use axum::response::Response;
use maud::{Markup, html};

use crate::layout::{self, Page};
use crate::mask;
use crate::parts::empty;
use crate::source::Setting;
use crate::view::View;

/// The settings in force, and where each was given.
pub(crate) async fn page(view: View) -> Response {
    let settings = &view.source.settings;
    let refused = view.source.configuration.as_ref().and_then(|file| file.refused.as_ref());
    let live = html! {
        @if let Some((at, problem)) = refused {
            p.notice.bad role="alert" { "The file was refused at " (at) ", and what follows is still in force: " (problem) }
        }
        @if let Ok(store) = view.source.store() {
            @let info = store.info();
            dl.facts {
                dt { "Database" } dd { (info.dialect) " at " code { (info.address) } }
                dt { "Table" } dd { code { (info.table) } }
                @if let Some(file) = &view.source.configuration { dt { "File" } dd { "read at " (file.read_at) } }
                @if let Some(outbox) = view.source.outbox() { dt { "Mode" } dd { (outbox.mode().name()) } }
            }
        }
        @if settings.is_empty() {
            (empty("No settings are known here", &html! { "Settings are those of a process that delivers. Open the console in the relay, or mount it in the service." }))
        } @else { (list(settings)) }
    };
    layout::page(&view, Page::Settings, "Settings in force", &html! {}, &live)
}

/// A name that speaks of a secret may be that of the place where it is kept, or have no value.
fn shown(setting: &Setting) -> Cow<'_, str> {
    let Setting { key, value, .. } = setting;
    let is_place = ["_file", ".file", ".env"].iter().any(|end| key.ends_with(end));
    if is_place || value == "–" { Cow::Borrowed(value) } else { mask::shown(key, value) }
}

fn list(settings: &[Setting]) -> Markup {
    html! {
        div.scroll { table.list {
            caption.sr { "Settings, by their keys" }
            thead { tr { th scope="col" { "Setting" } th scope="col" { "Value" } th scope="col" { "Given" } } }
            tbody { @for setting in settings { tr {
                th scope="row" data-label="Setting" { code { (setting.key) } }
                td data-label="Value" { code { (shown(setting)) } }
                td data-label="Given" { @match &setting.origin { Some(origin) => (origin), None => span.faint { "default" } } }
            } } }
        } }
    }
}
