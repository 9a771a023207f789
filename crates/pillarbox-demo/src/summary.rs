use serde::{Serialize, Serializer};

use pillarbox_program::report::{grouped, micros, rate, rounded};
use pillarbox_program::stopwatch::Latency;

/// The result of a run. As JSON its keys are a contract.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    /// Kind and address of the database.
    pub(crate) store: String,
    /// Orders begun.
    pub(crate) orders: u32,
    /// The number of them rolled back on purpose.
    pub(crate) rolled_back: u32,
    pub(crate) events_committed: u64,
    pub(crate) delivered: u64,
    pub(crate) duplicates: u64,
    /// Committed events that were not handled. After an interrupted run the pending ones are not lost: they wait for
    /// the next run.
    pub(crate) lost: u64,
    pub(crate) hot: u64,
    pub(crate) cold: u64,
    #[serde(serialize_with = "in_milliseconds")]
    pub(crate) seconds: f64,
    pub(crate) commit_to_handler_us: Latency,
    #[serde(skip)]
    pub(crate) phantoms: u64,
    /// Events that an earlier run had left.
    #[serde(skip)]
    pub(crate) leftover: usize,
    /// True if the person at the terminal ended it early.
    #[serde(skip)]
    pub(crate) interrupted: bool,
}

impl Summary {
    /// True if every promise of the outbox was kept.
    pub(crate) fn is_clean(&self) -> bool {
        self.lost == 0 && self.duplicates == 0 && self.phantoms == 0
    }

    pub(crate) fn text(&self) -> String {
        let leftover = u64::try_from(self.leftover).unwrap_or(u64::MAX);
        let mut lines = vec![
            ("orders", grouped(self.orders.into()), "transactions, each with an order and its event"),
            ("rolled back", grouped(self.rolled_back.into()), "on purpose, after the event was written"),
            ("events committed", grouped(self.events_committed), "found in the outbox table"),
        ];
        if self.leftover > 0 {
            lines.push(("left over", grouped(leftover), "events of an earlier run that was cut off"));
        }
        lines.extend([
            ("delivered", grouped(self.delivered), "orders with a receipt of this run"),
            ("  from memory", grouped(self.hot), "hot path: through the guard, or reported as committed"),
            ("  from the table", grouped(self.cold), "cold path: nobody reported the commit, or memory was full"),
            ("duplicates", grouped(self.duplicates), "calls of the handler beyond the first"),
            ("lost", grouped(self.lost), "committed orders without a receipt"),
            ("phantoms", grouped(self.phantoms), "events or receipts of orders that were rolled back"),
            ("seconds", format!("{:.2}", self.seconds), "from the first order to the last receipt"),
            ("commit to handler", micros(self.commit_to_handler_us.p50), "half of the events were faster"),
            ("", micros(self.commit_to_handler_us.p99), "99 % of the events were faster"),
        ]);
        format!("{}\n\n{}", crate::report::table(&lines).trim_fmt(), self.verdict())
    }

    fn verdict(&self) -> String {
        let throughput = rate(crate::report::per_second(self.delivered, self.seconds));
        match (self.interrupted, self.is_clean()) {
            (true, _) => "Interrupted: what is left in the outbox is delivered by the next run.".to_owned(),
            (false, true) if self.orders == 0 && self.leftover == 0 => "There was nothing left to deliver.".to_owned(),
            (false, true) => format!("The database agrees: every committed event was handled once, {throughput}."),
            (false, false) => "FAILED: the database disagrees with the promise; see the lines above.".to_owned(),
        }
    }
}

fn in_milliseconds<S: Serializer>(seconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(rounded(*seconds, 3))
}
