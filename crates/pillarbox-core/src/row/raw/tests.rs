use super::*;

type Raw = RawRow<'static>;
type Change = fn(&mut Raw);

/// A row with nothing but what an `INSERT (event_id, event_type, payload)` gives it.
fn plain() -> Raw {
    RawRow {
        seq: 7,
        timed: false,
        attempts: 0,
        replays: Ok(0),
        event_id: Ok(Some("e-1")),
        event_type: Ok(Some("order.placed")),
        aggregate_type: Ok(None),
        aggregate_id: Ok(None),
        tenant_id: Ok(None),
        ordering_key: Ok(None),
        handler: Ok(None),
        headers: Ok(None),
        payload: Ok(Some("{}")),
        payload_bytes: Ok(None),
        content_type: Ok(None),
        status: Ok(Some(0)),
        partition: Ok(None),
        locked_by: Ok(None),
        occurred_at: Ok(None),
        created_at: Ok(Some(1000)),
    }
}

fn changed(change: impl FnOnce(&mut Raw)) -> FetchedRow {
    let mut raw = plain();
    change(&mut raw);
    raw.into_fetched()
}

fn row(change: impl FnOnce(&mut Raw)) -> Row {
    match changed(change) {
        FetchedRow::Row(row) => row,
        FetchedRow::Broken(row) => panic!("broken: {}", row.reason),
    }
}

fn broken(change: impl FnOnce(&mut Raw)) -> BrokenRow {
    match changed(change) {
        FetchedRow::Row(row) => panic!("an event: {row:?}"),
        FetchedRow::Broken(row) => row,
    }
}

fn unread<T>() -> Result<T, String> {
    Err("not UTF-8".to_owned())
}

#[test]
fn missing_columns_have_a_default() {
    let row = row(|_| {});
    assert_eq!((row.seq, row.event.id().as_str(), row.event.event_type()), (7, "e-1", "order.placed"));
    assert_eq!((row.event.aggregate_type(), row.order_key()), (GLOBAL_AGGREGATE, None));
    assert_eq!((row.event.occurred_at(), row.created_at), (Timestamp::from_micros(1000), Timestamp::from_micros(1000)));
    assert_eq!((row.status, row.partition, row.event.headers().len()), (Status::New, None, 0));
}

