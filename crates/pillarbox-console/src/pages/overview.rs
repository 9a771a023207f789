use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use pillarbox_routes::{Forwarder, RouteState, RouteStatus};

use crate::layout::{self, Page};
use crate::parts::{ago, command, counted, empty, grouped, within};
use crate::sample::{Figures, NoFigures, Paused, Sample};
use crate::view::View;

/// Routes that are named.
const NAMED: usize = 5;

/// The figures of now, and their plots over the last hour. It asks the database nothing: it shows the samples.
pub(crate) async fn page(view: View) -> Response {
    let last = view.app.samples.last(view.source.name());
    let refused = view.source.configuration.as_ref().and_then(|file| file.refused.as_ref());
    let live = html! {
        @if let Some((at, _)) = refused {
            p.notice.bad role="alert" { "A changed file was refused at " (at) ", and the one before is still in force. " a href=(view.href("settings")) { "See why" } "." }
        }
        (problems_here(&view))
        @match &last {
            None => (empty("The first figures are on their way", &html! { "They come within a few seconds." })),
            Some(Sample { figures: Err(NoFigures::Away(problem)), at }) => {
                p.notice.bad role="alert" { strong { "It cannot be used now: " } (problem) " (" (ago(*at, view.now)) "). It is asked again by itself, less and less often, within two minutes at the latest." }
            }
            Some(Sample { figures: Err(NoFigures::NotInTime), at }) => {
                p.notice.warn role="status" { strong { "The figures are not known: " } "counting the events that wait did not end within five seconds (" (ago(*at, view.now)) "), as where very many wait, or somebody keeps the table locked. It is counted again by itself, less and less often, within two minutes at the latest. The other pages show events all the same." }
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
            (plot("latency", "Latency", "seconds from commit to the end of a call"))
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

/// The trouble that this process knows of without any figures, each with what to do.
fn problems_here(view: &View) -> Markup {
    let health = view.source.outbox().map(pillarbox_engine::run::Outbox::health);
    let status = view.source.routes.as_ref().map(Forwarder::status).unwrap_or_default();
    let targets: usize = status.iter().map(|route| route.paused_targets).sum();
    let paused = |route: RouteStatus| match route.state {
        RouteState::Delivering => None,
        RouteState::Paused { problem, .. } => Some((route.route, problem)),
        RouteState::PausedByOperator { reason, .. } => Some((route.route, reason)),
    };
    let routes: Vec<(String, String)> = status.into_iter().filter_map(paused).collect();
    html! {
        @if let Some(health) = health {
            @for problem in &health.problems { div.notice.warn role="status" { strong { "This process: " } (problem) } }
            @if let Some(error) = &health.last_error { div.notice.warn role="status" { strong { "This process: " } (error) } }
        }
        @for (route, problem) in routes.iter().take(NAMED) {
            div.notice.bad role="status" { strong { "Route " (route) " is paused: " } (problem) " " a href=(view.href("routes")) { "Routes" } }
        }
        @if routes.len() > NAMED {
            div.notice.bad role="status" { (routes.len() - NAMED) " more routes are paused. " a href=(view.href("routes")) { "Routes" } }
        }
        @if targets > 0 {
            div.notice.warn role="status" { strong { (counted(targets as u64, "target")) " of routes paused. " } a href=(view.href("routes")) { "Routes" } }
        }
    }
}

/// The trouble that the figures show, each with what to do.
fn problems(view: &View, figures: &Figures) -> Markup {
    let alive = figures.nodes.iter().filter(|node| node.lease_left.is_some()).count();
    html! {
        @if alive == 0 && figures.backlog.due > 0 {
            div.notice.bad role="alert" {
                strong { "No node delivers. " } (grouped(figures.backlog.due)) " events are due. Start the service or relay that delivers from this outbox."
            }
        }
        @let Paused { names, more } = &figures.paused;
        @if !names.is_empty() {
            div.notice.warn role="status" {
                strong { "Paused by operators: " }
                @for name in names { code { (name) } " " }
                @if *more > 0 { "and " (more) " more " }
                a href=(view.href("pauses")) { "Who and why" }
            }
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
            (tile("Due", &grouped(backlog.due), "for a node, or behind another event", Some(view.href("events?state=pending"))))
            (tile("Delayed", &grouped(backlog.delayed), "for their time, or for another attempt", Some(view.href("events?state=delayed"))))
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
