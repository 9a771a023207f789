//! Names of headers that are not an event's to give: the outbox's own, which every message has, and those that control a protocol. All are compared without case, since HTTP, NATS and many consumers do.

/// The event's id, by which consumers deduplicate.
pub const ID: &str = "event-id";
/// The event type, such as `order.placed`.
pub const TYPE: &str = "event-type";
/// The ordering key.
pub const KEY: &str = "event-key";
/// The kind of thing it happened to.
pub const AGGREGATE_TYPE: &str = "aggregate-type";
/// The id of the thing it happened to.
pub const AGGREGATE_ID: &str = "aggregate-id";
/// The tenant it belongs to.
pub const TENANT_ID: &str = "tenant-id";
/// The time at which it happened, by the writer's clock: `2026-11-21T09:30:00.123456Z`.
pub const TIME: &str = "event-time";

/// The outbox's names. A header of the event with one of them is not sent, whether the message has a value for it or not.
const OUTBOX: [&str; 7] = [ID, TYPE, KEY, AGGREGATE_TYPE, AGGREGATE_ID, TENANT_ID, TIME];

/// The names of one protocol.
struct Protocol {
    /// The kinds of brokers that speak it.
    kinds: &'static [&'static str],
    /// Names that tell the broker, the client or the consumer's framework what to do.
    commands: &'static [&'static str],
    /// Beginnings of such names.
    prefixes: &'static [&'static str],
    /// Prefixes of the attributes of CloudEvents, the one that is written first.
    cloud_events: &'static [&'static str],
    /// True if consumers may take `_` in a name for `-`, as all do that get headers by CGI, WSGI or PHP.
    underscores: bool,
}

impl Protocol {
    /// True if consumers may take one name for the other.
    fn is_same(&self, name: &str, other: &str) -> bool {
        let plain = |byte: u8| if self.underscores && byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
        name.bytes().map(plain).eq(other.bytes().map(plain))
    }

    /// The rest of a name after a prefix, or after what consumers may take for it.
    fn without_prefix<'a>(&self, name: &'a str, prefix: &str) -> Option<&'a str> {
        let (start, rest) = name.split_at_checked(prefix.len())?;
        self.is_same(start, prefix).then_some(rest)
    }
}

/// The protocol of all other kinds: without a CloudEvents binding of their own, they follow that of HTTP.
const OTHERS: Protocol =
    Protocol { kinds: &[], commands: &[], prefixes: &[], cloud_events: &["ce-"], underscores: false };

const PROTOCOLS: [Protocol; 6] = [
    // They say how a request is transferred, its origin, its preferences, or its signature. Headers that proxies set for the servers
    // behind them are among them, since those servers believe them.
    Protocol {
        kinds: &["webhook"],
        commands: &[
            "accept",
            "accept-encoding",
            "authorization",
            "client-ip",
            "connection",
            "cookie",
            "expect",
            "host",
            "keep-alive",
            "origin",
            "range",
            "te",
            "trailer",
            "transfer-encoding",
            "referer",
            "upgrade",
            "user-agent",
            "via",
            "x-host",
            "x-method-override",
            "x-real-ip",
            "x-rewrite-url",
            "x-user",
        ],
        prefixes: &[
            "content-",
            "webhook-",
            "proxy-",
            "forwarded",
            "cf-",
            "fastly-",
            "remote-",
            "ssl-",
            "true-client-",
            "x-amzn-",
            "x-auth-",
            "x-authenticated-",
            "x-azure-",
            "x-client-",
            "x-cluster-",
            "x-envoy-",
            "x-forwarded-",
            "x-goog-",
            "x-http-",
            "x-middleware-",
            "x-ms-client-",
            "x-original-",
            "x-remote-",
            "x-ssl-",
            "x-webauth-",
            "if-",
            "sec-",
            "event-header-",
        ],
        cloud_events: &["ce-"],
        underscores: true,
    },
    // The server takes what begins with `Nats-` for commands, such as to delete what was stored before.
    Protocol { kinds: &["nats"], commands: &["content-type"], prefixes: &["nats-"], ..OTHERS },
    Protocol { kinds: &["kafka"], commands: &["content-type"], cloud_events: &["ce_"], ..OTHERS },
    // `CC` and `BCC` send a copy to other queues, and close the channel where they are text. Consumers of CloudEvents know all
    // three prefixes: of AMQP, of AMQP before version 1.0.2, and of Knative.
    Protocol {
        kinds: &["rabbitmq"],
        commands: &["cc", "bcc"],
        cloud_events: &["cloudEvents_", "cloudEvents:", "ce-"],
        ..OTHERS
    },
    Protocol {
        kinds: &["sns", "sqs"],
        commands: &["content-type", "content-encoding", "event-headers"],
        prefixes: &["aws.", "amazon."],
        ..OTHERS
    },
    // User properties are named like the attributes.
    Protocol { kinds: &["mqtt"], cloud_events: &[""], ..OTHERS },
];

fn protocol(kind: &str) -> &'static Protocol {
    PROTOCOLS.iter().find(|protocol| protocol.kinds.contains(&kind)).unwrap_or(&OTHERS)
}

