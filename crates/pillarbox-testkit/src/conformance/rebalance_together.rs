use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use pillarbox_core::error::BoxError;
use pillarbox_core::ownership::{Holding, NodeId, Partitions, spread};
use pillarbox_core::store::Store;
use tokio::task::JoinSet;

use crate::Harness;
use crate::nodes::{rebalance_by_epoch, rebalancer};
use crate::run::{Db, Outcome};

/// However many nodes rebalance at the same time, while others join, leave and die: no partition is given to a node before
/// the last owner has given it, in the end each has one owner, and of those that died is told once.
pub(super) async fn rebalance_concurrently_gives_each_partition_one_owner<H: Harness>(db: &Db<H>) -> Outcome {
    let stores = try_join_all((0..4).map(|_| db.connect())).await?;
    let board = Arc::new(Board::default());
    let mut seats: Vec<Seat> = Vec::new();
    let mut joined = 0;
    for (round, members) in [8, 8, 5, 8, 3].into_iter().enumerate() {
        let mut died = 0;
        // Some leave, every second one without a word, and others join.
        while seats.len() > members || (round == 1 && seats.len() > 6) {
            let gone = seats.remove(seats.len() / 2);
            board.free(gone.holding.owned);
            if seats.len().is_multiple_of(2) {
                died += gone.holding.owned.len();
                db.expire(&gone.node).await?;
            } else {
                gone.store.leave(&gone.node).await?;
            }
        }
        while seats.len() < members {
            let store = Arc::clone(&stores[joined % stores.len()]);
            joined += 1;
            seats.push(Seat {
                node: rebalancer(&*store).await?,
                number: joined,
                store,
                holding: Holding::default(),
                unclean: 0,
            });
        }
        let mut tasks = JoinSet::new();
        for seat in seats.drain(..) {
            let board = Arc::clone(&board);
            tasks.spawn(async move { seat.rebalance_for_a_while(&board).await.map_err(|error| error.to_string()) });
        }
        seats = tasks.join_all().await.into_iter().collect::<Result<_, _>>()?;
        // What they gave each other last is taken in one more turn.
        for seat in &mut seats {
            seat.turn(&board).await?;
        }
        let unclean: usize = seats.iter_mut().map(|seat| std::mem::take(&mut seat.unclean)).sum();
        assert_eq!(unclean, died, "round {round}: what the dead owned is told of once");
        let owned: usize = seats.iter().map(|seat| seat.holding.owned.len()).sum();
        let sizes: Vec<_> = seats.iter().map(|seat| seat.holding.owned.len()).collect();
        assert_eq!(owned, 256, "round {round}: every partition has an owner, {sizes:?}");
        assert!(sizes.iter().all(|size| size.abs_diff(256 / members) <= 1), "round {round}: {sizes:?}");
    }
    Ok(())
}

/// A node that rebalances.
struct Seat {
    node: NodeId,
    number: usize,
    store: Arc<dyn Store>,
    holding: Holding,
    /// The number of partitions that it took whose last owner had died.
    unclean: usize,
}

impl Seat {
    async fn rebalance_for_a_while(mut self, board: &Board) -> Result<Self, BoxError> {
        for _ in 0..6 {
            self.turn(board).await?;
            tokio::task::yield_now().await;
        }
        Ok(self)
    }

    /// Gives what was too much after the last turn, and takes what is free.
    async fn turn(&mut self, board: &Board) -> Outcome {
        let surplus = spread::surplus(self.holding.owned, self.holding.target.clone());
        board.free(surplus);
        let before = self.holding.owned.difference(surplus);
        self.holding = rebalance_by_epoch(&*self.store, &self.node, &self.holding.epochs.of(surplus)).await?;
        self.unclean += self.holding.unclean.len();
        board.take(self.number, self.holding.gained)?;
        assert_eq!(self.holding.owned, before.union(self.holding.gained), "nothing else has come or gone");
        Ok(())
    }
}

/// The owners of the partitions as the nodes see them: a partition is free from before its owner gives it until after another has
/// taken it, so that a node that is told to have gained one must find it free.
struct Board([AtomicUsize; 256]);

const FREE: usize = 0;

impl Default for Board {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicUsize::new(FREE)))
    }
}

impl Board {
    fn free(&self, partitions: Partitions) {
        for partition in partitions.iter() {
            self.0[usize::from(partition)].store(FREE, Ordering::SeqCst);
        }
    }

    fn take(&self, number: usize, partitions: Partitions) -> Outcome {
        for partition in partitions.iter() {
            let seat = &self.0[usize::from(partition)];
            if let Err(owner) = seat.compare_exchange(FREE, number, Ordering::SeqCst, Ordering::SeqCst) {
                return Err(format!("node {number} was given partition {partition}, which node {owner} owns").into());
            }
        }
        Ok(())
    }
}
