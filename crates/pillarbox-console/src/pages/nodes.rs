use axum::response::Response;
use maud::{Markup, html};
use pillarbox_core::ownership::NodeId;
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
    let owners = answer(store.partition_owners()).await?;
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
                (map(&nodes, &owners))
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
                th scope="col" { "Lease" } th.num scope="col" { "Partitions" } th.num scope="col" { "Delivered" } th.num scope="col" { "Failed" }
                th.num scope="col" { "Busy, queued" } th scope="col" { "Latency" }
            } }
            tbody { @for node in nodes.iter().take(SHOWN) { tr {
                th scope="row" data-label="Node" { code { (node.node) } }
                td data-label="Mode" { (node.mode) }
                td data-label="State" { (state(node)) }
                td data-label="Since" { (ago(node.started_at, view.now)) }
                td data-label="Lease" { (lease(node)) }
                td.num data-label="Partitions" { (node.partitions) }
                @match node.figures {
                    Some(figures) => {
                        td.num data-label="Delivered" { (grouped(figures.delivered)) }
                        td.num data-label="Failed" { (grouped(figures.failed)) @if figures.dead > 0 { br; span.faint { (grouped(figures.dead)) " DEAD" } } }
                        td.num data-label="Busy, queued" { (figures.busy) ", " (grouped(figures.queued)) }
                        td data-label="Latency" { @match figures.latency_p50.zip(figures.latency_p99) { Some((p50, p99)) => { (within(p50)) br; span.faint { "99 %: " (within(p99)) } }, None => span.faint { "–" } } }
                    }
                    None => { @for name in ["Delivered", "Failed", "Busy, queued", "Latency"] { td.num data-label=(name) { span.faint { "–" } } } }
                }
            } } }
        } }
        @if nodes.len() > SHOWN { p.faint { "The first " (SHOWN) " of " (nodes.len()) " are shown." } }
    }
}

fn state(node: &NodeStatus) -> Markup {
    let (class, sign, word) = match (node.lease_left, node.partitions) {
        (None, _) => ("bad", "✕", "gone"),
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

/// Looks of owners in the map; further owners begin with the first again, under letters of their own.
const LOOKS: usize = 8;

/// The partitions as a map: each is marked with the letter of its owner, and those without one with a sign.
fn map(nodes: &[NodeStatus], owners: &[(u8, NodeId)]) -> Markup {
    let place = |node: &NodeId| nodes.iter().position(|other| other.node == *node);
    let owner_of = |partition: u8| {
        let found = owners.binary_search_by_key(&partition, |(partition, _)| *partition).ok()?;
        place(&owners.get(found)?.1)
    };
    html! {
        ol.map aria-label="The 256 partitions, from 0 on, and the letter of the node that owns each" {
            @for partition in 0..=u8::MAX {
                @match owner_of(partition) {
                    Some(place) => { li class={ "o" (place % LOOKS) } title={ "partition " (partition) } { (letter(place)) } }
                    None => { li.free title={ "partition " (partition) ", unowned" } { "×" } }
                }
            }
        }
        ul.legend {
            @for (place, node) in nodes.iter().enumerate().filter(|(_, node)| node.partitions > 0) {
                li { span class={ "owner o" (place % LOOKS) } { (letter(place)) } " " code { (node.node) } " " span.faint { (node.partitions) } }
            }
            @if owners.len() < 256 { li { span.owner.free { "×" } " unowned" } }
        }
    }
}

/// The letter of the node at a place: A to Z, then AA and so on.
fn letter(place: usize) -> String {
    let last = char::from(b'A' + u8::try_from(place % 26).unwrap_or_default());
    match place / 26 {
        0 => last.to_string(),
        before => format!("{}{last}", letter(before - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::letter;

    #[test]
    fn each_node_has_a_letter_of_its_own() {
        assert_eq!([0, 25, 26, 51, 52].map(letter), ["A", "Z", "AA", "AZ", "BA"]);
    }
}
