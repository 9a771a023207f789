//! What is going on.
