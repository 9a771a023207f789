use axum::response::Response;
use maud::{Markup, html};
use pillarbox_routes::{RouteState, RouteStatus, TargetStatus};

use crate::layout::{self, Page};
use crate::parts::{empty, within};
use crate::view::View;

/// The characters of a reason at most.
pub(crate) const REASON: usize = 200;

/// The routes of the relay that runs in this process, with their breakers.
pub(crate) async fn page(view: View) -> Response {
    let routes = view.source.routes.as_ref().map(pillarbox_routes::Forwarder::status);
    let live = match &routes {
        None => empty(
            "Routes are known to the relay alone",
            &html! { "This process does not route this outbox's events. Open the console of the relay itself: section " code { "[relay.console]" } " of its file." },
        ),
        Some(routes) if routes.is_empty() => {
            empty("There is no route", &html! { "The relay's file names none for this source." })
        }
        Some(routes) => list(&view, routes),
    };
    layout::page(&view, Page::Routes, "Routes", &html! {}, &live)
}

fn list(view: &View, routes: &[RouteStatus]) -> Markup {
    html! {
        div.scroll { table.list {
            caption.sr { "Routes, in the order in which they take events" }
            thead { tr { th scope="col" { "Route" } th scope="col" { "Takes" } th scope="col" { "Broker and target" } th scope="col" { "State" } th scope="col" { "Problem" } th.num scope="col" { "Paused targets" } } }
            tbody { @for route in routes { tr {
                th scope="row" data-label="Route" { (route.route) }
                td data-label="Takes" { (route.takes) }
                td data-label="Broker and target" { (destination(route)) }
                td data-label="State" { (state(&route.state)) " " (buttons(view, route)) }
                td.error data-label="Problem" { (problem(&route.state)) }
                td.num data-label="Paused targets" { (route.paused_targets) }
            }
            @for target in &route.targets { tr.sub {
                th scope="row" data-label="Target" { "↳ " code { (target.target) } }
                td {}
                td {}
                td data-label="State" { (state(&target.state)) " " (target_button(view, route, target)) }
                td.error data-label="Problem" { (problem(&target.state)) }
                td {}
            } } } }
        } }
    }
}

fn destination(route: &RouteStatus) -> Markup {
    html! {
        @match &route.to {
            Some(to) => { (route.publisher) " " code { (to) } br; code.id { (route.address) } }
            None => span.faint { "none: it drops what it takes" }
        }
    }
}

/// The button of a paused target: the next event for it tries it out.
fn target_button(view: &View, route: &RouteStatus, target: &TargetStatus) -> Markup {
    let is_paused = matches!(target.state, RouteState::Paused { next_probe: Some(_), .. });
    let is_by_hand = matches!(route.state, RouteState::PausedByOperator { .. });
    html! {
        @if view.may_operate() && is_paused && !is_by_hand {
            form.inline method="post" action=(view.href("probe")) {
                input type="hidden" name="token" value=(view.token());
                input type="hidden" name="route" value=(route.route);
                input type="hidden" name="target" value=(target.target);
                button type="submit" title="The next event for it is sent. Those that wait come back by themselves, or by Try now on the page Events." {
                    "Probe now" span.sr { " target " (target.target) }
                }
            }
        }
    }
}

/// The buttons of a route: a pause ends for one try, and an operator's begins and ends.
fn buttons(view: &View, route: &RouteStatus) -> Markup {
    let button = |action: &str, text: &str| {
        html! {
            form.inline method="post" action=(view.href(action)) {
                input type="hidden" name="token" value=(view.token());
                input type="hidden" name="route" value=(route.route);
                button type="submit" { (text) span.sr { " route " (route.route) } }
            }
        }
    };
    html! {
        // A route without an address drops what it takes.
        @if view.may_operate() && !route.address.is_empty() {
            @match &route.state {
                RouteState::PausedByOperator { .. } => (button("resume-route", "Resume")),
                state => {
                    @if matches!(state, RouteState::Paused { next_probe: Some(_), .. }) { (button("probe", "Probe now")) " " }
                    (pause(view, route))
                }
            }
        }
    }
}

/// The form that pauses a route, folded away.
fn pause(view: &View, route: &RouteStatus) -> Markup {
    html! {
        details.action id={ "pause-" (route.route) } {
            summary { "Pause…" span.sr { " route " (route.route) } }
            form.inline method="post" action=(view.href("pause-route")) {
                input type="hidden" name="token" value=(view.token());
                input type="hidden" name="route" value=(route.route);
                label { "Reason" input name="reason" required maxlength=(REASON) placeholder="the partner is being moved"; }
                button type="submit" { "Pause on this node" span.sr { " route " (route.route) } }
            }
        }
    }
}

fn state(state: &RouteState) -> Markup {
    let (class, sign, word) = match state {
        RouteState::Delivering => ("good", "●", "delivering".to_owned()),
        RouteState::Paused { next_probe: Some(pause), .. } => {
            ("bad", "⏸", format!("paused, tried in {}", within(*pause)))
        }
        RouteState::Paused { next_probe: None, .. } => ("warn", "↻", "paused, being tried".to_owned()),
        RouteState::PausedByOperator { .. } => ("warn", "⏸", "paused by an operator, on this node".to_owned()),
    };
    html! { span class={ "badge " (class) } { span aria-hidden="true" { (sign) } " " (word) } }
}

fn problem(state: &RouteState) -> Markup {
    html! {
        @match state {
            RouteState::Delivering => "–",
            RouteState::Paused { problem, .. } => (problem),
            RouteState::PausedByOperator { reason, problem } => { (reason) @if let Some(problem) = problem { br; "Before that: " (problem) } }
        }
    }
}
