//! The story of a run: a line for each happening, and the hash of all of them.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// Tells what happens. The hash is the same whether lines are kept or not. Clones tell the same story.
#[derive(Debug, Clone)]
pub struct Story(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    start: Instant,
    hash: Hash,
    lines: Option<Vec<String>>,
    happenings: u64,
}

#[derive(Debug)]
struct Hash(u64);

impl fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 60));
        }
        Ok(())
    }
}

impl Hash {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Story {
    /// A story that begins now; `traced` keeps its lines.
    #[must_use]
    pub fn begin(traced: bool) -> Self {
        let lines = traced.then(Vec::new);
        Self(Arc::new(Mutex::new(State { start: Instant::now(), hash: Hash(0), lines, happenings: 0 })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a happening.
    pub fn tell(&self, who: &str, what: fmt::Arguments<'_>) {
        let mut state = self.lock();
        let state = &mut *state;
        let elapsed = state.start.elapsed();
        state.happenings += 1;
        state.hash.add(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX));
        // A hash takes every text.
        let _ = state.hash.write_str(who);
        let _ = state.hash.write_fmt(what);
        if let Some(lines) = &mut state.lines {
            lines.push(format!("{:>10.3}  {who:<8} {what}", elapsed.as_secs_f64()));
        }
    }

    /// Virtual seconds since it began.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.lock().start.elapsed().as_secs_f64()
    }

    /// The number of happenings so far.
    #[must_use]
    pub fn happenings(&self) -> u64 {
        self.lock().happenings
    }

    /// The hash of all that was told.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.lock().hash.0
    }

    /// The lines that were kept.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines.take().unwrap_or_default()
    }
}
