use pillarbox::{Delivery, handlers};

struct Mailer;

#[handlers]
impl Mailer {
    #[handler(event = "order.placed")]
    async fn changes(&mut self, _: Delivery) {}

    #[handler(event = "order.sent")]
    async fn consumes(self, _: Delivery) {}

    #[handler(event = "order.paid")]
    fn not_async(&self, _: Delivery) {}

    #[handler]
    async fn of_nothing(&self) {}

    #[handler(nam = "mailer")]
    async fn misspelled(&self, _: Delivery) {}
}

struct Nothing;

#[handlers]
impl Nothing {
    async fn is_no_handler(&self) {}
}

struct Clean;

#[handlers]
impl Drop for Clean {
    fn drop(&mut self) {}
}

#[handlers(crat = pillarbox)]
impl Clean {}

fn main() {}
