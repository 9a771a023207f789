//! What is held across an await is named.

use pillarbox::{Event, handler};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed")]
struct OrderPlaced;

#[handler]
async fn handle(_: OrderPlaced) {
    let local = std::rc::Rc::new(1);
    std::future::ready(()).await;
    drop(local);
}

fn main() {}
