//! The right to deliver: nodes, their leases, and the rows and partitions that point to them.
//!
//! The node holds the lease; rows and partitions point to the node. While it lives, what points to it is its own, for
//! as long as a handler may run. Once its lease has ended and it is evicted, all that pointed to it is free. So
//! there is one renewal per node and not one per row, and one way to die.
//!
//! # The life of a node
//!
//! ```text
//!                join                       acquire, rebalance
//!   ─────────▶ (a new id) ───▶ standing by ───────────────▶ delivering ──┐ renews every third of its lease,
//!      ▲                            │                        │   │   ▲   │ on a task of its own
//!      │                            │                        │   │   └───┘
//!      │      sent + lease − margin has passed, or the       │   │
//!      │      database says it is not registered             │   │ told to stop
//!      │                            ▼                        │   ▼
//!      └───────────────────────── lost ◀─────────────────────┘  drains, settles, gives back, leaves
//!         handlers are told, queues dropped,
//!         verdicts not recorded
//! ```
//!
//! A node that lost its lease never comes back under the same id, so rows and partitions that still name the old one name nobody.
//!
//! # The safety inequality
//!
//! The database says when a lease ends, and the node must have stopped by then without asking it. It counts from the
//! moment *before* it sent the renewal that was confirmed (or its join), which is no later than the moment the database
//! counts from, and stops a margin earlier:
//!
//! ```text
//!   sent                ≤  renewed                               the start of the count
//!   sent + lease − margin  by the node's monotonic clock         the node stops
//!   sent + lease        ≤  renewed + lease  by the database's    others may take over
//! ```
//!
//! The others need not believe the database's clock either. It may have been set back, or a replica whose clock runs behind may have
//! been promoted, and the lease of a dead node then seems to run for hours. So every node watches the others: a node whose lease has not
//! been renewed for the whole of its length, by the watcher's monotonic clock, is evicted ([`evict`]). A node that still relies on
//! its lease has renewed it since; should its renewal arrive at the same moment, it comes first, and nothing is cleared, or it
//! finds that the node is gone. That cannot make two owners:
//!
//! ```text
//!   sent                ≤  renewed  ≤  seen by a watcher              what each counts from
//!   sent + lease − margin  by the node's monotonic clock              the node stops
//!   seen + lease           by the watcher's monotonic clock           the watcher evicts it, unless it has renewed
//! ```
//!
//! Nor need they believe a clock that jumps forward, which would end the leases of the living. Each poll of the nodes tells a process
//! how far the database's clock may have come by its next one; what the clock shows beyond that ends no lease, until every living
//! node has had a lease's time to renew ([`LeaseClock`]). A renewal succeeds as long as the node's row is there, since a node that takes over
//! deletes it first:
//!
//! ```text
//!   sent                ≤  renewed, and each poll of the nodes since  what each counts from
//!   sent + lease − margin      by the node's monotonic clock          the node stops
//!   renewed + lease − margin/2 by the monotonic clock of each other   the others may take over, if the database's clock agrees
//! ```
//!
//! A lease counted from the answer would be longer than the database's by as much as the answer took. The margin, a
//! tenth of the lease, is for clocks that run at different speeds; clocks that show different times do not matter,
//! since no time of day is ever compared. It also gives a node that wakes up late some time to notice.
//!
//! # The fences
//!
//! The inequality spares events a second delivery. It proves nothing: a process may be stopped between looking at its
//! clock and calling a handler. What keeps the table right is that every verdict is checked where it is recorded, in
//! the same transaction, with the node's own row locked against eviction. There are three things a
//! node's right can rest on:
//!
//! | Fence | Modes | How the right is taken | A verdict changes a row if its node is registered and |
//! |---|---|---|---|
//! | table | `single_node`, `ordered` | `acquire`: all partitions at once, if their owner is gone | owns the partitions |
//! | row | `multi_node` | `claim`, or the row is inserted as the node's own | the row names it in `locked_by` |
//! | partition | `partitioned` | `rebalance`: the node's part of the partitions, as far as they are free | owns the row's partition |
//!
//! Expiry alone takes nothing away: an expired node's verdicts stand until somebody evicts it, for until then
//! nobody else can have delivered its rows. Joining, leaving, acquiring, rebalancing and evicting are transactions
//! that exclude each other; they are rare. Settling and renewing never wait for one another.
//!
//! # Partitions
//!
//! Each of the live nodes should own one contiguous range of the 256 partitions; [`spread`] says which, from nothing
//! but the list of nodes in the order in which they started. About once a second each node *rebalances*, in one
//! transaction: nodes whose lease has ended are evicted; what the node gives becomes free; of its target it takes
//! what is free now, each partition by the next epoch; and it is told what it owns. Nobody waits until all of a target
//! is free, and nobody decides for anybody else.
//!
//! A node with work rebalances every 675 to 900 ms, an idle one every 1.2 to 1.6 s, one that is idle and alone every 3.75 to 5 s. Right after
//! partitions came or went it does so after 100 ms at most, and then twice as long each time.
//!
//! ```text
//!              free, in the target: taken by rebalance            joins move the target
//!   not ours ──────────────────────────────────────▶ owned ────────────────────────────▶ surplus
//!      ▲                                               ▲      and moved back, still ours    │ begins nothing of it
//!      │                                               └────────────────────────────────────┤
//!      └────────────────────── given by rebalance ◀── idle: every verdict is recorded ◀─────┘
//!                                                     (handlers are told when the drain timeout has passed)
//! ```
//!
//! Three rules are easy to leave out:
//!
//! - **A partition waits for its handlers.** Each is given by itself, when nothing of it runs and every verdict is recorded,
//!   however long that takes. A handler that runs for longer than the drain timeout is told, so that it can end; if it ends
//!   with an error then, it has not failed, and the next owner delivers its event.
//! - **A gift names its epoch.** A request may reach the database after its sender has given it up and asked again.
//!   Without the epoch it would take away a partition that the node has come to own anew, and is delivering from.
//! - **An event is delivered only under the epoch under which it was read.** What was read before a partition went to
//!   another node and came back may have been delivered there.
//!
//! # What happens when
//!
//! | | |
//! |---|---|
//! | a process dies | Its lease ends; the next node that looks at the leases evicts it. What it may have been delivering is suspected of having killed it. |
//! | a process stands still past its lease, or is cut off | As above for the others. By itself it stops by its own clock, or when it wakes; what it then brings is refused, and it joins anew. |
//! | a renewal or its answer is lost | It is sent again. The lease counts from the last one that was confirmed. |
//! | the database is away | Every node stops by its deadline, and joins anew afterwards. A verdict that could not be recorded is an event that is delivered again. |
//! | the answer to a settle is lost | It is sent again and refused: the row is terminal, or has other attempts. |
//! | the answer to a rebalance is lost | What was given is still surplus, and given again; what was taken is told by the next answer. |
//! | the answer to a join is lost | A node stands in the table that nobody is; its part is idle until its lease ends. |
//! | a handler outlasts the drain timeout while another node waits for its partition | It is told, and keeps the partition until it ends. All other partitions move. |
//! | the database fails over to a replica that lags, or is restored | The node's lease is lost as soon as a connection reaches another history, or its row is found in an older state: it forgets all it holds and joins anew. Until then, its verdicts change only rows of the very events it delivered. |
//! | the database restarts | The term goes on, and reads once more from the bottom, since the last commits may be missing. |
//! | a time of day is wrong or jumps | Nothing, on the hosts of nodes. |
//! | the database's clock is set back | Leases of the living are renewed as before. One that is not renewed is over after its length, as others see it by their own clocks; without others, its node's part is idle until somebody has watched for so long. |
//! | the database's clock jumps forward | Leases of the living are renewed, and those of the dead end when they would have ended, as the others reckon by their own clocks. A process that starts after the jump cannot know of it: until the next renewal of a living node, a third of its lease later at most, it takes over at once, and handlers of two nodes may run for one event or key. The verdicts of the one that was evicted are refused. |
//! | a clock loses more than the margin, a suspended host's for instance | Two nodes may deliver at once. One of them has its verdicts refused. |
//! | a node is told to stop | What it owns is free before it returns, or by the end of its lease if the database cannot be reached. |
//!
//! The partitions' protocol, these failures included, is explored by a model checker in `tests/model/partitions`. What happens to
//! the place of the reader is explored in `tests/model/safe_point`.
//!
//! [`evict`]: pillarbox_core::store::Store::evict
//! [`LeaseClock`]: pillarbox_core::store::LeaseClock
//! [`spread`]: pillarbox_core::ownership::spread

mod lease;
mod lease_watch;
mod reaper;
mod rebalancer;
mod work;

pub(crate) use lease::Lease;
pub(crate) use lease_watch::LeaseWatch;
pub(crate) use reaper::Reaper;
pub(crate) use rebalancer::Rebalancer;
