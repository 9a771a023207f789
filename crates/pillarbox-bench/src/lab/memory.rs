use std::sync::Arc;

use pillarbox::{MemoryStore, Store, Upkeep as _};

use crate::failure::Failure;
use crate::load::Load;

/// A store in memory: no database, so there is nothing to measure but the engine.
#[derive(Debug, Default)]
pub(crate) struct MemoryLab {
    store: MemoryStore,
}

impl MemoryLab {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    /// Writes the events of `load`.
    pub(crate) async fn fill(&self, load: &Load) -> Result<(), Failure> {
        for batch in load.batches() {
            let mut tx = self.store.begin();
            let inserted = pillarbox::write::insert(&self.store, &mut tx, batch?).await;
            inserted.map_err(Failure::during("write"))?;
            tx.commit();
        }
        Ok(())
    }

    /// Events that are DONE.
    pub(crate) async fn done(&self) -> Result<u64, Failure> {
        Ok(self.store.counts().await?.done)
    }
}
