use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::gate::{Gate, Seen};
use super::sweep::{Found, Sweep};
use super::{Horizon, SLOW};
use crate::clock::Random;
use crate::error::StoreError;
use crate::observe::Counters;
use crate::ownership::{Fence, Mode, Past, Tenure};
use crate::queue::{Intake, Lanes};
use crate::retry::{Pause, jittered};
use crate::run::ClaimConfig;
use crate::settle::{Change, Verdict, clean_error};
use crate::store::{BrokenRow, Fetch, Fetched, FetchedRow, Row, Store};

/// Reads pending rows into the cold lane, as many as fit, for as long as this node owns them.
#[derive(Debug)]
pub(crate) struct Claimer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) config: ClaimConfig,
    pub(crate) tenure: Tenure,
    pub(crate) gate: Gate,
    pub(crate) seen: Seen,
    pub(crate) horizon: Horizon,
    /// Rows still to be read that the owner before may have died of.
    pub(crate) suspects: usize,
    /// Where rows that make no event get their verdict.
    pub(crate) verdicts: mpsc::Sender<Verdict>,
    pub(crate) stop: CancellationToken,
}

impl Claimer {
    /// Runs until it is told to stop. Dropping a fetch half-way is safe: it holds nothing in the database.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(self.claim_for_ever()).await;
    }

    async fn claim_for_ever(&mut self) {
        // A term begins with a look: whatever the owner before left behind is due now.
        let mut sweep = if self.tenure.mode == Mode::Ordered { Sweep::in_order() } else { Sweep::new() };
        sweep.begin(None, true, Instant::now());
        let mut interval = self.config.min_interval;
        let mut pause = Pause::default();
        loop {
            let room = self.lanes.cold_room().await;
            if !sweep.is_under_way() {
                let latest = Instant::now() + jittered(interval, &*self.random);
                let look = self.intake.pulse.look.until(latest, self.intake.lookout.wait(latest)).await;
                sweep.begin(look.lowest, Instant::now() >= latest, Instant::now());
            }
            let held = self.gate.held(&mut self.seen, Instant::now());
            if held.reopened {
                sweep.start_over(Instant::now());
            }
            if let Some(next) = held.next {
                self.intake.lookout.due_in(next.saturating_duration_since(Instant::now()));
            }
            match self.fetch(&mut sweep, room.min(self.config.batch), held.types).await {
                Ok(found) => {
                    if pause.is_over() {
                        tracing::info!("the outbox table can be read again");
                    }
                    interval =
                        if found { self.config.min_interval } else { (interval * 2).min(self.config.max_interval) };
                }
                Err(error) => {
                    if pause.is_first() {
                        tracing::warn!(%error, "the outbox table cannot be read; trying again until it can");
                    }
                    self.intake.pulse.look.sleep(pause.next(&*self.random)).await;
                }
            }
        }
    }

    /// Fetches once; says whether anything new was found.
    async fn fetch(
        &mut self,
        sweep: &mut Sweep,
        limit: usize,
        without_types: Vec<Box<str>>,
    ) -> Result<bool, StoreError> {
        let intake = Arc::clone(&self.intake);
        let (began, complete) = (Instant::now(), self.horizon.complete());
        let sight = intake.registry.sight();
        // Behind the cursor only rows with a due time can be met again; a claim meets its own anywhere, since rows from
        // memory are its own as well.
        let fence = self.tenure.fence();
        let passed = if sweep.cursor().is_some() && fence == Fence::Table { i64::MAX } else { i64::MIN };
        let exclude = sight.exclude(passed);
        let held = exclude.iter().min().copied();
        let fetch = Fetch { above: sweep.above(), exclude, limit, scope: None, without_types };
        let call = match fence {
            Fence::Table | Fence::Partition => self.store.fetch(&fetch),
            Fence::Row => self.store.claim(&self.tenure.node, &fetch),
        };
        let span = tracing::debug_span!("claim", above = fetch.above, limit);
        let call = intake.meters.claim.measure(call.instrument(span), |fetched| fetched.rows.len());
        let Fetched { mut rows, next_due, .. } = intake.pulse.look.ask(call).await?;
        if self.tenure.mode == Mode::Ordered {
            rows.sort_unstable_by_key(FetchedRow::seq);
        }
        debug_assert!(rows.len() <= limit, "I7: a fetch returns at most its limit");
        let full = rows.len() >= limit;
        let untimed = || rows.iter().filter(|row| !row.is_timed()).map(FetchedRow::seq);
        let (read, took) = (untimed().min().zip(untimed().max()), began.elapsed());
        sweep.advance(Found { read, held, full, complete, took }, Instant::now());
        if let Some(delay) = next_due {
            self.intake.lookout.due_in(delay);
        }
        let admitted = sight.admit(rows.iter().map(|row| (row.seq(), row.is_timed(), 0)));
        drop(sight);
        // Rows that are in memory already are no reason to look again soon.
        let found = admitted.contains(&true);
        self.queue(rows, &admitted).await;
        if took > SLOW {
            self.horizon.advance(&*self.store).await?;
        }
        Ok(found)
    }

    async fn queue(&mut self, rows: Vec<FetchedRow>, admitted: &[bool]) {
        let mut good = Vec::with_capacity(rows.len());
        for (row, admitted) in rows.into_iter().zip(admitted) {
            self.intake.lookout.found(row.seq());
            match row {
                _ if !admitted => {}
                FetchedRow::Row(row) => {
                    let past = self.past(&row);
                    good.push((row, past));
                }
                // The channel closes only when the term is over; the row then stays as it is.
                FetchedRow::Broken(broken) => drop(self.verdicts.send(condemn(&broken)).await),
            }
        }
        Counters::add(&self.intake.counters.cold, good.len() as u64);
        // Closed lanes mean that the term ends, which gives up everything that is held.
        self.lanes.push_cold(good);
    }
}

impl Claimer {
    /// After an owner died, the first rows read are suspected of having killed it: as many as it can have had in memory.
    fn past(&mut self, row: &Row) -> Past {
        let past = Past::read(row.locked_by.as_deref(), &self.tenure.node);
        if self.suspects == 0 {
            return past;
        }
        self.suspects -= 1;
        if past == Past::Clean { Past::Suspect } else { past }
    }
}

/// A row that makes no event goes DEAD by itself, so that it stops nobody else.
pub(super) fn condemn(row: &BrokenRow) -> Verdict {
    let error = clean_error(&format!("the row is not an event: {}", row.reason));
    Verdict { seq: row.seq, expected_attempts: row.attempts, change: Change::Dead { attempts: row.attempts, error } }
}
