use pillarbox::{Delivery, handler};

#[handler(aggregate = "order")]
async fn without_its_event(_: Delivery) {}

#[handler(event = "order.placed", nam = "mailer")]
async fn misspelled(_: Delivery) {}

#[handler(event = "order.placed", name = "mailer", name = "ledger")]
async fn twice(_: Delivery) {}

#[handler(event = "order.placed", name = "")]
async fn nameless(_: Delivery) {}

#[handler("order.placed")]
async fn which_setting(_: Delivery) {}

#[handler(event = "order.placed", name)]
async fn no_value(_: Delivery) {}

fn main() {}
