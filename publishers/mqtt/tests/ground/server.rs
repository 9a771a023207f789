//! What is MQTT's own: topics without subscribers, permissions, limits, takeovers, TLS.

use std::io;
use std::time::Duration;

use crate::support::{self, Listener};
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::{PublishErrorKind, Publisher as _, Receipt};
use pillarbox_mqtt::{MqttOptions, MqttPublisher};
use pillarbox_testkit::publishers::{message, messages};

use PublishErrorKind::{Misconfigured, Permanent, Unavailable};

fn kinds(receipts: &[Receipt]) -> Vec<Option<PublishErrorKind>> {
    receipts.iter().map(|receipt| receipt.as_ref().err().map(|error| error.kind())).collect()
}

#[tokio::test]
async fn a_topic_nobody_listens_to_is_confirmed() -> Result<(), BoxError> {
    let server = support::start("").await?;
    let publisher = MqttPublisher::new(support::options(server.address().port()))?;
    publisher.check(&["nobody/here".to_owned()]).await?;
    assert_eq!(kinds(&publisher.publish(messages("nobody/here", 3)).await), [None; 3]);
    let error = publisher.check(&["shop/#".to_owned()]).await.expect_err("a wildcard");
    assert!(error.kind() == Misconfigured && error.to_string().contains("shop/#"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_topic_that_is_not_allowed_is_refused_for_its_message_alone() -> Result<(), BoxError> {
    let server = support::start_with("acl_file {dir}/acl", |directory| {
        std::fs::write(directory.join("acl"), "user relay\ntopic write allowed/#\n")
    })
    .await?;
    let publisher = MqttPublisher::new(support::options(server.address().port()))?;
    let batch = vec![message("allowed/a"), message("forbidden/a"), message("allowed/b")];
    let receipts = publisher.publish(batch).await;
    assert_eq!(kinds(&receipts), [None, Some(Misconfigured), None], "{receipts:?}");
    assert!(receipts[1].as_ref().is_err_and(|error| error.to_string().contains("forbidden/a")), "{receipts:?}");
    Ok(())
}

/// The broker says at the beginning how large a packet may be.
#[tokio::test]
async fn messages_too_large_for_the_broker_are_refused_and_nothing_else() -> Result<(), BoxError> {
    let server = support::start("max_packet_size 10000").await?;
    let publisher = MqttPublisher::new(support::options(server.address().port()))?;
    let mut batch = messages("sizes", 4);
    batch[1].body = vec![b'x'; 10_000].into();
    batch[2].body = vec![b'x'; 9_000].into();
    let receipts = publisher.publish(batch).await;
    assert_eq!(kinds(&receipts), [None, Some(Permanent), None, None], "{receipts:?}");
    Ok(())
}

/// The broker does not say so at the beginning, and the client does not know its answer: the connection is lost, and the
/// message is found out by its size. Another call at the same time loses nothing but time.
#[tokio::test]
async fn a_body_beyond_a_limit_that_is_not_told_is_refused_and_nothing_else() -> Result<(), BoxError> {
    let server = support::start("message_size_limit 10000").await?;
    let publisher = MqttPublisher::new(support::options(server.address().port()))?;
    let mut batch = messages("sizes", 4);
    batch[1].body = vec![b'x'; 10_001].into();
    batch[2].body = vec![b'x'; 9_000].into();
    let (receipts, others) = tokio::join!(publisher.publish(batch.clone()), publisher.publish(messages("sizes", 50)));
    assert_eq!(kinds(&receipts)[1], Some(Permanent), "{receipts:?}");
    for (place, receipt) in
        receipts.iter().enumerate().filter(|(place, _)| *place != 1).chain(others.iter().enumerate())
    {
        let fine = receipt.as_ref().map_or_else(|error| error.kind() == Unavailable, |_position| true);
        assert!(fine, "{place}: {receipt:?}");
    }
    batch.remove(1);
    assert_eq!(kinds(&publisher.publish(batch).await), [None; 3]);
    Ok(())
}

/// More at once than the broker bears: the client waits for acknowledgements in between.
#[tokio::test]
async fn no_more_is_under_way_than_the_broker_takes() -> Result<(), BoxError> {
    let server = support::start("max_inflight_messages 3").await?;
    let listener = Listener::start(server.address().port()).await?;
    let publisher = MqttPublisher::new(support::options(server.address().port()))?;
    let sent = messages("many", 500);
    assert!(publisher.publish(sent.clone()).await.iter().all(Result::is_ok));
    let arrived = listener.arrived("many", sent.len()).await;
    let bodies: Vec<_> = arrived.iter().map(|message| &message.body[..]).collect();
    assert_eq!(bodies, sent.iter().map(|message| &message.body[..]).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn another_client_of_the_same_name_is_told() -> Result<(), BoxError> {
    let server = support::start("").await?;
    let named = || {
        let mut options = support::options(server.address().port());
        options.client_id = Some("relay-1".to_owned());
        MqttPublisher::new(options)
    };
    let (first, second) = (named()?, named()?);
    assert_eq!(kinds(&first.publish(messages("shop", 1)).await), [None]);
    assert_eq!(kinds(&second.publish(messages("shop", 1)).await), [None]);
    assert_eq!(kinds(&first.publish(messages("shop", 1)).await), [None], "it connects again");
    Ok(())
}

/// A header that MQTT cannot carry would make the broker cut the connection, again and again.
#[tokio::test]
async fn messages_that_mqtt_cannot_carry_harm_no_others() -> Result<(), BoxError> {
    let server = support::start("").await?;
    let publisher = MqttPublisher::new(support::options(server.address().port()))?;
    let mut batch = messages("shop", 3);
    batch[1].headers.push(("note".into(), "two\nlines".to_owned()));
    let receipts = publisher.publish(batch).await;
    assert_eq!(kinds(&receipts), [None, Some(Permanent), None], "{receipts:?}");
    Ok(())
}

#[tokio::test]
async fn a_certificate_is_verified_with_its_name() -> Result<(), BoxError> {
    let server = support::start("certfile {dir}/cert.pem\nkeyfile {dir}/key.pem").await?;
    let port = server.address().port();
    let trusted = server.place().directory.join("cert.pem");
    let with = |host: &str, ca_file| {
        let mut options = MqttOptions::new(format!("mqtts://{}:{}@{host}:{port}", support::USER, support::PASSWORD));
        options.ca_file = ca_file;
        MqttPublisher::new(options)
    };
    let publisher = with("localhost", Some(trusted.clone()))?;
    publisher.check(&[]).await?;
    assert_eq!(kinds(&publisher.publish(messages("shop", 2)).await), [None; 2]);
    let (stranger, misnamed) = (with("localhost", None)?, with("127.0.0.1", Some(trusted))?);
    for untrusted in [stranger, misnamed] {
        let error = untrusted.check(&[]).await.expect_err("not trusted");
        assert_eq!(error.kind(), Misconfigured, "{error}");
    }
    let missing = with("localhost", Some("/no/such.pem".into())).expect_err("is not there");
    assert!(missing.to_string().contains("/no/such.pem"), "{missing}");
    Ok(())
}

/// A server that speaks no MQTT 5 says so in a way of its own, or says nothing.
#[tokio::test]
async fn somebody_who_speaks_no_mqtt_is_unavailable() -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let mut options = support::options(port);
    options.timeout = Duration::from_secs(2);
    let publisher = MqttPublisher::new(options)?;
    let answer = async {
        let (mut stream, _) = listener.accept().await?;
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await?;
        Ok::<_, io::Error>(stream)
    };
    let (receipts, _stream) = tokio::join!(publisher.publish(messages("shop", 1)), answer);
    assert_eq!(kinds(&receipts), [Some(Unavailable)], "{receipts:?}");
    Ok(())
}
