//! What `#[derive(Event)]` makes of each setting.
#![cfg(feature = "macros")]

use std::fmt;

use pillarbox::Event;
use pillarbox::error::InvalidEvent;
use pillarbox::event::{Envelope, GLOBAL_AGGREGATE, limits};
use serde::{Deserialize, Serialize};

#[expect(clippy::expect_used, reason = "only tests call it")]
fn build(event: &impl Event) -> Envelope {
    event.to_builder().build().expect("a valid event")
}

fn refused_field(event: &impl Event) -> Option<&'static str> {
    event.to_builder().build().err().map(|error: InvalidEvent| error.field())
}

#[derive(Serialize, Event)]
#[event(name = "service.started")]
struct Started;

#[test]
fn a_name_is_enough() {
    let event = build(&Started);
    assert_eq!((event.event_type(), event.aggregate_type()), ("service.started", GLOBAL_AGGREGATE));
    assert_eq!((event.aggregate_id(), event.key(), event.tenant_id()), (None, None, None));
    assert!(event.headers().is_empty());
    assert_eq!(event.payload().as_json(), Some("null"));
}

#[derive(Serialize, Deserialize, Event)]
#[event(name = "order.placed", aggregate = "order", key = order_id)]
struct OrderPlaced {
    order_id: String,
    total_cents: i64,
}

#[test]
fn the_key_of_an_aggregate_is_its_id() {
    let placed = OrderPlaced { order_id: "o-7".to_owned(), total_cents: 1999 };
    assert_eq!(placed.key().as_deref(), Some("o-7"));
    let event = build(&placed);
    assert_eq!((event.event_type(), event.aggregate_type()), ("order.placed", "order"));
    assert_eq!((event.aggregate_id(), event.key()), (Some("o-7"), Some("o-7")));
}

#[test]
fn a_key_without_an_aggregate_is_only_a_key() {
    #[derive(Serialize, Event)]
    #[event(name = "mail.queued", key = mailbox)]
    struct MailQueued {
        mailbox: String,
    }
    let event = build(&MailQueued { mailbox: "inbox".to_owned() });
    assert_eq!((event.key(), event.aggregate_id()), (Some("inbox"), None));
}

/// An identifier as services have them: a type of their own that can be displayed.
#[derive(Serialize, Clone, Copy)]
struct CustomerId(u32);

impl fmt::Display for CustomerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c-{}", self.0)
    }
}

#[derive(Serialize)]
struct Customer {
    id: CustomerId,
    pair: (u8, (char, bool)),
}

#[derive(Serialize, Event)]
#[event(name = "order.shipped", aggregate = "order", aggregate_id = order_number, key = customer.id, tenant = r#type)]
#[event(headers("source" = channel, "x-parcel" = customer.pair.1.0, "missing" = nothing))]
struct OrderShipped {
    order_number: u64,
    customer: Customer,
    r#type: &'static str,
    channel: Option<String>,
    nothing: Option<u8>,
}

#[test]
fn every_setting_reads_its_field() {
    let event = build(&OrderShipped {
        order_number: 42,
        customer: Customer { id: CustomerId(9), pair: (1, ('z', true)) },
        r#type: "acme",
        channel: Some("web".to_owned()),
        nothing: None,
    });
    assert_eq!(event.aggregate_id(), Some("42"));
    assert_eq!(event.key(), Some("c-9"));
    assert_eq!(event.tenant_id(), Some("acme"));
    let headers: Vec<_> = event.headers().iter().collect();
    assert_eq!(headers, [("source", "web"), ("x-parcel", "z")], "a header without a value is left out");
}

#[test]
fn fields_that_hold_nothing_leave_their_part_out() {
    #[derive(Serialize, Event)]
    #[event(name = "a.b", aggregate = "a", key = key, tenant = tenant)]
    struct Optional {
        key: Option<String>,
        tenant: Option<CustomerId>,
    }
    let event = build(&Optional { key: None, tenant: None });
    assert_eq!((event.aggregate_id(), event.key(), event.tenant_id()), (None, None, None));
    let event = build(&Optional { key: Some("k".to_owned()), tenant: Some(CustomerId(1)) });
    assert_eq!((event.aggregate_id(), event.key(), event.tenant_id()), (Some("k"), Some("k"), Some("c-1")));
}

