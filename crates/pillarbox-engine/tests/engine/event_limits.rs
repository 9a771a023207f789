//! Every limit and rule of an event: what is refused is refused when the event is built, by name, with a remedy.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::event::{Envelope, EnvelopeBuilder, GLOBAL_AGGREGATE, Headers};

fn event() -> EnvelopeBuilder {
    Envelope::builder("t").payload_json("{}")
}

fn refused_field(builder: EnvelopeBuilder) -> &'static str {
    let error = builder.build().expect_err("should be refused");
    assert!(!error.problem().is_empty() && !error.remedy().is_empty(), "{error}");
    assert!(error.to_string().contains(&format!("`{}`", error.field())), "{error}");
    error.field()
}

#[test]
fn lengths_are_inclusive_and_counted_in_characters() {
    type Set = fn(String) -> EnvelopeBuilder;
    let table: [(&str, usize, Set); 8] = [
        ("id", 36, |text| event().id(text)),
        ("event_type", 128, |text| Envelope::builder(text).payload_json("{}")),
        ("aggregate_type", 64, |text| event().aggregate_type(text)),
        ("aggregate_id", 128, |text| event().aggregate_id(text)),
        ("tenant_id", 64, |text| event().tenant_id(text)),
        ("unique_key", 255, |text| event().unique_key(text)),
        ("key", 255, |text| event().key(text)),
        ("content_type", 128, |text| event().payload_bytes(text, vec![0])),
    ];
    for (field, max, set) in table {
        assert!(set("é".repeat(max)).build().is_ok(), "{field} of {max}");
        assert_eq!(refused_field(set("é".repeat(max + 1))), field);
        assert_eq!(refused_field(set(String::new())), field);
        assert_eq!(refused_field(set("a\0b".to_owned())), field);
    }
}

#[test]
fn a_payload_is_required_and_at_most_a_mebibyte() {
    assert_eq!(refused_field(Envelope::builder("t")), "payload");
    assert_eq!(refused_field(event().payload_json("{")), "payload");
    assert_eq!(refused_field(event().payload(&f64::NAN).payload_json("")), "payload");
    assert!(event().payload_bytes("x/y", vec![0; 1_048_576]).build().is_ok());
    assert_eq!(refused_field(event().payload_bytes("x/y", vec![0; 1_048_577])), "payload");
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    assert!(event().payload_json(text(1_048_576)).build().is_ok());
    assert_eq!(refused_field(event().payload_json(text(1_048_577))), "payload");
}

#[test]
fn headers_are_checked() {
    assert_eq!(refused_field(event().header("", "x")), "headers");
    assert_eq!(refused_field(event().header("a\0", "x")), "headers");
    assert_eq!(refused_field(event().header("a", "\0")), "headers");
    assert_eq!(refused_field(event().header("a", "x".repeat(65_536))), "headers");
    let built = event().header("a", "1").headers([("a", "2"), ("b", "")]).build().expect("valid");
    assert_eq!(built.headers(), &Headers::from_iter([("a", "2"), ("b", "")]));
}

#[test]
fn delay_rules() {
    let at = Timestamp::from_micros;
    let second = Duration::from_secs(1);
    let base = || event().occurred_at(at(10_000_000));
    assert_eq!(refused_field(base().available_at(at(20_000_000)).deliver_after(second)), "available_at");
    assert_eq!(refused_field(base().deliver_after(Duration::ZERO)), "deliver_after");
    assert_eq!(refused_field(base().deliver_after(Duration::MAX)), "deliver_after");
    assert_eq!(refused_field(base().available_at(at(9_999_999))), "available_at");
    assert_eq!(refused_field(event().available_at(at(i64::MIN))), "available_at", "no database stores it");
    assert_eq!(refused_field(event().occurred_at(at(i64::MAX))), "occurred_at");
    // A time that was planned earlier and is over by the time of the write.
    let over = event().available_at(at(0)).build().expect("is due at once");
    assert_eq!((over.is_delayed(), over.available_at()), (false, None));
    let equal = base().available_at(at(10_000_000)).build().expect("equal is allowed");
    assert!(!equal.is_delayed());
    let delayed = base().deliver_after(second).build().expect("valid");
    assert!(delayed.is_delayed());
    assert_eq!((delayed.deliver_after(), delayed.available_at()), (Some(second), None));
    let later = base().available_at(at(11_000_000)).build().expect("valid");
    assert_eq!((later.deliver_after(), later.available_at()), (None, Some(at(11_000_000))));
}

#[test]
fn defaults_are_those_of_the_predecessors() {
    let (first, second) = (event().build().expect("valid"), event().build().expect("valid"));
    assert_eq!(first.aggregate_type(), GLOBAL_AGGREGATE);
    assert_eq!((first.aggregate_id(), first.tenant_id(), first.key()), (None, None, None));
    assert!(first.headers().is_empty() && !first.is_delayed());
    assert!(first.id() < second.id(), "ids grow");
    assert_eq!(event().aggregate("order", "7").build().expect("valid").key(), Some("7"));
    assert_eq!(event().aggregate("order", "7").key("k").build().expect("valid").key(), Some("k"));
}
