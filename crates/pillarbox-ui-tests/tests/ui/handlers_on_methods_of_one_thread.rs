//! The state that handlers share is Send and Sync.

use std::rc::Rc;

use pillarbox::{Delivery, handlers};

struct Local {
    of_one_thread: Rc<u32>,
}

#[handlers]
impl Local {
    #[handler(event = "order.placed")]
    async fn handle(&self, _: Delivery) {
        let _ = &self.of_one_thread;
    }
}

fn main() {}
