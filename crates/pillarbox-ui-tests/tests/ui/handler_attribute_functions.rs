use pillarbox::{Delivery, handler};

#[handler(event = "order.placed")]
fn not_async(_: Delivery) {}

#[handler(event = "order.placed")]
async fn generic<T>(_: T) {}

#[handler(event = "order.placed")]
async fn borrowed(_: &Delivery) {}

#[handler]
async fn of_any_type(_: impl Send) {}

#[handler]
async fn of_nothing() {}

#[handler(event = "order.placed")]
async fn one_too_many(_: Delivery, _: Delivery) {}

#[handler]
struct NoFunction;

struct Mailer;

impl Mailer {
    #[handler(event = "order.placed")]
    async fn method(&self, _: Delivery) {}
}

fn main() {}
