use std::collections::BTreeMap;
use std::time::Duration;

use pillarbox_core::ownership::{Fence, NodeId, NodeMode, Partitions};
use pillarbox_memory::MemoryStore;
use tokio::time::Instant;

use super::{Line, Op, Violation};

/// The table of nodes, and all incarnations there ever were.
#[derive(Debug, Default)]
pub struct Members {
    registered: BTreeMap<NodeId, Member>,
    incarnations: BTreeMap<NodeId, Incarnation>,
    /// The number of times that the database has gone back.
    pub history: u64,
    lease: Duration,
    /// The epoch by which a node gave a partition last.
    given: BTreeMap<(NodeId, u8), i64>,
    /// The last time that the database went back, if connections could see it.
    failed_over: Option<Instant>,
    /// The time at which all faults had ended.
    healed: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    partitions: Partitions,
    /// The end of the lease by the database's clock, in microseconds.
    expires: i64,
    /// The last renewal of the lease, by the virtual clock.
    renewed: Instant,
    /// The database's clock has jumped since, or its data went back: its lease may end at any time.
    loose: bool,
}

/// A node from joining to leaving.
#[derive(Debug, Clone, Copy)]
struct Incarnation {
    mode: Option<NodeMode>,
    history: u64,
    /// A fault has met it.
    troubled: bool,
    /// It may not know of the end of its lease in time: it stood still, or the database's clock jumped.
    surprised: bool,
    /// The time of the last fault that may keep it from noticing.
    met: Instant,
    /// The time at which the table lost it.
    gone: Option<Instant>,
    /// Its renewals that arrived after the database had failed over.
    renewals: u32,
}

impl Incarnation {
    fn new(mode: Option<NodeMode>, history: u64) -> Self {
        Self { mode, history, troubled: false, surprised: false, met: Instant::now(), gone: None, renewals: 0 }
    }

    fn surprise(&mut self) {
        (self.troubled, self.surprised, self.met) = (true, true, Instant::now());
    }
}

/// A node that asked for its share, and the partitions that this took from it.
pub(super) type Given = (NodeId, Partitions);

impl Members {
    /// No node yet; leases last for so long.
    #[must_use]
    pub fn new(lease: Duration) -> Self {
        Self { lease, ..Self::default() }
    }

    /// True if the table has the node.
    #[must_use]
    pub fn is_registered(&self, node: &NodeId) -> bool {
        self.registered.contains_key(node)
    }

    /// The mode in which the node joined.
    #[must_use]
    pub fn mode(&self, node: &NodeId) -> Option<NodeMode> {
        self.incarnations.get(node)?.mode
    }

    /// The nodes in the table.
    pub fn registered(&self) -> impl Iterator<Item = &NodeId> {
        self.registered.keys()
    }

    /// True if the node is in the table, and has renewed its lease since all faults had ended: nothing kept it from leaving.
    #[must_use]
    pub fn has_stayed(&self, node: &NodeId) -> bool {
        let member = self.registered.get(node);
        member.zip(self.healed).is_some_and(|(member, healed)| member.renewed > healed)
    }

    /// True if a fault may explain what the node does or did: it joined before the database went back, or it met a fault and is
    /// not in the table any more.
    #[must_use]
    pub fn is_excused(&self, node: &NodeId) -> bool {
        let incarnation = self.incarnations.get(node);
        incarnation.is_none_or(|incarnation| {
            incarnation.history < self.history || (incarnation.troubled && !self.is_registered(node))
        })
    }

    /// True if a fault has met the node.
    #[must_use]
    pub fn is_troubled(&self, node: &NodeId) -> bool {
        self.incarnations.get(node).is_none_or(|incarnation| incarnation.troubled)
    }

    /// As [`is_excused`](Self::is_excused), about a row that the node may have given back since.
    #[must_use]
    pub fn is_excused_for(&self, node: &NodeId, fence: Fence, line: Option<&Line>, holder: Option<&str>) -> bool {
        let troubled = self.incarnations.get(node).is_some_and(|incarnation| incarnation.troubled);
        self.is_excused(node) || (troubled && line.is_some_and(|line| !self.owns(node, fence, line, holder)))
    }

    /// A fault meets all incarnations of a process, whose node has this name.
    pub fn trouble(&mut self, name: &str) {
        for (_, incarnation) in self.incarnations.iter_mut().filter(|(node, _)| is_of(node, name)) {
            incarnation.troubled = true;
        }
    }

    /// The process stands still, and may not know of the end of its lease in time.
    pub fn surprise(&mut self, name: &str) {
        for (_, incarnation) in self.incarnations.iter_mut().filter(|(node, _)| is_of(node, name)) {
            incarnation.surprise();
        }
    }

    /// True if the node knows that its lease has ended before another can take over.
    #[must_use]
    pub fn knows_its_end(&self, node: &NodeId) -> bool {
        let incarnation = self.incarnations.get(node);
        incarnation.is_some_and(|incarnation| incarnation.history == self.history && !incarnation.surprised)
    }