#[test]
fn values_are_taken_as_they_are() {
    assert_eq!(row(|raw| raw.occurred_at = Ok(Some(1))).event.occurred_at(), Timestamp::from_micros(1));
    assert_eq!(row(|raw| raw.status = Ok(Some(2))).status, Status::Retry);
    assert_eq!(row(|raw| raw.replays = Ok(u32::MAX)).expected().replays, u32::MAX);
    assert_eq!(row(|raw| raw.headers = Ok(Some(r#"{"a":"b"}"#))).event.headers().get("a"), Some("b"));
    for (number, partition) in [(0, Some(0)), (255, Some(255)), (256, None), (-1, None)] {
        assert_eq!(row(|raw| raw.partition = Ok(Some(number))).partition, partition, "{number}");
    }
    let binary = row(|raw| {
        raw.payload = Ok(None);
        raw.payload_bytes = Ok(Some(&[0, 255]));
        raw.content_type = Ok(Some("image/png"));
    });
    assert_eq!(
        (binary.event.payload().content_type(), binary.event.payload().as_bytes()),
        ("image/png", &[0, 255][..])
    );
}

#[test]
fn a_row_that_makes_no_event_says_why() {
    let table: [(Change, &str); 20] = [
        (|raw| raw.attempts = -1, "attempts is negative"),
        (|raw| raw.event_id = Ok(Some("")), "event field `id` is empty"),
        (|raw| raw.event_id = unread(), "event_id cannot be read: not UTF-8"),
        (|raw| raw.event_type = Ok(Some("")), "event_type is empty"),
        (|raw| raw.event_type = Ok(None), "event_type is empty"),
        (|raw| raw.event_type = unread(), "event_type cannot be read: not UTF-8"),
        (|raw| raw.aggregate_type = unread(), "aggregate_type cannot be read"),
        (|raw| raw.tenant_id = unread(), "tenant_id cannot be read"),
        (|raw| raw.headers = Ok(Some("[]")), "headers is not a JSON object of strings: "),
        (|raw| raw.headers = Ok(Some(r#"{"a":1}"#)), "headers is not a JSON object of strings: "),
        (|raw| raw.payload = Ok(None), "payload and payload_bytes are both NULL"),
        (|raw| raw.payload_bytes = Ok(Some(b"x")), "payload and payload_bytes are both set"),
        (|raw| raw.payload_bytes = unread(), "payload_bytes cannot be read"),
        (
            |raw| {
                raw.payload = Ok(None);
                raw.payload_bytes = Ok(Some(b"x"));
            },
            "content_type is missing beside payload_bytes",
        ),
        (|raw| raw.status = Ok(Some(4)), "status is none of the known ones"),
        (|raw| raw.status = Ok(None), "status is none of the known ones"),
        (|raw| raw.replays = unread(), "replays cannot be read"),
        (|raw| raw.partition = unread(), "partition cannot be read"),
        (|raw| raw.created_at = Ok(None), "created_at is NULL"),
        (|raw| raw.occurred_at = unread(), "occurred_at cannot be read"),
    ];
    for (change, reason) in table {
        let row = broken(change);
        assert!(row.reason.starts_with(reason), "{reason}: {}", row.reason);
        assert_eq!(row.seq, 7, "{reason}");
    }
}

#[test]
fn the_reason_shows_nothing_of_headers_that_are_no_object_of_strings() {
    for (headers, problem) in [
        ("\"secret\"", "it has something else at line 1, column 8"),
        ("[\"secret\"]", "it has something else at line 1, column 0"),
        ("{\"a\":\n{\"secret\": 1}}", "it has something else at line 2, column 0"),
        ("{\"a\": secret", "it is no JSON at line 1, column 7"),
        ("{\"a\": \"secret", "it ends too early at line 1, column 13"),
    ] {
        let reason = broken(|raw| raw.headers = Ok(Some(headers))).reason;
        assert_eq!(reason, format!("headers is not a JSON object of strings: {problem}"));
    }
}

#[test]
fn the_content_of_a_broken_row_counts() {
    let row = changed(|raw| (raw.headers, raw.payload) = (Ok(Some("[\"é\"]")), Ok(Some("{ }"))));
    assert!(matches!(row, FetchedRow::Broken(_)));
    assert_eq!(row.content_bytes(), 6 + 3);
    let both = changed(|raw| raw.payload_bytes = Ok(Some(&[0; 100])));
    assert_eq!(both.content_bytes(), 2 + 100);
    assert_eq!(changed(|raw| raw.payload = unread()).content_bytes(), 0);
}

#[test]
fn a_broken_row_keeps_its_identity_and_its_place_as_far_as_they_can_be_read() {
    type Order = (Option<&'static str>, Option<&'static str>);
    let table: [(Change, Order); 6] = [
        (|_| {}, (None, None)),
        (|raw| raw.aggregate_id = Ok(Some("a")), (Some("a"), None)),
        (|raw| (raw.aggregate_id, raw.ordering_key) = (Ok(Some("a")), Ok(Some("k"))), (Some("k"), None)),
        (|raw| (raw.aggregate_id, raw.ordering_key) = (Ok(Some("a")), unread()), (Some("a"), None)),
        (|raw| (raw.ordering_key, raw.handler) = (Ok(Some("k")), Ok(Some("h"))), (Some("k"), Some("h"))),
        (|raw| (raw.ordering_key, raw.handler) = (Ok(Some("k")), unread()), (Some("k"), None)),
    ];
    for (number, (change, (key, handler))) in table.into_iter().enumerate() {
        let row = broken(|raw| {
            change(raw);
            raw.event_type = Ok(None);
        });
        let key = key.map(|key| OrderKey { handler: handler.map(Into::into), key: key.into() });
        assert_eq!((row.key, row.handler.as_deref()), (key, handler), "case {number}");
    }
    let row = broken(|raw| (raw.attempts, raw.replays, raw.partition, raw.timed) = (-1, Ok(3), Ok(Some(9)), true));
    assert_eq!((row.attempts, row.replays, row.partition, row.timed), (0, 3, Some(9), true));
    let row = broken(|raw| (raw.event_id, raw.replays, raw.partition) = (unread(), unread(), unread()));
    assert_eq!((row.event_id.as_str(), row.replays, row.partition), ("", 0, None));
}
