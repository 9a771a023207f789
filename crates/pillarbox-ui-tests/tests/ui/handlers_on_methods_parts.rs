//! Each part of a method that is wrong is named where it stands.

use pillarbox::{Delivery, handlers};

struct Mailer;

struct NoEvent;

#[handlers]
impl Mailer {
    #[handler]
    async fn no_event(&self, _: NoEvent) {}

    #[handler(event = "order.placed")]
    async fn returns_a_number(&self, _: Delivery) -> u32 {
        7
    }
}

fn main() {}