    /// True if the node is not in the table for so long that it knows, whatever surprised it.
    #[must_use]
    pub fn outlives_its_lease(&self, node: &NodeId) -> bool {
        let incarnation = self.incarnations.get(node);
        let gone = incarnation.and_then(|incarnation| incarnation.gone.map(|gone| gone.max(incarnation.met)));
        !self.is_registered(node) && gone.is_some_and(|gone| gone.elapsed() > 2 * self.lease)
    }

    /// The database's clock jumps, or all its connections break.
    pub fn trouble_all(&mut self) {
        for incarnation in self.incarnations.values_mut() {
            incarnation.surprise();
        }
        self.registered.values_mut().for_each(|member| member.loose = true);
    }

    /// All faults have ended.
    pub fn healed(&mut self) {
        self.healed = Some(Instant::now());
    }

    /// True if the node joined before the database failed over, and has had the time to notice.
    #[must_use]
    pub fn outlives_its_history(&self, node: &NodeId) -> bool {
        let old = self.incarnations.get(node).is_some_and(|incarnation| incarnation.history < self.history);
        let since = self.failed_over.zip(self.healed).map(|(failed_over, healed)| failed_over.max(healed));
        old && since.is_some_and(|since| since.elapsed() > 2 * self.lease)
    }

    /// The database went back, maybe to before some nodes joined; connections can see it if it is `another` server.
    pub fn went_back(&mut self, store: &MemoryStore, another: bool) {
        self.history += 1;
        self.failed_over = another.then(Instant::now);
        self.given.clear();
        self.registered.clear();
        let now = Instant::now();
        for node in store.inspect().nodes() {
            let expires = node.expires_at.as_micros();
            let member = Member { partitions: node.partitions, expires, renewed: now, loose: true };
            self.registered.insert(node.id, member);
        }
    }

    /// True if the table says that the node has the right to this row.
    #[must_use]
    pub fn owns(&self, node: &NodeId, fence: Fence, line: &Line, holder: Option<&str>) -> bool {
        let Some(member) = self.registered.get(node) else { return false };
        match fence {
            Fence::Table => member.partitions == Partitions::ALL,
            Fence::Partition => line.partition.is_some_and(|partition| member.partitions.contains(partition)),
            Fence::Row => holder.is_some_and(|holder| holder.strip_suffix('!').unwrap_or(holder) == node.as_str()),
        }
    }

    /// Reads the table of nodes after a statement; returns the partitions that a rebalance gave away.
    pub fn read(&mut self, store: &MemoryStore, op: &Op) -> Result<Option<Given>, Violation> {
        let bad = |what| Err(Violation::new("I2", what));
        let now = Instant::now();
        if let (Op::Renew(node), Some(_)) = (op, self.failed_over)
            && let Some(incarnation) = self.incarnations.get_mut(node).filter(|node| node.history < self.history)
        {
            incarnation.renewals += 1;
            if incarnation.renewals > 4 {
                return bad(format!("{node} renews its lease long after the database failed over"));
            }
        }
        let before = std::mem::take(&mut self.registered);
        let mut given = None;
        let mut all = Partitions::NONE;
        for node in store.inspect().nodes() {
            let (id, partitions) = (node.id, node.partitions);
            let shared = all.intersection(partitions);
            if !shared.is_empty() {
                return bad(format!("{id} and another node own the partitions {shared:?}"));
            }
            all = all.union(partitions);
            let expires = node.expires_at.as_micros();
            let as_before = before.get(&id).filter(|member| member.expires == expires);
            let member = Member {
                partitions,
                expires,
                renewed: as_before.map_or(now, |member| member.renewed),
                loose: as_before.is_some_and(|member| member.loose),
            };
            if let Some(lost) = before.get(&id).map(|member| member.partitions.difference(partitions))
                && !lost.is_empty()
            {
                match op {
                    Op::Rebalance(node, give) if *node == id => {
                        for partition in lost.iter() {
                            let epoch = give.get(partition).unwrap_or_default();
                            if self.given.insert((id.clone(), partition), epoch) == Some(epoch) {
                                return bad(format!("{id} gave the partition {partition} twice by the epoch {epoch}"));
                            }
                        }
                        given = Some((id.clone(), lost));
                    }
                    _ => return bad(format!("{id} lost the partitions {lost:?} by {op:?}")),
                }
            }
            if let Op::Join(joined) = op
                && *joined == id
            {
                self.incarnations.insert(id.clone(), Incarnation::new(node.mode.parse().ok(), self.history));
            }
            self.registered.insert(id, member);
        }
        for (node, member) in before.iter().filter(|(node, _)| !self.registered.contains_key(*node)) {
            if let Some(incarnation) = self.incarnations.get_mut(node) {
                incarnation.gone.get_or_insert(now);
            }
            let left = matches!(op, Op::Leave(leaver) if leaver == node);
            let ended = now >= member.renewed + self.lease;
            if !left && !ended && !member.loose {
                let age = now - member.renewed;
                return bad(format!("{node} was evicted {age:?} after it renewed its lease, by {op:?}"));
            }
        }
        Ok(given)
    }
}

/// True if the node is an incarnation of the one that is called so: `n1-…` of `n1`.
#[must_use]
pub(super) fn is_of(node: &NodeId, name: &str) -> bool {
    node.as_str().strip_prefix(name).is_some_and(|rest| rest.starts_with('-'))
}
