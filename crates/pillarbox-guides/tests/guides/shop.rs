//! The shop that the guides speak of.
#![allow(dead_code, unreachable_pub, reason = "a guide names more than it uses, and takes it by one line")]

use pillarbox::{Delivery, Event, Failure, Outcome};
use serde::{Deserialize, Serialize};

pub use std::sync::Arc;
pub use std::time::Duration;

pub use pillarbox::error::BoxError;

#[derive(Clone, Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id)]
pub struct OrderPlaced {
    pub order_id: String,
    pub total_cents: i64,
}

#[derive(Serialize, Deserialize, Event)]
#[event(name = "payment.received")]
pub struct PaymentReceived {
    pub id: String,
}

#[derive(Serialize, Deserialize, Event)]
#[event(name = "payment.booked")]
pub struct PaymentBooked {
    pub id: String,
}

impl PaymentBooked {
    pub fn of(payment: &PaymentReceived) -> Self {
        Self { id: payment.id.clone() }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the mail server refused it")]
pub struct SmtpError;

#[derive(Clone)]
pub struct SmtpClient;

#[derive(Clone)]
pub struct Mails;

impl Mails {
    pub async fn send_receipt(self, _event: OrderPlaced) -> Result<(), SmtpError> {
        Ok(())
    }
}

pub async fn send_receipt(_event: OrderPlaced) -> Result<(), SmtpError> {
    Ok(())
}

pub async fn notify_partner(_event: OrderPlaced) -> Result<(), SmtpError> {
    Ok(())
}

pub async fn by_letter(_delivery: Delivery, _failure: Failure) -> Outcome {
    Outcome::Done
}

pub async fn book(_event: OrderPlaced) -> Result<(), SmtpError> {
    Ok(())
}

pub const PAUSE: Duration = Duration::from_secs(5);
