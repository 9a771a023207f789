use std::fmt;
use std::time::Duration;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::NodeMode;
use pillarbox_core::store::{
    Backlog, FIRST_PAGE, Fetch, FetchScope, Fetched, FetchedRow, Heads, OrderKey, Pause, PauseKind, Store, operation,
};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::Instrument as _;

use super::{Config, Outbox};
use crate::operator_pauses::PausedKeys;

/// The time between the first two questions to the database. It doubles from one to the next.
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause between two questions: a drain ends at most this long after its last event.
const MAX_PAUSE: Duration = Duration::from_millis(100);
/// The share of the deadline that may be kept for the events under way.
const KEPT_SHARE: u32 = 4;
/// The time that counting the rest may take.
const COUNT_TIMEOUT: Duration = Duration::from_secs(5);
/// The rows that are read at once, and their bytes, to find one that waits for no pause; and how often that is done for one answer.
const PAGE_ROWS: usize = 500;
const PAGE_BYTES: usize = 4 << 20;
const MAX_PAGES: usize = 20;
/// The number of failing events whose waiting rows are counted.
const MAX_HEADS: usize = 1000;

/// The answer of [`Outbox::drain`]: the pending and DEAD rows that are left in the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Rows that are due and wait for no other event, those that a node is delivering included.
    pub due: u64,
    /// Rows that are due and wait behind a failing, DEAD or paused event. If the deadline came first, at most 1,000 are counted
    /// for each of the first 1,000 such events, and the others count as `due`.
    pub blocked: u64,
    /// Rows whose time has not come: delayed, deferred, or waiting for another attempt. In mode `ordered`, where nothing overtakes it, one that
    /// waits for another attempt counts as `due`.
    pub delayed: u64,
    /// DEAD rows.
    pub dead: u64,
    /// Rows that are due and whose type or handler an operator has paused.
    pub paused: u64,
    /// Other nodes with a lease that has not ended. They may hold some of the rows that are due.
    pub other_nodes: usize,
}

impl Drained {
    /// True if nothing was due any more when the database was last asked.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.due == 0
    }
}

impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { due, blocked, delayed, dead, paused, other_nodes } = self;
        write!(
            f,
            "{due} due, {blocked} blocked, {delayed} delayed, {dead} dead, {paused} paused, {other_nodes} other nodes"
        )
    }
}

/// The settings of an outbox that a drain depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct DrainRules {
    /// The rows that make the later rows of their key wait.
    heads: Heads,
    /// The order that events keep, which those behind a paused one wait for.
    order: Order,
    /// The time that events under way may take at most.
    patience: Duration,
}

impl DrainRules {
    pub(super) fn new(mode: Option<NodeMode>, config: &Config) -> Self {
        let keeps_keys = mode == Some(NodeMode::Partitioned);
        let heads = if keeps_keys { config.retry.failing_key.heads() } else { Heads::None };
        let order = match mode {
            Some(NodeMode::Partitioned) => Order::Keys,
            Some(NodeMode::Ordered) => Order::All,
            _ => Order::None,
        };
        Self { heads, order, patience: config.shutdown.drain_timeout }
    }

    /// The fetch that finds one row that is due and waits for no failing one, if there is one. Rows that nodes hold, and types that are
    /// paused here by their route, are not left out.
    fn probe(self) -> Fetch {
        let scope = FetchScope {
            partitions: 0..=u8::MAX,
            heads: self.heads,
            without: Vec::new(),
            only: Vec::new(),
            node: None,
        };
        Fetch { scope: (self.heads != Heads::None).then_some(scope), ..Fetch::new(1) }
    }

