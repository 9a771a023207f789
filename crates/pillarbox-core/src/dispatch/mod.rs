//! From the queue to the handler.
