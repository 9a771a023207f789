use pillarbox::{Delivery, handler};

#[handler(event = "order.placed")]
fn not_async(_: Delivery) {}

#[handler(event = "order.placed")]
async fn generic<T>(_: T) {}

#[handler(event = "order.placed")]
async fn borrowed(_: &Delivery) {}

#[handler]
struct NoFunction;

fn main() {}
