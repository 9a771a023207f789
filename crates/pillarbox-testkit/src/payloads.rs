use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, limits};

/// Events whose payloads break whatever parses, normalises, quotes or measures them on the way.
pub(crate) fn hard_payloads() -> Result<Vec<Envelope>, BoxError> {
    let long = format!("\"{}\"", "x".repeat(limits::PAYLOAD_BYTES - 2));
    let long_of_wide_characters = format!("\"{}\"", "é".repeat((limits::PAYLOAD_BYTES - 2) / 2));
    let deep = "[".repeat(limits::JSON_DEPTH) + &"]".repeat(limits::JSON_DEPTH);
    let json = [
        r#"{"b":1,  "a":2,"a":3}"#,
        "{ }",
        "null",
        " \n\t7 \r\n",
        "-0",
        "1e400",
        "0.10000000000000000000001",
        "12345678901234567890123",
        r#""""#,
        r#""\u0000 and \ud83e\udd80 and \/""#,
        r#""\ud800 is half a pair""#,
        "\"Grüße, 你好, 🦀, \u{202e}right to left, e\u{301}, \u{10ffff}\"",
        r#""it's \"quoted\" -- $1 ?1 :name %s {} \\ \\\\""#,
        &long,
        &long_of_wide_characters,
        &deep,
    ];
    let all_bytes: Vec<u8> = (0..=u8::MAX).collect();
    let binary = [all_bytes, Vec::new(), vec![0], vec![b'\\'; 3], b"{\"looks\": \"like JSON\"}".to_vec()];
    let full = vec![0xff; limits::PAYLOAD_BYTES];

    let mut events = Vec::new();
    for text in json {
        events.push(Envelope::json("test.json", text)?);
    }
    for bytes in binary.into_iter().chain([full]) {
        events.push(Envelope::builder("test.binary").payload_bytes("application/x-protobuf", bytes).build()?);
    }
    Ok(events)
}

/// An event every part of which is set and hard to store.
pub(crate) fn every_column() -> Result<Envelope, BoxError> {
    Ok(Envelope::builder("order.placed; DROP TABLE 'x' \"y\" --")
        .id("it's an id: 🦀")
        .aggregate("order \\ 'quoted'", "Grüße/你好")
        .tenant_id("tenant:\u{1}")
        .key("a key of its own")
        .header("empty", "")
        .header("Grüße", "🦀 \"quoted\" \\ 'single' \n")
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .payload_json(r#"{"total_cents": 1999}"#)
        .build()?)
}