#[test]
fn strings_are_lent_and_the_rest_is_formatted() {
    use std::borrow::Cow;
    use std::sync::Arc;

    #[derive(Serialize, Event)]
    #[event(name = "a.b", key = owned, aggregate_id = shared, tenant = number)]
    struct Strings<'a> {
        owned: Cow<'a, str>,
        shared: Arc<str>,
        number: i8,
    }
    let strings = Strings { owned: Cow::Borrowed("k"), shared: "s".into(), number: -1 };
    assert!(matches!(strings.key(), Some(Cow::Borrowed("k"))));
    assert!(matches!(strings.aggregate_id(), Some(Cow::Borrowed("s"))));
    assert!(matches!(strings.tenant_id(), Some(Cow::Owned(number)) if number == "-1"));
}

#[test]
fn tuple_structs_name_fields_by_position() {
    #[derive(Serialize, Event)]
    #[event(name = "a.b", key = 0, tenant = 1.1)]
    struct Pair(String, (u8, u16));

    let event = build(&Pair("k".to_owned(), (1, 2)));
    assert_eq!((event.key(), event.tenant_id()), (Some("k"), Some("2")));
    assert_eq!(event.payload().as_json(), Some(r#"["k",[1,2]]"#));
}

#[test]
fn an_enum_has_one_name() {
    #[derive(Serialize, Deserialize, Debug, PartialEq, Event)]
    #[event(name = "user.changed", aggregate = "user")]
    #[serde(tag = "what")]
    enum UserChanged {
        Renamed { to: String },
        Removed,
    }
    let event = build(&UserChanged::Renamed { to: "Ada".to_owned() });
    assert_eq!((event.event_type(), event.aggregate_type()), ("user.changed", "user"));
    assert_eq!((event.aggregate_id(), event.key()), (None, None));
    assert_eq!(
        event.payload().parse::<UserChanged>().expect("its own JSON"),
        UserChanged::Renamed { to: "Ada".into() }
    );
    assert_eq!(build(&UserChanged::Removed).payload().as_json(), Some(r#"{"what":"Removed"}"#));
}

#[test]
fn generic_types_are_events_when_their_payload_serialises() {
    #[derive(Serialize, Event)]
    #[event(name = "thing.changed", aggregate = "thing", key = id)]
    struct Changed<'a, K: fmt::Display, T, const N: usize>
    where
        T: Clone,
    {
        id: K,
        note: &'a str,
        values: Vec<[T; 1]>,
        #[serde(skip)]
        _size: [u8; N],
    }
    let event = build(&Changed { id: CustomerId(3), note: "n", values: vec![[1.5]], _size: [0; 4] });
    assert_eq!(event.key(), Some("c-3"));
    assert_eq!(event.payload().as_json(), Some(r#"{"id":3,"note":"n","values":[[1.5]]}"#));
}

#[test]
fn the_payload_is_what_serde_json_writes() {
    let placed = OrderPlaced { order_id: "a\"b/é\u{1F4E6}\n".to_owned(), total_cents: i64::MIN };
    let event = build(&placed);
    assert_eq!(event.payload().as_json(), serde_json::to_string(&placed).ok().as_deref());
    assert_eq!(
        event.payload().as_json(),
        Some("{\"order_id\":\"a\\\"b/é\u{1F4E6}\\n\",\"total_cents\":-9223372036854775808}")
    );

    // Text that is JSON already stays as it is, spacing and order included.
    #[derive(Serialize, Event)]
    #[event(name = "raw")]
    #[serde(transparent)]
    struct Raw(Box<serde_json::value::RawValue>);
    let verbatim = r#"{ "b": 1.50,  "a": 2, "a": 3 }"#;
    let raw = Raw(serde_json::value::RawValue::from_string(verbatim.to_owned()).expect("JSON"));
    assert_eq!(build(&raw).payload().as_json(), Some(verbatim));
}

#[test]
fn values_from_fields_are_checked_when_the_event_is_built() {
    #[derive(Serialize, Default, Event)]
    #[event(name = "a.b", aggregate_id = id, key = key, tenant = tenant, headers("h" = header))]
    struct Parts {
        id: Option<String>,
        key: Option<String>,
        tenant: Option<String>,
        header: Option<String>,
    }
    let text = |characters: usize| Some("é".repeat(characters));
    assert_eq!(refused_field(&Parts { id: text(limits::AGGREGATE_ID), ..Default::default() }), None);
    assert_eq!(
        refused_field(&Parts { id: text(limits::AGGREGATE_ID + 1), ..Default::default() }),
        Some("aggregate_id")
    );
    assert_eq!(refused_field(&Parts { key: text(limits::KEY), ..Default::default() }), None);
    assert_eq!(refused_field(&Parts { key: text(limits::KEY + 1), ..Default::default() }), Some("key"));
    assert_eq!(refused_field(&Parts { tenant: text(limits::TENANT_ID + 1), ..Default::default() }), Some("tenant_id"));
    assert_eq!(refused_field(&Parts { tenant: Some(String::new()), ..Default::default() }), Some("tenant_id"));
    assert_eq!(refused_field(&Parts { header: Some("a\0b".to_owned()), ..Default::default() }), Some("headers"));
}

#[test]
fn a_key_that_is_also_the_aggregate_id_keeps_to_its_limit() {
    let placed = |characters| OrderPlaced { order_id: "x".repeat(characters), total_cents: 0 };
    assert_eq!(refused_field(&placed(limits::AGGREGATE_ID)), None);
    // The event has said nothing of an aggregate id.
    assert_eq!(refused_field(&placed(limits::AGGREGATE_ID + 1)), Some("key"));
    assert_eq!(refused_field(&placed(0)), Some("key"));
    let error = placed(limits::AGGREGATE_ID + 1).to_builder().build().expect_err("it is too long").to_string();
    assert!(error.contains("is the aggregate id too, which has 129 characters, over the limit of 128"), "{error}");
}

/// The longest names the macro accepts are the longest ones the table accepts; the tests in `ui` go one further.
#[test]
fn the_limits_of_names_are_those_of_the_table() {
    #[derive(Serialize, Event)]
    #[event(
        name = "äaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        aggregate = "äaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    )]
    struct Longest;
    let event = build(&Longest);
    assert_eq!(event.event_type().chars().count(), limits::EVENT_TYPE);
    assert_eq!(event.aggregate_type().chars().count(), limits::AGGREGATE_TYPE);
}

mod vendored {
    pub(super) use ::pillarbox as outbox;
}

/// Names of the prelude mean something else here, and nothing is called `pillarbox`.
#[expect(dead_code, reason = "they are there to be in the way")]
mod strict {
    pub(super) struct Option;
    pub(super) struct Some;
    pub(super) struct Cow;
    #[expect(non_camel_case_types, reason = "shadows the primitive type")]
    pub(super) struct str;

    #[derive(serde::Serialize, ::pillarbox::Event)]
    #[event(crate = super::vendored::outbox, name = "a.b", aggregate = "a", key = id, headers("h" = id))]
    pub(super) struct Renamed {
        pub(super) id: u8,
    }
}

#[test]
fn the_crate_may_go_by_another_name_and_the_prelude_be_shadowed() {
    let event = build(&strict::Renamed { id: 5 });
    assert_eq!((event.key(), event.headers().get("h")), (Some("5"), Some("5")));
}

/// Names and fields may come through a macro of the user's, which wraps them in invisible delimiters.
macro_rules! declare {
    ($type:ident, $name:literal, $header:literal, $field:ident: $of:ty) => {
        #[derive(Serialize, Event)]
        #[event(name = $name, key = $field, headers($header = $field))]
        struct $type {
            $field: $of,
        }
    };
}

declare!(Declared, "declared.by.macro", "x-number", number: u32);

#[test]
fn events_may_be_declared_by_a_macro() {
    let event = build(&Declared { number: 8 });
    assert_eq!((event.event_type(), event.key()), ("declared.by.macro", Some("8")));
    assert_eq!(event.headers().get("x-number"), Some("8"));
}

#[test]
fn fields_are_reached_through_smart_pointers() {
    #[derive(Serialize, Event)]
    #[event(name = "a.b", key = customer.id, tenant = shared)]
    struct Boxed<'a> {
        customer: Box<Customer>,
        shared: &'a &'a str,
    }
    let customer = Box::new(Customer { id: CustomerId(2), pair: (0, ('a', false)) });
    let event = build(&Boxed { customer, shared: &"s" });
    assert_eq!((event.key(), event.tenant_id()), (Some("c-2"), Some("s")));
}
