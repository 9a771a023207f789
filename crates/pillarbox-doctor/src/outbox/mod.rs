//! The conditions that all stores have in common.

mod checks;
mod clock;
mod nodes;

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::examine::{Check, Checked};
use pillarbox_core::store::{PendingFilter, Store};
use tokio::time::timeout;

pub use checks::ALL;
pub(crate) use checks::{UNFINISHED, UNREACHABLE};

use crate::Doctor;
use nodes::Fleet;

/// Pending events that are looked at, the oldest first.
const PENDING: usize = 100;
/// Blocked keys that are looked at.
const BLOCKED: usize = 5;

/// Examines an outbox through a view of its store.
pub(crate) async fn examine(doctor: &Doctor, store: &Arc<dyn Store>, results: &mut Vec<Checked>) {
    let Some(view) = store.examiner(doctor.statement_limit) else {
        common(doctor, &**store, results).await;
        return;
    };
    if common(doctor, &*view, results).await {
        results.extend(view.examine(&doctor.thresholds).await);
    }
    view.close().await;
}

/// Makes the checks that need nothing but the port. False if the database does not answer.
async fn common<S: Store + ?Sized>(doctor: &Doctor, store: &S, results: &mut Vec<Checked>) -> bool {
    let checkup = Checkup { doctor, store };
    // The first call connects as well.
    match timeout(doctor.statement_limit * 3, store.now()).await {
        Ok(Ok(_)) => results.push(UNREACHABLE.healthy()),
        Ok(Err(error)) => {
            results.push(UNREACHABLE.found(error.to_string()));
            return false;
        }
        Err(_elapsed) => {
            results.push(UNREACHABLE.found(format!("no answer within {:?}", doctor.statement_limit * 3)));
            return false;
        }
    }
    checkup.clock(results).await;
    checkup.schema(results).await;
    let fleet = checkup.fleet(results).await;
    checkup.backlog(results).await;
    checkup.blocked(fleet.as_ref(), results).await;
    checkup.held(fleet.as_ref(), results).await;
    true
}

/// The checks of one outbox.
struct Checkup<'a, S: ?Sized> {
    doctor: &'a Doctor,
    store: &'a S,
}

impl<S: Store + ?Sized> Checkup<'_, S> {
    /// Bounds a call that the database does not bound by itself.
    async fn ask<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, String> {
        let limit = self.doctor.statement_limit + Duration::from_millis(500);
        match timeout(limit, call).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_elapsed) => Err(format!("no answer within {limit:?}")),
        }
    }

    async fn clock(&self, results: &mut Vec<Checked>) {
        let before = self.doctor.clock.now();
        let answer = self.ask(self.store.now()).await;
        let (after, limit) = (self.doctor.clock.now(), self.doctor.thresholds.clock_offset);
        results.push(match answer {
            Ok(now) => checks::CLOCK.judge(clock::offset(now, before, after, limit)),
            Err(reason) => checks::CLOCK.not_checked(reason),
        });
    }

    async fn schema(&self, results: &mut Vec<Checked>) {
        let limit = self.doctor.statement_limit + Duration::from_millis(500);
        results.push(match timeout(limit, self.store.check()).await {
            Ok(Ok(())) => checks::SCHEMA.healthy(),
            Ok(Err(error)) if error.kind() == StoreErrorKind::Schema => {
                checks::SCHEMA.found(error.to_string()).with_command("pillarbox migrate")
            }
            Ok(Err(error)) => checks::SCHEMA.not_checked(error.to_string()),
            Err(_elapsed) => checks::SCHEMA.not_checked(format!("no answer within {limit:?}")),
        });
    }

    /// Judges the nodes, and returns them for other checks.
    async fn fleet(&self, results: &mut Vec<Checked>) -> Option<Fleet> {
        let judged: [&'static Check; 3] = [&checks::NO_NODE, &checks::LEASE_ENDED, &checks::UNOWNED];
        match self.ask(self.store.nodes()).await {
            Ok(nodes) => {
                let fleet = Fleet::new(nodes);
                results.push(checks::NO_NODE.judge(fleet.nobody()));
                results.push(checks::LEASE_ENDED.judge(fleet.ended()));
                results.push(checks::UNOWNED.judge(fleet.unowned()));
                Some(fleet)
            }
            Err(reason) => {
                results.extend(judged.map(|check| check.not_checked(reason.clone())));
                None
            }
        }
    }

    async fn backlog(&self, results: &mut Vec<Checked>) {
        match self.ask(self.store.backlog()).await {
            Ok(backlog) => {
                let limits = &self.doctor.thresholds;
                let late = backlog.oldest_due.filter(|age| *age >= limits.lag_after);
                let seconds = |age: Duration| Duration::from_secs(age.as_secs());
                results.push(checks::LATE.judge(late.map(|age| {
                    format!("{} events are due; the oldest has waited for {:?}", backlog.due, seconds(age))
                })));
                let dead = backlog.dead > 0 && backlog.dead >= limits.dead;
                results.push(checks::DEAD.judge(dead.then(|| format!("{} events are DEAD", backlog.dead))));
            }
            Err(reason) => {
                let both = [&checks::LATE, &checks::DEAD].map(|check| check.not_checked(reason.clone()));
                results.extend(both);
            }
        }
    }

    /// Only in mode `partitioned` do later events wait.
    async fn blocked(&self, fleet: Option<&Fleet>, results: &mut Vec<Checked>) {
        let Some(fleet) = fleet.filter(|fleet| fleet.nobody().is_none()) else {
            results.push(checks::BLOCKED.not_checked("no node is alive whose mode would tell whether keys wait"));
            return;
        };
        if !fleet.keeps_order_of_keys() {
            results.push(checks::BLOCKED.healthy());
            return;
        }
        results.push(match self.ask(self.store.blocked(0, BLOCKED)).await {
            Ok(heads) => {
                let all: Vec<String> = heads
                    .iter()
                    .map(|head| {
                        let state = if head.dead { "DEAD" } else { "waits for another attempt" };
                        format!("row {} is {state} after {} attempts, {} wait", head.seq, head.attempts, head.waiting)
                    })
                    .collect();
                checks::BLOCKED.judge((!all.is_empty()).then(|| all.join("; ")))
            }
            Err(reason) => checks::BLOCKED.not_checked(reason),
        });
    }

    /// Rows name their holder in mode `multi_node`, and in the others where an attempt was announced.
    async fn held(&self, fleet: Option<&Fleet>, results: &mut Vec<Checked>) {
        let all = PendingFilter::new();
        let pending = self.ask(self.store.pending(&all, 0, PENDING)).await;
        let now = self.ask(self.store.now()).await;
        results.push(match (pending, now) {
            (Ok(pending), Ok(now)) => {
                let held = pending.iter().find_map(|event| {
                    let node = event.held_by.as_deref().filter(|node| fleet.is_some_and(|fleet| fleet.lives(node)))?;
                    let age = now.since(event.due_at.unwrap_or(event.created_at));
                    (age >= self.doctor.thresholds.held_after).then(|| {
                        let age = Duration::from_secs(age.as_secs());
                        format!("row {} has been due for {age:?} and is held by node {node}", event.seq)
                    })
                });
                checks::HELD.judge(held)
            }
            (Err(reason), _) | (_, Err(reason)) => checks::HELD.not_checked(reason),
        });
    }
}
