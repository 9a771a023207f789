//! The conditions that all stores have in common.

mod checks;
mod clock;
mod nodes;
mod unrouted;

use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::examine::{Check, Checked, Judgement};
use pillarbox_core::store::{
    Blocked, Dialect, FIRST_PAGE, Pause, PendingEvent, PendingFilter, PendingState, Store, refusal,
};
use tokio::time::timeout;

pub use checks::ALL;
pub(crate) use checks::{UNFINISHED, UNREACHABLE};

use crate::Doctor;
use nodes::Fleet;

/// Pending events that are looked at, the oldest first.
const PENDING: usize = 100;
/// Blocked keys that are looked at.
const BLOCKED: usize = 5;
/// Microseconds of a year.
const YEAR_MICROS: i64 = 365 * 24 * 3600 * 1_000_000;
/// Pauses that are named.
const PAUSES: usize = 5;

/// Examines an outbox through a view of its store.
pub(crate) async fn examine(doctor: &Doctor, store: &Arc<dyn Store>, results: &mut Vec<Checked>) {
    let Some(view) = store.examiner(doctor.statement_limit) else {
        common(doctor, &**store, results).await;
        return;
    };
    if common(doctor, &*view, results).await {
        // Where a part was lost, they are of this version all the same.
        let is_current = !results.iter().any(|checked| {
            // The remedy for older ones is a command.
            checked.check == &checks::SCHEMA
                && matches!(&checked.judgement, Judgement::Found { command, evidence }
                    if command.is_some() || evidence.contains(refusal::UPGRADE))
        });
        let found = view.examine(&doctor.thresholds).await;
        // Tables of another version have other indexes, and to create those of this release by hand would be wrong.
        results.extend(found.into_iter().map(|checked| match checked.check {
            check if !is_current && check.code.ends_with("-index-missing") => {
                check.not_checked("the tables are of another version than those of this release")
            }
            _ => checked,
        }));
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
    checkup.backlog(fleet.as_ref(), results).await;
    checkup.unrouted(results).await;
    checkup.paused(fleet.as_ref(), results).await;
    checkup.blocked(fleet.as_ref(), results).await;
    checkup.held(fleet.as_ref(), results).await;
    true
}

/// Events whose time is more than a year away.
fn far_ahead(pending: &[PendingEvent], now: Timestamp) -> Option<String> {
    let is_far = |due: &Timestamp| due.as_micros().saturating_sub(now.as_micros()) > YEAR_MICROS;
    let far: Vec<_> = pending.iter().filter_map(|event| Some((event, event.due_at.filter(is_far)?))).collect();
    let (first, due) = far.first()?;
    Some(format!(
        "of the {} oldest pending events: {}; row {}, of type `{}`, is due at {due}",
        pending.len(),
        far.len(),
        first.seq,
        in_line(&first.event_type)
    ))
}

/// Text of a row, which must not look like a line of evidence of its own.
fn in_line(text: &str) -> String {
    text.replace(char::is_control, " ")
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
        let both: [&'static Check; 2] = [&checks::SERVER, &checks::SCHEMA];
        match timeout(limit, self.store.check()).await {
            Ok(Ok(())) => results.extend(both.map(Check::healthy)),
            Ok(Err(error)) if error.kind() == StoreErrorKind::Schema => {
                results.push(checks::SERVER.not_checked("the tables are not those of this release"));
                let (text, info) = (error.to_string(), self.store.info());
                let found = checks::SCHEMA.found(refusal::of_table(&text, &info.table));
                // The address of a file is all that opens it. That of a server lacks the user, and a password has no place here.
                let file = (info.dialect == Dialect::SQLITE).then_some(&*info.address);
                let command = refusal::migrate(file, &info.table);
                results.push(if text.contains(refusal::MIGRATE) { found.with_command(command) } else { found });
            }
            Ok(Err(error)) if error.kind() == StoreErrorKind::Config => {
                results.push(checks::SERVER.found(error.to_string()));
                results.push(checks::SCHEMA.not_checked("the server or its tables are not suitable"));
            }
            Ok(Err(error)) => results.extend(both.map(|check| check.not_checked(error.to_string()))),
            Err(_elapsed) => {
                results.extend(both.map(|check| check.not_checked(format!("no answer within {limit:?}"))));
            }
        }
    }

    /// Judges the nodes, and returns them for other checks.
    async fn fleet(&self, results: &mut Vec<Checked>) -> Option<Fleet> {
        let judged: [&'static Check; 5] =
            [&checks::NO_NODE, &checks::EARLIER, &checks::OVERDUE, &checks::LEASE_ENDED, &checks::UNOWNED];
        match self.ask(self.store.nodes()).await {
            Ok(nodes) => {
                let fleet = Fleet::new(nodes);
                results.push(checks::NO_NODE.judge(fleet.nobody()));
                results.push(checks::EARLIER.judge(fleet.earlier()));
                results.push(checks::OVERDUE.judge(fleet.overdue()));
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

    async fn backlog(&self, fleet: Option<&Fleet>, results: &mut Vec<Checked>) {
        match self.ask(self.store.backlog()).await {
            Ok(backlog) => {
                let limits = &self.doctor.thresholds;
                let late = backlog.oldest_due.filter(|age| *age >= limits.lag_after);
                let seconds = |age: Duration| Duration::from_secs(age.as_secs());
                results.push(checks::LATE.judge(late.map(|age| {
                    let nodes = fleet.map(|fleet| format!("; {}", fleet.work())).unwrap_or_default();
                    format!("due events: {}; the oldest has waited for {:?}{nodes}", backlog.due, seconds(age))
                })));
                let dead = backlog.dead > 0 && backlog.dead >= limits.dead;
                results.push(checks::DEAD.judge(dead.then(|| format!("DEAD events: {}", backlog.dead))));
            }
            Err(reason) => {
                let both = [&checks::LATE, &checks::DEAD].map(|check| check.not_checked(reason.clone()));
                results.extend(both);
                // Behind a lock nothing else would be found. Tables of another version explain themselves.
                let is_of_the_schema = |checked: &Checked| {
                    checked.check == &checks::SCHEMA && matches!(checked.judgement, Judgement::Found { .. })
                };
                if results.iter().any(is_of_the_schema) {
                    return;
                }
                results.push(UNFINISHED.found(format!("the events could not be counted: {reason}")));
            }
        }
    }

    /// Looks for events that nobody takes among the oldest that are tried again, without their payloads.
    async fn unrouted(&self, results: &mut Vec<Checked>) {
        let retrying = PendingFilter::new().state(PendingState::Retrying);
        // One more than is looked at, which tells whether there are others behind.
        results.push(match self.ask(self.store.pending(&retrying, FIRST_PAGE, unrouted::LOOKED_AT + 1)).await {
            Ok(retrying) => unrouted::judge(&retrying),
            Err(reason) => checks::UNROUTED.not_checked(reason),
        });
    }

    async fn paused(&self, fleet: Option<&Fleet>, results: &mut Vec<Checked>) {
        let pauses = match self.ask(self.store.pauses()).await {
            Ok(pauses) if pauses.is_empty() => return results.push(checks::PAUSED.healthy()),
            Ok(pauses) => pauses,
            Err(reason) => return results.push(checks::PAUSED.not_checked(reason)),
        };
        results.push(match self.ask(self.store.count_paused()).await {
            Ok(0) => checks::PAUSED.healthy(),
            Ok(due) => {
                let names = pauses.iter().take(PAUSES).map(|Pause { kind, name, since, .. }| {
                    format!("the {kind} {} is paused since {since}", in_line(name))
                });
                let more = pauses.len().saturating_sub(PAUSES);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                let names: Vec<String> = names.collect();
                let behind = if fleet.is_some_and(Fleet::keeps_order_of_keys) {
                    ", and what waits behind them in their keys"
                } else {
                    ""
                };
                checks::PAUSED.found(format!("due events that are held: {due}{behind}; {}{more}", names.join("; ")))
            }
            Err(reason) => checks::PAUSED.not_checked(reason),
        });
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
        results.push(match self.ask(self.store.blocked(FIRST_PAGE, BLOCKED)).await {
            Ok(heads) => {
                let all: Vec<String> = heads
                    .iter()
                    .map(|head| {
                        let state = if head.dead { "is DEAD" } else { "waits for another attempt" };
                        let Blocked { seq, attempts, waiting, .. } = head;
                        let attempts = match attempts {
                            0 => "without an attempt that counts".to_owned(),
                            1 => "after 1 attempt".to_owned(),
                            attempts => format!("after {attempts} attempts"),
                        };
                        format!("row {seq} {state} {attempts}, and behind it: {waiting}")
                    })
                    .collect();
                checks::BLOCKED.judge((!all.is_empty()).then(|| all.join("; ")))
            }
            Err(reason) => checks::BLOCKED.not_checked(reason),
        });
    }

    /// Looks at the oldest pending events for those that a living node holds for long, and those whose time is far away. Rows name their
    /// holder in mode `multi_node`, and in the others where an attempt was announced.
    async fn held(&self, fleet: Option<&Fleet>, results: &mut Vec<Checked>) {
        let all = PendingFilter::new();
        let pending = self.ask(self.store.pending(&all, FIRST_PAGE, PENDING)).await;
        let now = self.ask(self.store.now()).await;
        let (pending, now) = match (pending, now) {
            (Ok(pending), Ok(now)) => (pending, now),
            (Err(reason), _) | (_, Err(reason)) => {
                let both = [&checks::HELD, &checks::FAR].map(|check| check.not_checked(reason.clone()));
                return results.extend(both);
            }
        };
        let held = pending.iter().find_map(|event| {
            let node = event.held_by.as_deref().filter(|node| fleet.is_some_and(|fleet| fleet.lives(node)))?;
            let age = now.since(event.due_at.unwrap_or(event.created_at));
            (age >= self.doctor.thresholds.held_after).then(|| {
                let age = Duration::from_secs(age.as_secs());
                format!("row {} has been due for {age:?} and is held by node {}", event.seq, in_line(node))
            })
        });
        results.push(checks::HELD.judge(held));
        results.push(checks::FAR.judge(far_ahead(&pending, now)));
    }
}
