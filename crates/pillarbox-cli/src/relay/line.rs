use std::collections::BTreeMap;

use pillarbox::Delivery;
use serde::Serialize;

use crate::payload::{PayloadJson, content_type};

/// A delivery as one line. The names are a contract.
#[derive(Debug, Serialize)]
struct Line<'a> {
    event_id: &'a str,
    seq: i64,
    event_type: &'a str,
    aggregate_type: &'a str,
    aggregate_id: Option<&'a str>,
    tenant_id: Option<&'a str>,
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handler: Option<&'a str>,
    headers: BTreeMap<&'a str, &'a str>,
    #[serde(flatten)]
    payload: PayloadJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    attempt: u32,
    node: &'a str,
}

/// The line of a delivery, with its end.
pub(super) fn line(delivery: &Delivery) -> Result<Vec<u8>, serde_json::Error> {
    let line = Line {
        event_id: delivery.id().as_str(),
        seq: delivery.seq(),
        event_type: delivery.event_type(),
        aggregate_type: delivery.aggregate_type(),
        aggregate_id: delivery.aggregate_id(),
        tenant_id: delivery.tenant_id(),
        key: delivery.key(),
        handler: delivery.handler_id(),
        headers: delivery.headers().iter().collect(),
        payload: Some(delivery.payload()).into(),
        content_type: content_type(delivery.payload()),
        attempt: delivery.attempt(),
        node: delivery.node().as_str(),
    };
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    Ok(text)
}
