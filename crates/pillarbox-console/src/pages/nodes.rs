use axum::response::Response;
use maud::{Markup, html};
use pillarbox_core::store::NodeStatus;
use pillarbox_engine::run::Mode;

use super::answer;
use crate::layout::{self, Page};
use crate::parts::{ago, empty, grouped, within};
use crate::problem::Problem;
use crate::view::View;

/// Nodes that are listed.
const SHOWN: usize = 500;

/// The nodes, their leases, and the partitions.
pub(crate) async fn page(view: View) -> Result<Response, Problem> {
    let store = view.store()?;
    let nodes = answer(store.nodes()).await?;
    let backlog = answer(store.partitions()).await?;
    let is_partitioned = nodes.iter().any(|node| node.mode == Mode::Partitioned.name());
    let live = html! {
        @if nodes.is_empty() {
            (empty("No node is running", &html! { "Nothing is delivered. Start the service or the relay that delivers from this outbox; a process that only writes is no node." }))
        } @else { (list(&view, &nodes)) }
        @if is_partitioned {
            section {
                h2 { "Partitions" }
                div.tiles {
                    div.tile { h3 { "Unowned" } p.figure { (backlog.unowned) } p.faint { "of 256: no node delivers their events" } }
                    div.tile { h3 { "Pending" } p.figure { (grouped(backlog.pending)) } p.faint { "rows of all partitions" } }
                    div.tile { h3 { "Fullest" } p.figure { (grouped(backlog.most_pending)) } p.faint { "rows of one partition" } }
                }
            }
        }
    };
    Ok(layout::page(&view, Page::Nodes, "Nodes and partitions", &html! {}, &live))
}

fn list(view: &View, nodes: &[NodeStatus]) -> Markup {
    html! {
        div.scroll { table.list {
            caption.sr { "Nodes, oldest first" }
            thead { tr {
                th scope="col" { "Node" } th scope="col" { "Mode" } th scope="col" { "State" } th scope="col" { "Since" }
                th scope="col" { "Lease" } th.num scope="col" { "Partitions" }
            } }
            tbody { @for node in nodes.iter().take(SHOWN) { tr {
                th scope="row" data-label="Node" { code { (node.node) } }
                td data-label="Mode" { (node.mode) }
                td data-label="State" { (state(node)) }
                td data-label="Since" { (ago(node.started_at, view.now)) }
                td data-label="Lease" { (lease(node)) }
                td.num data-label="Partitions" { (node.partitions) }
            } } }
        } }
        @if nodes.len() > SHOWN { p.faint { "The first " (SHOWN) " of " (nodes.len()) " are shown." } }
    }
}

fn state(node: &NodeStatus) -> Markup {
    let (class, sign, word) = match (node.lease_left, node.partitions) {
        (None, _) => ("bad", "✕", "gone: its lease has ended"),
        (Some(_), 0) if node.mode != Mode::MultiNode.name() => ("neutral", "◷", "stands by"),
        _ => ("good", "●", "delivers"),
    };
    html! { span class={ "badge " (class) } { span aria-hidden="true" { (sign) } " " (word) } }
}

fn lease(node: &NodeStatus) -> Markup {
    let (Some(left), Some(all)) = (node.lease_left, node.lease) else {
        return html! { @match node.lease_left { Some(left) => { (within(left)) " left" }, None => "ended" } };
    };
    html! {
        meter min="0" max=(all.as_millis()) low=(all.as_millis() / 3) optimum=(all.as_millis()) value=(left.as_millis())
            aria-label={ "Time left of the lease of " (within(all)) } {}
        " " (within(left)) " of " (within(all))
    }
}
