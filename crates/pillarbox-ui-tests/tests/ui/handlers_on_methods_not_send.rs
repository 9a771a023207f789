//! The future of a method can move between threads.

use std::rc::Rc;

use pillarbox::{Delivery, handlers};

struct Mailer;

#[handlers]
impl Mailer {
    #[handler(event = "order.sent")]
    async fn not_send(&self, _: Delivery) {
        let local = Rc::new(1);
        std::future::ready(()).await;
        drop(local);
    }
}

fn main() {}
