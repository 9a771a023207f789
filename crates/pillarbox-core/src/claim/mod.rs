//! From the table to the queue.
