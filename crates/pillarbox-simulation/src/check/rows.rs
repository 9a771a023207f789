use pillarbox_core::event::partition_of;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::{Change as Becomes, Status, Verdict};
use pillarbox_core::store::{Purgeable, RowId};
use tokio::time::Instant;

use super::ledger::{Change, event_number, handler_number};
use super::{Checker, Completion, Line, Op, Violation};

impl Checker {
    /// Checks that the statement may have changed this row so.
    pub(super) fn check_row(&mut self, op: &Op, change: Change) -> Result<(), Violation> {
        let bad = |invariant, why: &str| {
            Err(Violation::new(invariant, format!("{why}: {} became {} by {op:?}", shown(change.0), shown(change.1))))
        };
        let (fits, invariant, why) = match (op, change) {
            (Op::Settle(node, fence, verdicts), (Some(before), after)) => {
                let Some(verdict) = verdicts.iter().find(|verdict| is(&verdict.row, &before)) else {
                    return bad("I6", "a settle changed a row that it does not name");
                };
                if !self.members.owns(node, *fence, &before, self.ledger.holder(&before)) {
                    return bad("I6", "a settle of a node that is not the owner changed a row");
                }
                return self
                    .check_verdict(node, verdict, &before, after.as_ref())
                    .or_else(|(invariant, why)| bad(invariant, &why));
            }
            (Op::Begin(node, fence, attempt), (Some(before), Some(after))) => {
                let owned = self.members.owns(node, *fence, &before, self.ledger.holder(&before));
                if !is(&attempt.row, &before) || !owned {
                    return bad("I6", "an attempt was announced on a row that is not the node's");
                }
                let call = self.calls.of(before.event, before.handler);
                call.announced += 1;
                let fits = before.status.is_pending()
                    && Line { holder: after.holder, attempts: attempt.attempts, ..before } == after
                    && attempt.attempts >= before.attempts;
                (fits, "I4", "an announced attempt changed more than it may")
            }
            (Op::Claim(node), (Some(before), Some(after))) => {
                let free = match self.ledger.holder(&before) {
                    None | Some("?" | "!") => true,
                    Some(holder) => named(holder) == node.as_str(),
                };
                let same = Line { holder: after.holder, ..before } == after && before.status.is_pending();
                let is_own = self.ledger.holder(&after).is_some_and(|holder| holder.starts_with(node.as_str()));
                (free && same && is_own, "I2", "a claim took what it may not")
            }
            (Op::Release(node, rows), (Some(before), Some(after))) => {
                let own = self.ledger.holder(&before).is_some_and(|holder| named(holder) == node.as_str());
                let is_named = rows.iter().any(|row| is(row, &before));
                let same = Line { holder: 0, ..before } == after;
                (own && is_named && same, "I6", "a release freed what it may not")
            }
            (Op::Reclaim(_), (Some(before), Some(after))) => {
                let holder = self.ledger.holder(&before).unwrap_or_default();
                let mark = if holder.ends_with('!') { "!" } else { "?" };
                let fits = Line { holder: after.holder, ..before } == after
                    && self.ledger.holder(&after) == Some(mark)
                    && !self.members.is_registered(&NodeId::from_stored(named(holder)));
                (fits, "I2", "a row was taken from a living node")
            }
            (Op::AssignPartitions(_), (Some(before), Some(after))) => {
                let right = self.events.get(before.event as usize).map(|event| partition_of(event.hashed()));
                let fits = before.partition.is_none() && after.partition == right;
                let same = Line { partition: after.partition, ..before } == after;
                (fits && same, "I3", "a row got a partition that is not its own")
            }
            (Op::PromoteDue(rows), (Some(before), Some(after))) => {
                let is_named = rows.iter().any(|row| is(row, &before));
                let due = before.due.is_some_and(|due| due <= self.time) && before.status.is_pending();
                let same = Line { due: None, ..before } == after;
                (is_named && due && same, "I4", "a row lost its due time before it was due")
            }
            (Op::Replay(seqs), (Some(before), Some(after))) if before.status == Status::Dead => {
                let fits = seqs.contains(&before.seq) && after.status == Status::New && after.attempts == 0;
                self.calls.of(before.event, before.handler).replay();
                (fits, "I4", "a replay changed a row it may not")
            }
            (Op::Discard(seqs), (Some(before), None)) => {
                let fits = before.status == Status::Dead && seqs.contains(&before.seq);
                (fits, "I4", "a row changed that had to stay")
            }
            (Op::RetryNow(seqs), (Some(before), Some(after))) => {
                let fits = before.status.is_pending() && Line { due: after.due, ..before } == after;
                (fits && seqs.contains(&before.seq), "I4", "a retry by an operator changed more than a due time")
            }
            (Op::Cancel(seqs), (Some(before), Some(after))) => {
                let over = Line { status: Status::Done, holder: 0, ..before };
                let fits = before.status.is_pending() && over == after && seqs.contains(&before.seq);
                self.cancelled.insert((before.seq, before.event), Instant::now());
                (fits, "I4", "a cancellation changed what it may not")
            }
            (Op::Purge(what), (Some(before), None)) => {
                let fits = match what {
                    Purgeable::Done => before.status == Status::Done,
                    Purgeable::Dead => before.status == Status::Dead,
                    Purgeable::All => true,
                };
                (fits, "I4", "a purge removed a row it may not")
            }
            (Op::Commit(_, completions), (Some(before), after)) => {
                let Some(completion) = completions.iter().find(|completion| is(&completion.verdict.row, &before))
                else {
                    return bad("I4", "a commit changed a row that it does not complete");
                };
                let Completion { node, fence, verdict } = completion;
                if !self.members.owns(node, *fence, &before, self.ledger.holder(&before)) {
                    return bad("I6", "a transaction of a node that is not the owner completed a row");
                }
                self.calls.of(before.event, before.handler).committed_by(node);
                if let Some(unrecorded) = self.overtaken_by(node, &before) {
                    let what = format!("it overtook the verdict on e{}", unrecorded.event);
                    return bad("I3", &what);
                }
                return self
                    .check_verdict(node, verdict, &before, after.as_ref())
                    .or_else(|(invariant, why)| bad(invariant, &why));
            }
            (Op::Commit(rows, _), (None, Some(after))) => {
                let written = rows.contains(&(after.seq, after.event, after.handler));
                let fits = written && after.status == Status::New && after.attempts == 0;
                (fits, "I1", "a commit brought a row that its transaction had rolled back, or never written")
            }
            (Op::Foreign(event), (None, Some(after))) => {
                (after.event == *event, "I4", "a row changed that had to stay")
            }
            _ => (false, "I4", "a row changed that had to stay"),
        };
        if fits { Ok(()) } else { bad(invariant, why) }
    }

