//! The frame around each page.

use axum::response::{Html, IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, html};

use crate::assets;
use crate::auth::Rule;
use crate::view::View;

/// The pages, in the order of the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    Overview,
    Events,
    Dead,
    Keys,
    Pauses,
    Nodes,
    Routes,
    Settings,
    Doctor,
    Audit,
}

impl Page {
    const ALL: [Self; 10] = [
        Self::Overview,
        Self::Events,
        Self::Dead,
        Self::Keys,
        Self::Pauses,
        Self::Nodes,
        Self::Routes,
        Self::Settings,
        Self::Doctor,
        Self::Audit,
    ];

    /// Its title, and its place in addresses.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Overview => ("Overview", "overview"),
            Self::Events => ("Events", "events"),
            Self::Dead => ("DEAD", "dead"),
            Self::Keys => ("Blocked keys", "keys"),
            Self::Pauses => ("Pauses", "pauses"),
            Self::Nodes => ("Nodes", "nodes"),
            Self::Routes => ("Routes", "routes"),
            Self::Settings => ("Settings", "settings"),
            Self::Doctor => ("Doctor", "doctor"),
            Self::Audit => ("Audit", "audit"),
        }
    }
}

/// The settings of htmx: nothing is evaluated, nothing is taken from elsewhere, no style is added.
const HTMX: &str = r#"{"allowEval":false,"allowScriptTags":false,"includeIndicatorStyles":false,"selfRequestsOnly":true,"historyCacheSize":0,"timeout":10000}"#;

/// A page of a source. `fixed` stays; `live` is brought up to date every few seconds.
pub(crate) fn page(view: &View, page: Page, title: &str, fixed: &Markup, live: &Markup) -> Response {
    page_with(view, page, title, fixed, live, &html! {})
}

/// As [`page`], with a part below that stays, too.
pub(crate) fn page_with(
    view: &View,
    page: Page,
    title: &str,
    fixed: &Markup,
    live: &Markup,
    below: &Markup,
) -> Response {
    let body = html! {
        a.skip href="#main" { "Skip to the content" }
        (head(view, page))
        div.frame {
            (menu(view, page))
            main #main tabindex="-1" {
                h1 { (title) }
                (fixed)
                div #live hx-get="" hx-trigger=(if page == Page::Overview { "every 2s" } else { "every 5s" }) hx-select="#live"
                    hx-target="#live" hx-swap="morph:outerHTML" hx-ext="morph" { (live) }
                (below)
            }
        }
    };
    document(&format!("{title} · {}", view.source.name()), &view.root, true, &body)
}

fn head(view: &View, page: Page) -> Markup {
    html! {
        header.top {
            a.brand href=(view.href("overview")) { span.mark aria-hidden="true" {} "Pillarbox" }
            @if view.sources.len() > 1 {
                form.switch action={ (view.root) "go" } method="get" {
                    label { span.sr { "Source" }
                        select name="source" data-submit {
                            @for name in &view.sources { option value=(name) selected[name == view.source.name()] { (name) } }
                        }
                    }
                    input type="hidden" name="page" value=(page.names().1);
                    button.nojs type="submit" { "Go" }
                }
            } @else { span.where { (view.source.name()) } }
            span.grow {}
            button.quiet type="button" data-live hidden aria-pressed="true" { span.dot aria-hidden="true" {} "Live" }
            button.quiet type="button" data-times hidden aria-pressed="false" title="Show dates in UTC in the place of ages" { "UTC" span.sr { " dates in the place of ages" } }
            span.who title={ "Your role is " (view.user.role.name()) } { (view.user.name) " · " (view.user.role.name()) }
            @if matches!(view.app.access.0, Rule::Accounts(_)) {
                form action={ (view.root) "logout" } method="post" { button.quiet type="submit" { "Log out" } }
            }
        }
    }
}

fn menu(view: &View, current: Page) -> Markup {
    let dead = view.app.samples.last(view.source.name()).and_then(|sample| Some(sample.figures.ok()?.backlog.dead));
    html! {
        nav.menu aria-label="Pages of the console" {
            ul {
                @for page in Page::ALL {
                    @let (title, place) = page.names();
                    li {
                        a href=(view.href(place)) aria-current=[(page == current).then_some("page")] {
                            (title)
                            @if page == Page::Dead && dead.is_some_and(|dead| dead > 0) {
                                span.count { (crate::parts::grouped(dead.unwrap_or_default())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A page without a frame: to log in, or to say what is wrong.
pub(crate) fn bare(title: &str, root: &str, body: &Markup) -> Response {
    document(title, root, false, body)
}

fn document(title: &str, root: &str, is_live: bool, body: &Markup) -> Response {
    let asset = |name: &str| format!("{root}{}", assets::address(name));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Pillarbox" }
                link rel="icon" type="image/svg+xml" href=(asset("icon.svg"));
                link rel="stylesheet" href=(asset("console.css"));
                @if is_live {
                    meta name="htmx-config" content=(HTMX);
                    link rel="stylesheet" href=(asset("uplot.css"));
                    @for script in ["htmx.js", "idiomorph.js", "uplot.js", "console.js"] { script src=(asset(script)) defer {} }
                }
            }
            body { (body) }
        }
    };
    Html(page.into_string()).into_response()
}