    /// True if all rows that are due wait for a pause: their own, or that of an earlier event. False if so many are that it would take long
    /// to tell.
    async fn are_all_paused(self, store: &dyn Store, pauses: &[Pause]) -> Result<bool, StoreError> {
        let names = |kind| -> Vec<Box<str>> {
            pauses.iter().filter(|pause| pause.kind == kind).map(|pause| (*pause.name).into()).collect()
        };
        let mut fetch = self.probe();
        if self.order != Order::All {
            let (without_types, without_handlers) = (names(PauseKind::Type), names(PauseKind::Handler));
            let others = Fetch { without_types, without_handlers: without_handlers.clone(), ..fetch.clone() };
            if store.fetch(&others).await?.rows.is_empty() {
                return Ok(true);
            }
            if self.order == Order::None {
                return Ok(false);
            }
            fetch.without_handlers = without_handlers;
        }
        let mut paused_keys = PausedKeys::default();
        (fetch.limit, fetch.max_bytes) = (PAGE_ROWS, PAGE_BYTES);
        for _ in 0..MAX_PAGES {
            let Fetched { mut rows, truncated, .. } = store.fetch(&fetch).await?;
            let is_last = !truncated && rows.len() < fetch.limit;
            let untimed = rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq).max();
            rows.sort_unstable_by_key(FetchedRow::seq);
            for row in &rows {
                match keep_paused(&mut paused_keys, row, pauses) {
                    true if self.order == Order::All => return Ok(true),
                    true => {}
                    false => return Ok(false),
                }
            }
            match untimed {
                Some(seq) if !is_last => fetch.above = seq,
                _ => return Ok(is_last),
            }
        }
        Ok(false)
    }

    /// The rest, where no row is due that waits for no other and for no pause: what is due waits then, or was written since.
    fn nothing_due(self, backlog: Backlog, paused: u64) -> Drained {
        let Backlog { due, delayed, dead, .. } = backlog;
        let paused = paused.min(due);
        let keeps_order = self.heads != Heads::None || (self.order != Order::None && paused > 0);
        let blocked = if keeps_order { due - paused } else { 0 };
        Drained { due: 0, blocked, delayed, dead, paused, other_nodes: 0 }
    }

    /// The number of rows that wait behind failing events, as far as they are counted.
    async fn blocked(self, store: &dyn Store) -> Result<u64, StoreError> {
        if self.heads == Heads::None {
            return Ok(0);
        }
        let heads = store.blocked(FIRST_PAGE, MAX_HEADS).await?;
        let blocking = heads.iter().filter(|head| !head.dead || self.heads == Heads::RetryAndDead);
        Ok(blocking.map(|head| head.waiting).sum())
    }
}

/// The order that events keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    None,
    Keys,
    All,
}

/// Notes a row, read after the earlier ones of its key. True if it is paused, or waits behind one that is.
fn keep_paused(paused_keys: &mut PausedKeys<OrderKey>, row: &FetchedRow, pauses: &[Pause]) -> bool {
    let FetchedRow::Row(row) = row else { return false };
    let is_paused = pauses.iter().any(|pause| pause.applies_to(row.event.event_type(), row.handler.as_deref()));
    match row.order_key() {
        Some(key) => paused_keys.keep(key, row.seq, is_paused),
        None => is_paused,
    }
}

