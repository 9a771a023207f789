//! The deliveries to the handlers, in their order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by the handlers of both nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Logbook(Arc<Mutex<BTreeMap<String, Vec<Entry>>>>);

#[derive(Debug)]
struct Entry {
    stage: String,
    node: String,
}

impl Logbook {
    pub(crate) fn note(&self, order: &str, stage: &str, node: &str) {
        // A node is called by its name and the moment it joined; the name will do here.
        let node = node.rsplit_once('-').map_or(node, |(name, _)| name).to_owned();
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        orders.entry(order.to_owned()).or_default().push(Entry { stage: stage.to_owned(), node });
    }

    /// A line for each order.
    pub(crate) fn by_order(&self) -> String {
        let mut text = String::new();
        for (order, entries) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            let stages: Vec<_> = entries.iter().map(|entry| entry.stage.as_str()).collect();
            let node = entries.first().map_or("nobody", |entry| entry.node.as_str());
            // Writing to a string does not fail.
            let _ = writeln!(text, "{order}: {} (told by {node})", stages.join(", "));
        }
        text
    }
}
