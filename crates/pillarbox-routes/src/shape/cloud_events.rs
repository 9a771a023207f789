//! CloudEvents 1.0: <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md>.
//!
//! | Attribute | From |
//! |---|---|
//! | `id`, `type` | the event's id and type |
//! | `source` | the route |
//! | `subject` | the aggregate's id |
//! | `time` | when it occurred, by the writer's clock |
//! | `datacontenttype` | the payload's media type |
//! | `partitionkey` | the key (extension "partitioning") |
//! | `traceparent`, `tracestate` | the headers of that name (extension "distributed tracing") |

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use pillarbox_core::event::Payload;
use pillarbox_core::handle::Delivery;
use serde::Serialize;
use serde_json::value::RawValue;

use super::HeaderRules;
use super::format::Outline;
use super::headers::Named;

/// The media type of an event in structured mode.
pub(super) const STRUCTURED: &str = "application/cloudevents+json";
const VERSION: &str = "1.0";
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// The names of the attributes as headers, in the binding of one protocol.
struct Binding {
    id: &'static str,
    source: &'static str,
    spec_version: &'static str,
    event_type: &'static str,
    subject: &'static str,
    time: &'static str,
    partition_key: &'static str,
    trace: [&'static str; 2],
}

macro_rules! binding {
    ($prefix:literal) => {
        Binding {
            id: concat!($prefix, "id"),
            source: concat!($prefix, "source"),
            spec_version: concat!($prefix, "specversion"),
            event_type: concat!($prefix, "type"),
            subject: concat!($prefix, "subject"),
            time: concat!($prefix, "time"),
            partition_key: concat!($prefix, "partitionkey"),
            trace: [concat!($prefix, "traceparent"), concat!($prefix, "tracestate")],
        }
    };
}

/// HTTP and NATS, and what has no binding of its own.
const HYPHEN: Binding = binding!("ce-");
const KAFKA: Binding = binding!("ce_");
/// AMQP allows a colon as well, which JMS clients cannot read.
const AMQP: Binding = binding!("cloudEvents_");
/// MQTT 5 has user properties, named like the attributes.
const MQTT: Binding = binding!("");

fn binding(kind: &str) -> &'static Binding {
    match kind {
        "kafka" => &KAFKA,
        "rabbitmq" => &AMQP,
        "mqtt" => &MQTT,
        _ => &HYPHEN,
    }
}

/// Whether binary mode has a header of this name, in messages to a broker of that kind.
pub(super) fn is_attribute(kind: &str, name: &str) -> bool {
    let Binding { id, source, spec_version, event_type, subject, time, partition_key, trace } = binding(kind);
    [id, source, spec_version, event_type, subject, time, partition_key].contains(&&name) || trace.contains(&name)
}

/// The headers of binary mode.
pub(super) fn binary(
    event: &Delivery,
    key: Option<&str>,
    outline: &Outline<'_>,
    rules: &HeaderRules,
) -> Result<Named, String> {
    let names = binding(outline.kind);
    let mut headers: Named = Vec::with_capacity(10 + event.headers().len());
    let mut say = |name: &'static str, value: Option<&str>| {
        headers.extend(value.map(|value| (Cow::Borrowed(name), value.to_owned())));
    };
    say(names.spec_version, Some(VERSION));
    say(names.id, Some(event.id().as_str()));
    say(names.source, Some(outline.source));
    say(names.event_type, Some(event.event_type()));
    say(names.subject, event.aggregate_id());
    say(names.partition_key, key);
    for (name, header) in names.trace.into_iter().zip(TRACE) {
        say(name, event.headers().get(header));
    }
    headers.push((Cow::Borrowed(names.time), event.occurred_at().to_string()));
    rules.add_others(&mut headers, event)?;
    Ok(headers)
}

/// An event in the JSON format.
#[derive(Serialize)]
struct Envelope<'a> {
    specversion: &'static str,
    id: &'a str,
    source: &'a str,
    #[serde(rename = "type")]
    event_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    time: String,
    datacontenttype: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partitionkey: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_base64: Option<String>,
}

/// The body of structured mode. A JSON payload stands in it as it was written.
pub(super) fn structured(event: &Delivery, key: Option<&str>, source: &str) -> Result<Bytes, String> {
    let (data, data_base64) = match event.payload() {
        Payload::Json(text) => {
            (Some(serde_json::from_str(text).map_err(|error| format!("the payload is not JSON: {error}"))?), None)
        }
        other => (None, Some(BASE64_STANDARD.encode(other.as_bytes()))),
    };
    let envelope = Envelope {
        specversion: VERSION,
        id: event.id().as_str(),
        source,
        event_type: event.event_type(),
        subject: event.aggregate_id(),
        time: event.occurred_at().to_string(),
        datacontenttype: event.payload().content_type(),
        partitionkey: key,
        traceparent: event.headers().get(TRACE[0]),
        tracestate: event.headers().get(TRACE[1]),
        data,
        data_base64,
    };
    serde_json::to_vec(&envelope)
        .map(Bytes::from)
        .map_err(|error| format!("the event cannot be written as JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_named_as_the_protocol_of_the_broker_wants_them() {
        for (kind, id) in [
            ("nats", "ce-id"),
            ("webhook", "ce-id"),
            ("sqs", "ce-id"),
            ("kafka", "ce_id"),
            ("rabbitmq", "cloudEvents_id"),
            ("mqtt", "id"),
        ] {
            let names = binding(kind);
            assert_eq!(names.id, id, "{kind}");
            let prefix = id.strip_suffix("id").expect("a prefix");
            for attribute in
                ["specversion", "type", "source", "subject", "time", "partitionkey", "traceparent", "tracestate"]
            {
                assert!(is_attribute(kind, &format!("{prefix}{attribute}")), "{kind}: {attribute}");
            }
            assert!(!is_attribute(kind, "region") && !is_attribute(kind, &format!("x{id}")), "{kind}");
        }
    }
}
