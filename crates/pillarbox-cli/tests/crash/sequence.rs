//! The lines of all relays that append to one file, in the order in which they were written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use pillarbox::event::partition_of;
use serde_json::Value;

/// A delivery.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) event: String,
    pub(crate) seq: i64,
    pub(crate) key: String,
    pub(crate) node: String,
}

/// All deliveries so far.
#[derive(Debug)]
pub(crate) struct Sequence(pub(crate) Vec<Line>);

impl Sequence {
    /// Reads a file. What a kill has left of a line stands before the next one, on the same line of the file.
    pub(crate) fn of(file: &Path) -> Self {
        const BEGINNING: &str = r#"{"event_id":"#;
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().filter_map(|line| {
            let line: Value = serde_json::from_str(&line[line.rfind(BEGINNING)?..]).ok()?;
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            Some(Line { event: text("event_id"), seq: line["seq"].as_i64()?, key: text("key"), node: text("node") })
        });
        Self(lines.collect())
    }

    /// How often each event was written.
    pub(crate) fn calls(&self) -> BTreeMap<&str, u32> {
        let mut calls = BTreeMap::new();
        self.0.iter().for_each(|line| *calls.entry(line.event.as_str()).or_default() += 1);
        calls
    }

    /// The events that a node of this name has written.
    pub(crate) fn written_by(&self, name: &str) -> HashSet<String> {
        let prefix = format!("{name}-");
        self.0.iter().filter(|line| line.node.starts_with(&prefix)).map(|line| line.event.clone()).collect()
    }

    /// Takes out what this node wrote from this line on. Returns how often each event.
    pub(crate) fn take_late(&mut self, node: &str, from: usize) -> BTreeMap<String, u32> {
        let mut late = BTreeMap::new();
        for line in self.0.split_off(from) {
            if line.node == node {
                *late.entry(line.event).or_default() += 1;
            } else {
                self.0.push(line);
            }
        }
        late
    }

    /// Every event of each key was first written after all earlier ones of that key.
    pub(crate) fn assert_first_deliveries_in_order(&self) {
        let (mut seen, mut last) = (HashSet::new(), HashMap::new());
        for line in self.0.iter().filter(|line| seen.insert(&line.event)) {
            let before = last.insert(&line.key, line.seq);
            assert!(before.is_none_or(|before| before < line.seq), "behind {before:?} of its key: {line:?}");
        }
    }

    /// The lines of a partition are those of its owners, one after the other: its writer changes no more often than its
    /// owner. Had two nodes delivered at once, their lines would stand between each other's.
    pub(crate) fn assert_one_owner_at_a_time(&self, epochs: &[u32; 256]) {
        let mut turns: BTreeMap<u8, Vec<&str>> = BTreeMap::new();
        for line in &self.0 {
            let turns = turns.entry(partition_of(&line.key)).or_default();
            if turns.last() != Some(&line.node.as_str()) {
                turns.push(&line.node);
            }
        }
        for (partition, turns) in turns {
            let owners = epochs[usize::from(partition)] as usize;
            assert!(turns.len() <= owners, "partition {partition} had {owners} owners in turn, and writers: {turns:?}");
        }
    }
}
