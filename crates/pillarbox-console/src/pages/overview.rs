use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};

use crate::layout::{self, Page};
use crate::parts::{ago, command, empty, grouped, within};
use crate::sample::{Figures, Sample};
use crate::view::View;

/// The figures of now, and their plots over the last hour. It asks the database nothing: it shows the samples.
pub(crate) async fn page(view: View) -> Response {
    let last = view.app.samples.last(view.source.name());
    let live = html! {
        @match &last {
            None => (empty("The first figures are on their way", &html! { "They come within a few seconds." })),
            Some(Sample { figures: Err(problem), at }) => {
                p.notice.bad role="alert" { strong { "The database does not answer: " } (problem) " (" (ago(*at, view.now)) "). It is asked again every few seconds." }
            }
            Some(Sample { figures: Ok(figures), at }) => {
                (problems(&view, figures))
                (tiles(&view, figures))
                p.faint.asof { "Counted " (ago(*at, view.now)) ". Plots show the last hour, since this console has started." }
            }
        }
    };
    let plots = html! {
        section.plots aria-label="Figures of the last hour" data-series=(view.href("series")) {
            (plot("rate", "Delivered and failed", "events a second"))
            (plot("lag", "Lag", "seconds that the oldest due event waits"))
            (plot("latency", "Latency", "seconds from commit to delivery"))
            (plot("due", "Due", "events that are due and not delivered"))
            (plot("dead", "DEAD", "events that were given up"))
        }
    };
    layout::page_with(&view, Page::Overview, "Overview", &html! {}, &live, &plots)
}

fn plot(name: &str, title: &str, unit: &str) -> Markup {
    html! {
        figure.plot {
            figcaption { strong { (title) } " " span.faint { (unit) } }
            div id={ "plot-" (name) } data-plot=(name) role="img" aria-label={ (title) ", " (unit) ", over the last hour" } {}
        }
    }
}

/// What is wrong, each with what to do.
fn problems(view: &View, figures: &Figures) -> Markup {
    let alive = figures.nodes.iter().filter(|node| node.lease_left.is_some()).count();
    let health = view.source.outbox().map(pillarbox_engine::run::Outbox::health);
    html! {
        @if alive == 0 && figures.backlog.due > 0 {
            div.notice.bad role="alert" {
                strong { "No node delivers. " } (grouped(figures.backlog.due)) " events are due. Start the service or relay that delivers from this outbox."
            }
        }
        @if let Some(health) = health {
            @for problem in &health.problems { div.notice.warn role="status" { strong { "This process: " } (problem) } }
        }
    }
}

fn tiles(view: &View, figures: &Figures) -> Markup {
    let backlog = figures.backlog;
    let alive = figures.nodes.iter().filter(|node| node.lease_left.is_some()).count() as u64;
    let rates = view.app.samples.rates(view.source.name());
    let rate = |rate: Option<f64>| match rate {
        None => "–".to_owned(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.0}"),
    };
    let [p50, p99] = figures.latency().map(|time| time.map_or_else(|| "–".to_owned(), within));
    html! {
        div.tiles {
            (tile("Delivered", &rate(rates.map(|rates| rates.delivered)), "events a second", None))
            (tile("Failed", &rate(rates.map(|rates| rates.failed)), "attempts a second", None))
            (tile("Latency", &p50, &format!("median; 99 %: {p99}"), None))
            (tile("Lag", &backlog.oldest_due.map_or_else(|| "none".to_owned(), within), "the oldest due event waits", None))
            (tile("Due", &grouped(backlog.due), "wait for a node", Some(view.href("events?state=pending"))))
            (tile("Delayed", &grouped(backlog.delayed), "wait for their time", Some(view.href("events?state=delayed"))))
            (tile("DEAD", &grouped(backlog.dead), "given up, wait for you", Some(view.href("dead"))))
            (tile("Nodes", &grouped(alive), "with a lease that runs", Some(view.href("nodes"))))
        }
        @if backlog.due + backlog.delayed + backlog.dead == 0 && alive == 0 {
            (empty("Nothing is here yet", &html! { "No event waits and no node runs. A service that starts an outbox on this table appears here." (command("pillarbox status --store URL")) }))
        }
    }
}

fn tile(title: &str, figure: &str, unit: &str, link: Option<String>) -> Markup {
    html! {
        div.tile {
            h2 { @match link { Some(link) => a href=(link) { (title) }, None => (title) } }
            p.figure { (figure) }
            p.faint { (unit) }
        }
    }
}

/// The columns of the plots.
pub(crate) async fn series(view: View) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Json(view.app.samples.series(view.source.name()))).into_response()
}
