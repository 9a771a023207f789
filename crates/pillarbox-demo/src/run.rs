use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use pillarbox::event::Stamp;
use pillarbox::run::Role;
use pillarbox::{Delivery, Outbox};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::order::{Ending, OrderPlaced, number_in, order};
use crate::shop::Shop;
use crate::summary::Summary;
use pillarbox_program::failure::Failure;
use pillarbox_program::stopwatch::Stopwatch;
use pillarbox_program::{progress, report};

/// Customers ordering at once: as many as the outbox handles at once, so that the demo shows latency and not a queue.
const WRITERS: usize = 4;
/// The longest wait for another process's lease. That of a killed process ends after 15 s; a longer one belongs to a
/// live process.
const OWNER_MAY_LIVE: Duration = Duration::from_secs(25);
/// The time without any progress after which undelivered events count as lost.
const NO_PROGRESS: Duration = Duration::from_secs(60);

/// One run of the demo, shared by its writers and its handler.
#[derive(Debug)]
pub(crate) struct Run {
    shop: Arc<dyn Shop>,
    /// Tells the orders and receipts of this run from those of others.
    id: String,
    orders: u32,
    next: AtomicU32,
    rolled_back: AtomicU32,
    stopwatch: Stopwatch,
    bar: ProgressBar,
    interrupt: CancellationToken,
}

impl Run {
    pub(crate) fn new(shop: Arc<dyn Shop>, orders: u32, interrupt: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            shop,
            id: Stamp::system().next_id().to_string(),
            orders,
            next: AtomicU32::new(0),
            rolled_back: AtomicU32::new(0),
            stopwatch: Stopwatch::new(orders as usize),
            bar: progress::bar(0, "delivered"),
            interrupt,
        })
    }

    /// Places the orders, waits until everything is delivered, stops, and asks the database.
    pub(crate) async fn go(self: Arc<Self>) -> Result<Summary, Failure> {
        let leftover = self.shop.pending_orders().await?;
        if !leftover.is_empty() {
            report::note(&format!("events left from an earlier run, delivered too: {}", leftover.len()));
        }
        self.bar.set_length(u64::from(self.orders - self.orders / 20) + leftover.len() as u64);
        let outbox = self.start().await?;
        let done = async {
            self.wait_for_ownership(&outbox).await?;
            let started = Instant::now();
            self.place_orders(&outbox).await?;
            self.wait_until_delivered(&outbox).await?;
            Ok::<_, Failure>(started.elapsed())
        }
        .await;
        // The node leaves in any case, so that the next run need not wait for its lease.
        outbox.shutdown().await;
        self.bar.finish_and_clear();
        let seconds = done?.as_secs_f64();
        let audit = self.shop.audit(&self.id, &leftover).await?;
        let (store, interrupted) = (self.shop.store(), self.interrupt.is_cancelled());
        Ok(Summary {
            store: format!("{} {}", store.info().dialect, store.info().address),
            orders: self.next.load(Ordering::Relaxed).min(self.orders),
            rolled_back: self.rolled_back.load(Ordering::Relaxed),
            events_committed: audit.events_committed,
            delivered: audit.delivered,
            duplicates: audit.duplicates(),
            lost: audit.vanished + if interrupted { 0 } else { audit.pending },
            hot: audit.hot,
            cold: audit.cold(),
            seconds,
            commit_to_handler_us: self.stopwatch.latency(),
            phantoms: audit.phantoms,
            leftover: leftover.len(),
            interrupted,
        })
    }

    async fn start(self: &Arc<Self>) -> Result<Outbox, Failure> {
        let run = Arc::clone(self);
        let handler = move |event: OrderPlaced, delivery: Delivery| {
            let run = Arc::clone(&run);
            async move { run.write_receipt(&event, &delivery).await }
        };
        Ok(Outbox::single_node(self.shop.store()).handle(handler).start().await?)
    }

    async fn place_orders(self: &Arc<Self>, outbox: &Outbox) -> Result<(), Failure> {
        let mut writers = JoinSet::new();
        for _ in 0..WRITERS {
            let (run, outbox) = (Arc::clone(self), outbox.clone());
            writers.spawn(async move { run.write_orders(&outbox).await });
        }
        while let Some(written) = writers.join_next().await {
            // The first failure ends the run; the other writers are dropped, and their transactions rolled back.
            written??;
        }
        Ok(())
    }

    async fn write_orders(&self, outbox: &Outbox) -> Result<(), Failure> {
        while !self.interrupt.is_cancelled() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.orders {
                break;
            }
            let ending = Ending::of(number);
            let ended = self.shop.place(outbox, &order(&self.id, number), ending).await?;
            if ending == Ending::RolledBack {
                self.rolled_back.fetch_add(1, Ordering::Relaxed);
            } else {
                self.stopwatch.committed(number as usize, ended);
            }
        }
        Ok(())
    }

    async fn write_receipt(&self, event: &OrderPlaced, delivery: &Delivery) -> Result<(), Failure> {
        if let Some(number) = number_in(&self.id, &event.order_id) {
            self.stopwatch.handled(number, Instant::now());
        }
        self.shop.insert_receipt(&self.id, &event.order_id, delivery.path()).await?;
        self.bar.inc(1);
        Ok(())
    }

    /// Waits for the lease of a run that was killed. Until it ends, that run's events must not be touched.
    async fn wait_for_ownership(&self, outbox: &Outbox) -> Result<(), Failure> {
        let Role::Standby { owner } = outbox.role() else { return Ok(()) };
        report::note(&format!("waiting for the lease of {owner} to end"));
        tokio::select! {
            _ = outbox.wait_for_role(|role| matches!(role, Role::Active { .. })) => Ok(()),
            () = self.interrupt.cancelled() => Ok(()),
            () = sleep(OWNER_MAY_LIVE) => Err(Failure::OwnerAlive { owner: owner.to_string() }),
        }
    }

    /// Waits until the outbox holds no pending events, or makes no progress.
    async fn wait_until_delivered(&self, outbox: &Outbox) -> Result<(), Failure> {
        const LOOK_AGAIN: Duration = Duration::from_millis(20);
        let mut before = None;
        let mut moved = Instant::now();
        while !self.interrupt.is_cancelled() {
            let counts = outbox.store().counts().await?;
            if counts.pending() == 0 {
                break;
            }
            if before.replace(counts) != Some(counts) {
                moved = Instant::now();
            } else if moved.elapsed() > NO_PROGRESS {
                report::note(&format!("nothing moves any more; giving up; events still pending: {}", counts.pending()));
                break;
            }
            tokio::select! {
                () = sleep(LOOK_AGAIN) => {}
                () = self.interrupt.cancelled() => {}
            }
        }
        Ok(())
    }
}
