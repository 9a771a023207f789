//! The outbox alone: idle, on a store in memory, and its use of memory.

use serde::Serialize;

use super::Line;
use pillarbox_console::report::{counted, grouped};

/// The load of an idle outbox, mode by mode.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct IdleFigures {
    pub(crate) modes: Vec<IdleMode>,
}

/// The load of an idle outbox in one mode.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct IdleMode {
    pub(crate) mode: &'static str,
    pub(crate) statements_per_s: Option<f64>,
    pub(crate) cpu_percent: Option<f64>,
}

impl IdleFigures {
    pub(super) fn lines(&self, statements: &'static str) -> Vec<Line> {
        let mode = |mode: &IdleMode| {
            let asked = mode.statements_per_s.map(|per_s| (mode.mode, format!("{per_s:.2}/s"), statements));
            let cpu = mode.cpu_percent.map(|percent| {
                let name = if asked.is_some() { "" } else { mode.mode };
                (name, format!("{percent:.2} %"), "of one processor, by this process")
            });
            asked.into_iter().chain(cpu)
        };
        self.modes.iter().flat_map(mode).collect()
    }
}

/// The memory that backlogs took.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MemoryFigures {
    pub(crate) mode: &'static str,
    pub(crate) peaks: Vec<Peak>,
}

/// The memory that one backlog took.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Peak {
    pub(crate) events: u32,
    pub(crate) peak_memory_bytes: Option<u64>,
}

impl MemoryFigures {
    pub(super) fn lines(&self) -> Vec<Line> {
        let peak = |peak: &Peak| {
            let bytes = peak.peak_memory_bytes?;
            let figure = format!("{}: {} MB", counted(peak.events.into(), "event"), grouped(bytes / 1_000_000));
            Some(("peak memory", figure, "of this process, from before it connected until all were delivered"))
        };
        let mode = ("mode", self.mode.to_owned(), "who may deliver an event");
        std::iter::once(mode).chain(self.peaks.iter().filter_map(peak)).collect()
    }
}

/// The workers that took the events from the store in memory.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct OverheadFigures {
    pub(crate) workers: u16,
}

impl OverheadFigures {
    pub(super) fn lines(self) -> Vec<Line> {
        vec![("workers", self.workers.to_string(), "handlers that run at once, and tasks of the yardstick")]
    }
}