    /// Checks that a verdict may have changed the row so.
    fn check_verdict(
        &mut self,
        node: &NodeId,
        verdict: &Verdict,
        before: &Line,
        after: Option<&Line>,
    ) -> Result<(), (&'static str, String)> {
        if !before.status.is_pending() {
            return Err(("I4", "a settle changed a terminal row".to_owned()));
        }
        if before.attempts != verdict.expected.attempts {
            return Err(("I5", "a verdict was recorded on other attempts than it expects".to_owned()));
        }
        if before.replays != verdict.expected.replays {
            return Err(("I5", "a verdict was recorded that was decided before a replay".to_owned()));
        }
        let max_attempts = self.rules(node).max_attempts;
        let calls = self.calls.of(before.event, before.handler);
        let becomes = after.map(|after| after.status);
        match &verdict.change {
            Becomes::Done | Becomes::DeliveredAs(_) | Becomes::Rescued { .. } | Becomes::Remove
                if !calls.is_handled() =>
            {
                Err(("I9", "an event is DONE, and no call of its handler made it so".to_owned()))
            }
            Becomes::Done | Becomes::DeliveredAs(_) | Becomes::Rescued { .. } if becomes == Some(Status::Done) => {
                Ok(())
            }
            Becomes::Remove if becomes.is_none() => Ok(()),
            Becomes::Retry { attempts, .. }
            | Becomes::RetryInPlace { attempts, .. }
            | Becomes::Dead { attempts, .. }
            | Becomes::Rescued { attempts, .. }
                if after.is_some_and(|after| after.attempts != *attempts) =>
            {
                Err(("I5", format!("{attempts} attempts were to be recorded")))
            }
            Becomes::Retry { attempts, .. } | Becomes::RetryInPlace { attempts, .. }
                if becomes == Some(Status::Retry) =>
            {
                calls.justify(*attempts)
            }
            Becomes::Dead { attempts, .. } if becomes == Some(Status::Dead) => {
                if *attempts < max_attempts && !calls.is_hopeless() {
                    return Err(("I5", format!("an event is DEAD after {attempts} attempts of {max_attempts}")));
                }
                calls.justify(*attempts)
            }
            _ => Err(("I4", "a row is in another state than its verdict says".to_owned())),
        }
    }
}

fn is(row: &RowId, line: &Line) -> bool {
    row.seq == line.seq
        && event_number(row.event_id.as_str()) == line.event
        && handler_number(row.handler.as_deref()) == line.handler
}

/// The node that a text in `locked_by` names.
fn named(holder: &str) -> &str {
    holder.strip_suffix('!').unwrap_or(holder)
}

fn shown(line: Option<Line>) -> String {
    line.map_or_else(|| "no row".to_owned(), |line| format!("{line:?}"))
}
