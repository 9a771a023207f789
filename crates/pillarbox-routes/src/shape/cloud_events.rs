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
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use pillarbox_core::event::Payload;
use pillarbox_core::handle::Delivery;
use pillarbox_core::publisher::header;
use serde::Serialize;
use serde_json::value::RawValue;

use super::HeaderRules;
use super::format::Outline;
use super::headers::Named;

/// The media type of an event in structured mode.
pub(super) const STRUCTURED: &str = "application/cloudevents+json";
/// The beginning of the media types by which a consumer takes the body for the event, and not the headers.
const WHOLE_EVENTS: &str = "application/cloudevents";
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
    /// The header that says what the body is, where the media type of the message does not.
    data_content_type: Option<&'static str>,
    /// True if values are percent-encoded here. The publisher of webhooks encodes by itself.
    percent: bool,
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
            data_content_type: None,
            percent: false,
        }
    };
}

/// HTTP, and what has no binding of its own.
const HYPHEN: Binding = binding!("ce-");
/// The draft of version 1.0.3: up to 1.0.2 the binding knows no binary mode.
const NATS: Binding = Binding { data_content_type: Some("ce-datacontenttype"), percent: true, ..binding!("ce-") };
const KAFKA: Binding = binding!("ce_");
/// Version 1.0.2 has a colon, which JMS clients cannot read. Later ones prefer this, and ask consumers to know both.
const AMQP: Binding = binding!("cloudEvents_");
/// MQTT 5 has user properties, named like the attributes.
const MQTT: Binding = binding!("");

fn binding(kind: &str) -> &'static Binding {
    match kind {
        "nats" => &NATS,
        "kafka" => &KAFKA,
        "rabbitmq" => &AMQP,
        "mqtt" => &MQTT,
        _ => &HYPHEN,
    }
}

/// The attributes that every event has, or could have, from its row and its route.
const ATTRIBUTES: [&str; 10] = [
    "datacontenttype",
    "id",
    "partitionkey",
    "source",
    "specversion",
    "subject",
    "time",
    "traceparent",
    "tracestate",
    "type",
];

/// True if binary mode has a header of this name, in messages to a broker of that kind, by any prefix that consumers know.
pub(super) fn is_attribute(kind: &str, name: &str) -> bool {
    let attribute = header::attribute(kind, name);
    attribute.is_some_and(|attribute| ATTRIBUTES.iter().any(|own| own.eq_ignore_ascii_case(attribute)))
}

/// True if a header of an event may not have this name beside the attributes, in either mode. Its trace is its own.
pub(super) fn is_reserved(kind: &str, name: &str) -> bool {
    is_attribute(kind, name) && !TRACE.contains(&name)
}

/// The characters that the bindings of HTTP and NATS percent-encode, beside all that are not ASCII.
const VALUE: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// A value as the bindings of HTTP and NATS want it.
fn percent(value: &str) -> Cow<'_, str> {
    utf8_percent_encode(value, VALUE).into()
}

/// Refuses a payload for binary mode that a consumer would take for an event of its own, with the id, type and source that the payload says.
pub(super) fn refuse_structured(content_type: &str) -> Result<(), String> {
    let start = content_type.trim().get(..WHOLE_EVENTS.len());
    if start.is_some_and(|start| start.eq_ignore_ascii_case(WHOLE_EVENTS)) {
        return Err(format!(
            "the payload's content type {content_type:?} makes consumers of CloudEvents read the event from the payload, and not from \
             the headers of format `cloudevents-binary`; send such payloads with format `raw`, or write them with another content type"
        ));
    }
    Ok(())
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
    if let Some(name) = names.data_content_type {
        headers.push((Cow::Borrowed(name), event.payload().content_type().to_owned()));
    }
    rules.add_others(&mut headers, event, |name| is_reserved(outline.kind, name))?;
    if names.percent {
        for (name, value) in &mut headers {
            if header::attribute(outline.kind, name).is_some()
                && let Cow::Owned(encoded) = percent(value)
            {
                *value = encoded;
            }
        }
    }
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
            for attribute in ATTRIBUTES {
                let name = format!("{prefix}{attribute}");
                assert!(is_attribute(kind, &name) && is_attribute(kind, &name.to_ascii_uppercase()), "{kind}: {name}");
            }
            assert!(!is_attribute(kind, "region") && !is_attribute(kind, &format!("x{id}")), "{kind}");
            assert!(!is_reserved(kind, "traceparent"), "{kind}");
        }
        assert!(is_reserved("rabbitmq", "cloudEvents:type") && is_reserved("rabbitmq", "ce-type"));
    }

    #[test]
    fn a_payload_that_is_a_cloud_event_is_refused_in_binary_mode() {
        for media_type in [STRUCTURED, " Application/CloudEvents-Batch+json; charset=utf-8", "application/cloudevents"]
        {
            let refused = refuse_structured(media_type).map_err(|problem| problem.contains(media_type));
            assert_eq!(refused, Err(true), "{media_type}");
        }
        for media_type in ["application/json", "application/cloudevent", "text/plain", "\u{e5}", ""] {
            assert_eq!(refuse_structured(media_type), Ok(()), "{media_type}");
        }
    }

    /// The examples of the specification, and what the Python library of CloudEvents 2.2.0 makes of the same values.
    #[test]
    fn values_are_percent_encoded_as_the_bindings_say() {
        for (value, encoded) in [
            ("Euro \u{20AC} \u{1F600}", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
            ("1234-1234-1234", "1234-1234-1234"),
            ("say \"100%\"\t", "say%20%22100%25%22%09"),
            ("/my/context?a=b&c=[d]#~!'()*", "/my/context?a=b&c=[d]#~!'()*"),
            ("\u{7f}", "%7F"),
        ] {
            assert_eq!(percent(value), encoded);
        }
    }
}
