use serde::Serialize;

use crate::shop::Audit;
use pillarbox_console::report::{grouped, micros, rate, rounded};
use pillarbox_console::stopwatch::Latency;

/// The result of a run.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    /// Kind and address of the database.
    pub(crate) store: String,
    /// Orders begun.
    pub(crate) orders: u32,
    /// Those of them rolled back on purpose.
    pub(crate) rolled_back: u32,
    /// Events that an earlier run had left.
    pub(crate) leftover: usize,
    /// True if the person at the terminal ended it early.
    pub(crate) interrupted: bool,
    pub(crate) audit: Audit,
    pub(crate) seconds: f64,
    pub(crate) latency: Latency,
}

/// The line of JSON. Its keys are a contract.
#[derive(Debug, Serialize)]
pub(crate) struct Json<'a> {
    store: &'a str,
    orders: u32,
    rolled_back: u32,
    events_committed: u64,
    delivered: u64,
    duplicates: u64,
    lost: u64,
    hot: u64,
    cold: u64,
    seconds: f64,
    commit_to_handler_us: Latency,
}

impl Summary {
    /// True if every promise of the outbox was kept.
    pub(crate) fn is_clean(&self) -> bool {
        self.lost() == 0 && self.audit.duplicates() == 0 && self.audit.phantoms == 0
    }

    /// Committed events that were not handled. After an interrupted run the pending ones are not lost: they wait for
    /// the next run.
    fn lost(&self) -> u64 {
        self.audit.vanished + if self.interrupted { 0 } else { self.audit.pending }
    }

    pub(crate) fn json(&self) -> Json<'_> {
        let audit = &self.audit;
        Json {
            store: &self.store,
            orders: self.orders,
            rolled_back: self.rolled_back,
            events_committed: audit.events_committed,
            delivered: audit.delivered,
            duplicates: audit.duplicates(),
            lost: self.lost(),
            hot: audit.hot,
            cold: audit.cold(),
            seconds: rounded(self.seconds, 3),
            commit_to_handler_us: self.latency,
        }
    }

    pub(crate) fn text(&self) -> String {
        let audit = &self.audit;
        let leftover = u64::try_from(self.leftover).unwrap_or(u64::MAX);
        let mut lines = vec![
            ("orders", grouped(self.orders.into()), "transactions, each with an order and its event"),
            ("rolled back", grouped(self.rolled_back.into()), "on purpose, after the event was written"),
            ("events committed", grouped(audit.events_committed), "found in the outbox table"),
        ];
        if self.leftover > 0 {
            lines.push(("left over", grouped(leftover), "events of an earlier run that was cut off"));
        }
        lines.extend([
            ("delivered", grouped(audit.delivered), "orders with a receipt of this run"),
            ("  from memory", grouped(audit.hot), "hot path: through the guard, or reported as committed"),
            ("  from the table", grouped(audit.cold()), "cold path: nobody reported the commit, or memory was full"),
            ("duplicates", grouped(audit.duplicates()), "calls of the handler beyond the first"),
            ("lost", grouped(self.lost()), "committed orders without a receipt"),
            ("phantoms", grouped(audit.phantoms), "events or receipts of orders that were rolled back"),
            ("seconds", format!("{:.2}", self.seconds), "from the first order to the last receipt"),
            ("commit to handler", micros(self.latency.p50), "half of the events were faster"),
            ("", micros(self.latency.p99), "99 % of the events were faster"),
        ]);
        format!("{}\n\n{}", crate::report::table(&lines).trim_fmt(), self.verdict())
    }

    fn verdict(&self) -> String {
        let throughput = rate(crate::report::per_second(self.audit.delivered, self.seconds));
        match (self.interrupted, self.is_clean()) {
            (true, _) => "Interrupted: what is left in the outbox is delivered by the next run.".to_owned(),
            (false, true) if self.orders == 0 && self.leftover == 0 => "There was nothing left to deliver.".to_owned(),
            (false, true) => format!("The database agrees: every committed event was handled once, {throughput}."),
            (false, false) => "FAILED: the database disagrees with the promise; see the lines above.".to_owned(),
        }
    }
}