impl Outbox {
    /// Delivers until nothing is due any more or the deadline comes, then [shuts down](Self::shutdown). For processes that start, do
    /// their work and end, such as a CronJob or a function in the cloud.
    ///
    /// Only the database says that nothing is due: this node's memory may be empty while rows are left. These are due and waited for:
    /// rows that other nodes hold, rows whose type is paused in this process by a route ([`TypePause`](super::TypePause)), and in mode
    /// `ordered` a failing event with all that is behind it. These are not: rows whose time has not come, an event that waits for
    /// another attempt among them; in mode `partitioned`
    /// rows behind a failing event of their key; rows that an [operator has paused](Self::pauses), and those that keep their order behind
    /// them; DEAD rows; rows that no transaction has committed yet. An event that no handler
    /// takes is due until [`unroutable`](super::DispatchConfig::unroutable) has put it off or made it DEAD.
    ///
    /// The whole takes no longer than `deadline` and a few seconds. Of it a quarter is kept for the events under way, or the drain
    /// timeout if that is shorter: no further event is read then. A handler that still runs at the deadline is dropped, and its
    /// event is handled again. A [`shutdown`](Self::shutdown) meanwhile ends it early.
    ///
    /// A standby waits for its turn. An outbox that only writes waits for others to deliver.
    ///
    /// # Errors
    /// The rest cannot be counted, or not within five seconds. The outbox is shut down all the same.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use pillarbox_core::handle::Delivery;
    /// # use pillarbox_engine::run::Outbox;
    /// # use pillarbox_memory::MemoryStore;
    /// # async fn send_receipt(_: Delivery) {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let outbox = Outbox::multi_node(MemoryStore::new()).handle_all(send_receipt).start().await?;
    /// let left = outbox.drain(Duration::from_secs(30)).await?;
    /// let exit_code = if left.is_complete() { 0 } else { 3 };
    /// println!("{left}");
    /// # assert_eq!(exit_code, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn drain(&self, deadline: Duration) -> Result<Drained, StoreError> {
        let span = self.shared.span.clone();
        self.drain_within(deadline).instrument(span).await
    }

    /// True if nothing is due but what operators have paused, as far as the database knows: what [`drain`](Self::drain) waits for, and tests do.
    ///
    /// # Errors
    /// The database's.
    ///
    /// ```
    /// # use pillarbox_core::handle::Delivery;
    /// # use pillarbox_engine::run::Outbox;
    /// # use pillarbox_memory::MemoryStore;
    /// # async fn send_receipt(_: Delivery) {}
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let outbox = Outbox::partitioned(MemoryStore::new()).handle_all(send_receipt).start().await?;
    /// assert!(outbox.nothing_is_due().await?);
    /// # outbox.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn nothing_is_due(&self) -> Result<bool, StoreError> {
        let (store, rules) = (self.store(), self.running.drain_rules);
        if store.fetch(&rules.probe()).await?.rows.is_empty() {
            return Ok(true);
        }
        let pauses = store.pauses().await?;
        Ok(!pauses.is_empty() && rules.are_all_paused(store, &pauses).await?)
    }

    async fn drain_within(&self, deadline: Duration) -> Result<Drained, StoreError> {
        let rules = self.running.drain_rules;
        let kept = rules.patience.min(deadline / KEPT_SHARE);
        let began = Instant::now();
        let complete = match began.checked_add(deadline - kept) {
            Some(latest) => timeout_at(latest, self.until_nothing_is_due()).await.ok().flatten(),
            None => self.until_nothing_is_due().await,
        };
        // Events that come after nothing was due have the time that is left.
        self.shutdown_within(deadline.saturating_sub(began.elapsed())).await;
        let counting = async {
            let left = match complete {
                Some(backlog) => rules.nothing_due(backlog, self.store().count_paused().await?),
                None => self.count_the_rest().await?,
            };
            let nodes = self.store().nodes().await?;
            let living = nodes.iter().filter(|node| node.lease_left.is_some());
            Ok(Drained { other_nodes: living.count(), ..left })
        };
        let left = timeout(COUNT_TIMEOUT, counting).await.unwrap_or_else(|_elapsed| {
            let message = "the database did not count what is left within five seconds";
            let error = StoreError::new(StoreErrorKind::Unavailable, operation::BACKLOG, message);
            Err(error.at(self.store().info().address.clone()))
        })?;
        tracing::info!(complete = left.is_complete(), %left, "the drain has ended");
        Ok(left)
    }

    /// Waits until the database says that nothing is due; `None` if the outbox is shut down before.
    async fn until_nothing_is_due(&self) -> Option<Backlog> {
        let waiting = async {
            let mut pause = MIN_PAUSE;
            let mut failing = false;
            loop {
                match self.backlog_if_nothing_is_due().await {
                    Ok(Some(backlog)) => return backlog,
                    Ok(None) => failing = false,
                    Err(error) => {
                        if !std::mem::replace(&mut failing, true) {
                            tracing::warn!(%error, "the database does not say whether events are due; asking again");
                        }
                    }
                }
                sleep(pause).await;
                pause = (pause * 2).min(MAX_PAUSE);
            }
        };
        self.running.stop.run_until_cancelled(waiting).await
    }

    async fn backlog_if_nothing_is_due(&self) -> Result<Option<Backlog>, StoreError> {
        if !self.nothing_is_due().await? {
            return Ok(None);
        }
        self.store().backlog().await.map(Some)
    }

    async fn count_the_rest(&self) -> Result<Drained, StoreError> {
        let rules = self.running.drain_rules;
        if let Some(backlog) = self.backlog_if_nothing_is_due().await? {
            return Ok(rules.nothing_due(backlog, self.store().count_paused().await?));
        }
        let blocked = rules.blocked(self.store()).await?;
        let Backlog { due, delayed, dead, .. } = self.store().backlog().await?;
        let paused = self.store().count_paused().await?.min(due);
        // One at least waits for no other, as long as any is due.
        let blocked = blocked.min((due - paused).saturating_sub(1));
        Ok(Drained { due: due - paused - blocked, blocked, delayed, dead, paused, other_nodes: 0 })
    }
}
