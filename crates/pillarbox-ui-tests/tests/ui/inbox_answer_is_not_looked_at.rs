//! Whether a message was received before decides what is done.
#![deny(unused_must_use)]

use pillarbox::memory::MemoryTransaction;
use pillarbox::{Inbox, error::BoxError};

async fn unseen(inbox: &Inbox, transaction: &mut MemoryTransaction) -> Result<(), BoxError> {
    inbox.once(transaction, "m-1").await?;
    Ok(())
}

fn main() {}