/// True for the outbox's names, in any case.
#[must_use]
pub fn is_of_the_outbox(name: &str) -> bool {
    OUTBOX.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// True for a name that differs from one of the outbox's in case alone: a publisher does not send it.
///
/// ```
/// use pillarbox_core::publisher::header;
///
/// assert!(header::imitates("Event-ID"));
/// assert!(!header::imitates("event-id") && !header::imitates("event-ids"));
/// ```
#[must_use]
pub fn imitates(name: &str) -> bool {
    is_of_the_outbox(name) && !OUTBOX.contains(&name)
}

/// True for a name that tells a broker of this kind, its client or its consumers what to do, or that its consumers may take for one of the
/// outbox's: not one for a header of an event.
///
/// ```
/// use pillarbox_core::publisher::header;
///
/// assert!(header::is_command("nats", "NATS-Rollup") && header::is_command("rabbitmq", "CC"));
/// assert!(!header::is_command("nats", "region"));
/// ```
#[must_use]
pub fn is_command(kind: &str, name: &str) -> bool {
    let protocol = protocol(kind);
    let passes_for = |own: &&str| !own.eq_ignore_ascii_case(name) && protocol.is_same(name, own);
    protocol.commands.iter().any(|command| protocol.is_same(name, command))
        || protocol.prefixes.iter().any(|prefix| protocol.without_prefix(name, prefix).is_some())
        || OUTBOX.iter().any(passes_for)
}

/// The attribute of CloudEvents that a header of this name would be, to a broker of this kind.
///
/// ```
/// use pillarbox_core::publisher::header;
///
/// assert_eq!(header::attribute("webhook", "CE-Id"), Some("Id"));
/// assert_eq!(header::attribute("rabbitmq", "cloudEvents:type"), Some("type"));
/// assert_eq!(header::attribute("kafka", "ce-id"), None);
/// ```
#[must_use]
pub fn attribute<'a>(kind: &str, name: &'a str) -> Option<&'a str> {
    let protocol = protocol(kind);
    protocol.cloud_events.iter().find_map(|prefix| protocol.without_prefix(name, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_outbox_are_known_in_any_case() {
        for name in OUTBOX {
            let (upper, title) = (name.to_ascii_uppercase(), name.replacen('e', "E", 1));
            assert!(is_of_the_outbox(name) && is_of_the_outbox(&upper) && is_of_the_outbox(&title));
            assert!(!imitates(name) && imitates(&upper) && imitates(&title), "{name}");
        }
        for name in ["", "event", "event_id", "x-event-id", "event-id ", "évent-id"] {
            assert!(!is_of_the_outbox(name) && !imitates(name), "{name}");
        }
    }

    #[test]
    fn commands_are_those_of_the_kind() {
        for (kind, name) in [
            ("webhook", "Host"),
            ("webhook", "WEBHOOK-Id"),
            ("webhook", "Content-Length"),
            ("webhook", "X-Forwarded-For"),
            ("webhook", "x_forwarded_for"),
            ("webhook", "Content_Type"),
            ("webhook", "X-HTTP-Method-Override"),
            ("webhook", "x-http-method"),
            ("webhook", "X-Method-Override"),
            ("webhook", "X-Real-IP"),
            ("webhook", "True-Client-IP"),
            ("webhook", "CF_Connecting_IP"),
            ("webhook", "X-Original-URL"),
            ("webhook", "X-Rewrite-URL"),
            ("webhook", "Origin"),
            ("webhook", "If-None-Match"),
            ("webhook", "event_id"),
            ("webhook", "AGGREGATE_type"),
            ("nats", "Nats-Msg-Id"),
            ("nats", "nats-rollup"),
            ("nats", "Content-Type"),
            ("kafka", "CONTENT-TYPE"),
            ("rabbitmq", "CC"),
            ("rabbitmq", "bcc"),
            ("sqs", "Content-Encoding"),
            ("sns", "AWS.trace"),
        ] {
            assert!(is_command(kind, name), "{kind}: {name}");
        }
        for (kind, name) in [
            ("webhook", "traceparent"),
            ("webhook", "event-id"),
            ("webhook", "Event-ID"),
            ("webhook", "original"),
            ("webhook", "iffy"),
            ("nats", "natsuki"),
            ("nats", "content_type"),
            ("kafka", "nats-x"),
            ("kafka", "event_id"),
            ("redis", "id"),
            ("mqtt", "cc"),
        ] {
            assert!(!is_command(kind, name), "{kind}: {name}");
        }
    }

    #[test]
    fn attributes_have_the_prefixes_of_their_binding() {
        for (kind, name, found) in [
            ("webhook", "ce-type", Some("type")),
            ("webhook", "CE_type", Some("type")),
            ("nats", "ce_type", None),
            ("nats", "Ce-Type", Some("Type")),
            ("unheard-of", "ce-type", Some("type")),
            ("kafka", "CE_type", Some("type")),
            ("rabbitmq", "cloudEvents_type", Some("type")),
            ("rabbitmq", "cloudevents:type", Some("type")),
            ("rabbitmq", "ce-type", Some("type")),
            ("mqtt", "type", Some("type")),
            ("kafka", "type", None),
            ("webhook", "c", None),
            ("webhook", "çe-x", None),
        ] {
            assert_eq!(attribute(kind, name), found, "{kind}: {name}");
        }
    }
}
