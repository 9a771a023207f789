//! A batch handler takes a vector and answers with one.

use pillarbox::Delivery;
use pillarbox::handle::{Registration, on_batch};

async fn takes_one(_: Delivery) -> Vec<()> {
    vec![()]
}

async fn answers_once(_: Vec<Delivery>) {}

async fn answers_with_numbers(_: Vec<Delivery>) -> Vec<u32> {
    vec![7]
}

fn one() -> Registration {
    on_batch("order.placed", 10, takes_one)
}

fn once() -> Registration {
    on_batch("order.placed", 10, answers_once)
}

fn numbers() -> Registration {
    on_batch("order.placed", 10, answers_with_numbers)
}

fn main() {}
