use serde::Serialize;

use super::Line;
use pillarbox_console::report::rate;

/// A business row alone, and beside an event, one client.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct WriteFigures {
    pub(crate) business_only_per_s: f64,
    pub(crate) business_with_event_per_s: f64,
    pub(crate) write_ratio: f64,
}

impl WriteFigures {
    pub(super) fn lines(&self) -> Vec<Line> {
        vec![
            ("business row", rate(self.business_only_per_s), "transactions of one client, alternating with the next"),
            ("  with event", rate(self.business_with_event_per_s), "the same with one event beside the row"),
            ("write ratio", format!("{:.3}", self.write_ratio), "the second to the first"),
        ]
    }
}
