use std::sync::{MutexGuard, PoisonError};

/// A mutex that no panic poisons: every change under one leaves its data consistent, so that a panic elsewhere while it was locked
/// changes nothing.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Waits until nobody else has it locked, and locks it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
