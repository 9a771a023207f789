//! Pillarbox.
