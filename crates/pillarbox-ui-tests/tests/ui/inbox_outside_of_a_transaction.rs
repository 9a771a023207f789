//! A message is received in a transaction.

use pillarbox::{Inbox, MemoryStore};

async fn on_a_pool(inbox: &Inbox, mut pool: &MemoryStore) {
    let once = inbox.once(&mut pool, "m-1").await;
}

fn main() {}
