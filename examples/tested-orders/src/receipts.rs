//! The handler of a placed order.

use std::sync::Arc;
use std::time::Duration;

use pillarbox::adapters::sqlx::PgTx;
use pillarbox::{Delivery, Event as _};

use crate::{BoxError, FeedbackDue, OrderPlaced};

/// The time after which a customer is asked what they think.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// The service that sends mails.
pub trait Mailer: Send + Sync + 'static {
    /// Sends a mail. A second one with the same id is dropped by the service, since an event may be handled again.
    ///
    /// # Errors
    /// The mail is not sent.
    fn send(&self, id: &str, text: &str) -> Result<(), BoxError>;
}

/// Sends a receipt, and plans the question that follows in a week. The receipt's row, the follow-up event and the end of this event are
/// committed together; if the mail cannot be sent, none of them is, and the event is tried again.
///
/// # Errors
/// The mail service's, or the database's.
pub async fn send_receipt(
    mailer: Arc<dyn Mailer>,
    order: OrderPlaced,
    delivery: Delivery,
    mut tx: PgTx,
) -> Result<(), BoxError> {
    let OrderPlaced { order_id, customer, total_cents } = order;
    sqlx::query("insert into receipts (order_id) values ($1)").bind(order_id).execute(&mut *tx).await?;
    let feedback = FeedbackDue { order_id, customer: customer.clone() };
    delivery.outbox()?.write(&mut tx, feedback.to_builder().deliver_after(WEEK)).await?;
    mailer.send(delivery.id().as_str(), &format!("{customer}: a receipt for {total_cents} cents"))
}

/// Asks a customer what they think.
///
/// # Errors
/// The mail service's.
pub async fn ask_for_feedback(
    mailer: Arc<dyn Mailer>,
    feedback: FeedbackDue,
    delivery: Delivery,
) -> Result<(), BoxError> {
    mailer.send(delivery.id().as_str(), &format!("{}: how was it?", feedback.customer))
}
