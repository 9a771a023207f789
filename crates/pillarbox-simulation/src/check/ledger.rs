use std::collections::BTreeMap;

use pillarbox_core::row::Status;
use pillarbox_memory::MemoryStore;

use crate::engine::{RowView, visit};

/// The committed rows, as the checks remember them.
#[derive(Debug, Default)]
pub struct Ledger {
    lines: Vec<Line>,
    /// Numbers for the values of `locked_by`.
    holders: BTreeMap<Box<str>, u32>,
    names: Vec<Box<str>>,
}

/// A committed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Its place in the order of the table.
    pub seq: i64,
    /// The number of its event.
    pub event: u32,
    /// The number of its handler; zero for none in particular.
    pub handler: u8,
    /// Its state.
    pub status: Status,
    /// Its failed calls.
    pub attempts: u32,
    /// The number of times that it was replayed, from DEAD to NEW.
    pub replays: u32,
    /// Its partition.
    pub partition: Option<u8>,
    /// The due time, in microseconds. One before the creation is none.
    pub due: Option<i64>,
    /// The number of the text in `locked_by`; zero for none.
    pub holder: u32,
    /// The number of the statement that committed it.
    pub committed: u64,
}

/// A row that a statement has changed: `None` where there is no row.
pub(super) type Change = (Option<Line>, Option<Line>);

impl Ledger {
    /// The rows, ascending by `seq`.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The row at `seq`.
    #[must_use]
    pub fn line(&self, seq: i64) -> Option<&Line> {
        self.lines.binary_search_by_key(&seq, |line| line.seq).ok().and_then(|index| self.lines.get(index))
    }

    /// The text in `locked_by`.
    #[must_use]
    pub fn holder(&self, line: &Line) -> Option<&str> {
        let index = usize::try_from(line.holder).unwrap_or_default().checked_sub(1)?;
        self.names.get(index).map(|name| &**name)
    }

    /// Reads the table after statement `step`; returns the rows that are others than before.
    pub fn read(&mut self, store: &MemoryStore, step: u64) -> Vec<Change> {
        let mut lines = Vec::with_capacity(self.lines.len() + 4);
        let (mut changes, mut before) = (Vec::new(), 0);
        visit(store, |row| {
            while let Some(gone) = self.lines.get(before).filter(|line| line.seq < row.seq) {
                changes.push((Some(*gone), None));
                before += 1;
            }
            let holder = row.locked_by.map_or(0, |holder| number(&mut self.holders, &mut self.names, holder));
            let mut line = line(&row, holder, step);
            match self.lines.get(before).filter(|before| before.seq == row.seq) {
                Some(same) if (same.event, same.handler) == (line.event, line.handler) => {
                    line.committed = same.committed;
                    if *same != line {
                        changes.push((Some(*same), Some(line)));
                    }
                    before += 1;
                }
                Some(other) => {
                    changes.extend([(Some(*other), None), (None, Some(line))]);
                    before += 1;
                }
                None => changes.push((None, Some(line))),
            }
            lines.push(line);
        });
        changes.extend(self.lines.iter().skip(before).map(|gone| (Some(*gone), None)));
        self.lines = lines;
        changes
    }
}

fn line(row: &RowView<'_>, holder: u32, step: u64) -> Line {
    Line {
        seq: row.seq,
        event: event_number(row.event.id().as_str()),
        handler: handler_number(row.handler),
        status: row.status,
        attempts: row.attempts,
        replays: row.replays,
        partition: row.partition,
        due: row.available_at.filter(|due| *due >= row.created_at).map(pillarbox_core::clock::Timestamp::as_micros),
        holder,
        committed: step,
    }
}

fn number(holders: &mut BTreeMap<Box<str>, u32>, names: &mut Vec<Box<str>>, holder: &str) -> u32 {
    if let Some(number) = holders.get(holder) {
        return *number;
    }
    names.push(holder.into());
    let number = u32::try_from(names.len()).unwrap_or(u32::MAX);
    holders.insert(holder.into(), number);
    number
}

/// The number of the event with this id: `e17` is number 17.
#[must_use]
pub fn event_number(id: &str) -> u32 {
    id.get(1..).and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

/// The number of a handler by its name.
#[must_use]
pub fn handler_number(name: Option<&str>) -> u8 {
    match name {
        None => 0,
        Some("a") => 1,
        Some(_) => 2,
    }
}
