//! What is Redis's own: kinds of keys, memory, replicas, permissions, trimming, TLS.

use std::process::Command;

use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::{FailureScope, PublishErrorKind, Publisher as _};
use pillarbox_redis::{RedisOptions, RedisPublisher};
use pillarbox_testkit::publishers::{Server, message, messages};
use redis::AsyncCommands as _;

use PublishErrorKind::{Misconfigured, Unavailable};

use crate::support;

fn kinds(receipts: &[pillarbox_core::publisher::Receipt]) -> Vec<Option<PublishErrorKind>> {
    receipts.iter().map(|receipt| receipt.as_ref().err().map(|error| error.kind())).collect()
}

#[tokio::test]
async fn a_stream_is_created_by_its_first_entry_unless_that_is_off() -> Result<(), BoxError> {
    let server = support::start(&[]).await?;
    let port = server.address().port();
    let creating = RedisPublisher::new(support::options(port))?;
    let mut options = support::options(port);
    options.create_streams = false;
    let strict = RedisPublisher::new(options)?;
    let target = ["new".to_owned()];
    assert_eq!(strict.check(&target).await.map_err(|error| error.kind()), Err(Misconfigured));
    assert_eq!(kinds(&strict.publish(messages("new", 2)).await), [Some(Misconfigured); 2]);
    creating.check(&target).await?;
    let mut client = support::client(port, None).await?;
    assert!(!client.exists::<_, bool>("new").await?, "a check creates nothing");
    assert_eq!(kinds(&creating.publish(messages("new", 2)).await), [None; 2]);
    strict.check(&target).await?;
    assert_eq!(kinds(&strict.publish(messages("new", 1)).await), [None]);
    assert_eq!(support::entries(&mut client, "new").await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn an_entry_is_where_its_receipt_says() -> Result<(), BoxError> {
    let server = support::start(&[]).await?;
    let publisher = RedisPublisher::new(support::options(server.address().port()))?;
    let mut client = support::client(server.address().port(), None).await?;
    let messages = messages("shop/orders", 20);
    for (message, receipt) in messages.iter().zip(publisher.publish(messages.clone()).await) {
        let position = receipt?.ok_or("no position")?;
        let id = position.strip_prefix("shop/orders/").ok_or("another stream")?;
        let found: redis::Value = redis::cmd("XRANGE").arg(&["shop/orders", id, id]).query_async(&mut client).await?;
        assert!(format!("{found:?}").contains(message.id.as_str()), "{position}: {found:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_key_that_is_no_stream_is_refused_for_its_message_alone() -> Result<(), BoxError> {
    let server = support::start(&[]).await?;
    let publisher = RedisPublisher::new(support::options(server.address().port()))?;
    let mut client = support::client(server.address().port(), None).await?;
    client.lpush::<_, _, ()>("list", 1).await?;
    let receipts = publisher.publish(vec![message("orders"), message("list"), message("orders")]).await;
    assert_eq!(kinds(&receipts), [None, Some(Misconfigured), None]);
    let error = publisher.check(&["list".to_owned()]).await.expect_err("refused");
    assert!(error.kind() == Misconfigured && error.to_string().contains("list: the key holds a list"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_stream_without_further_ids_waits_alone() -> Result<(), BoxError> {
    let server = support::start(&[]).await?;
    let publisher = RedisPublisher::new(support::options(server.address().port()))?;
    let mut client = support::client(server.address().port(), None).await?;
    let last = format!("{0}-{0}", u64::MAX);
    redis::cmd("XADD").arg(&["full", &last, "a", "b"]).exec_async(&mut client).await?;
    let receipts = publisher.publish(vec![message("orders"), message("full"), message("orders")]).await;
    assert_eq!(kinds(&receipts), [None, Some(Misconfigured), None]);
    assert_eq!(receipts[1].as_ref().map_err(|error| error.scope()), Err(FailureScope::Target));
    Ok(())
}

#[tokio::test]
async fn a_server_without_the_command_is_misconfigured() -> Result<(), BoxError> {
    let server = support::start(&["--rename-command", "XADD", ""]).await?;
    let publisher = RedisPublisher::new(support::options(server.address().port()))?;
    let receipts = publisher.publish(messages("orders", 2)).await;
    assert_eq!(kinds(&receipts), [Some(Misconfigured); 2], "{receipts:?}");
    let error = publisher.check(&["orders".to_owned()]).await.expect_err("it cannot be appended to");
    assert!(error.kind() == Misconfigured && error.scope() == FailureScope::Broker, "{error}");
    Ok(())
}

#[tokio::test]
async fn a_server_without_memory_is_unavailable_until_it_has_some() -> Result<(), BoxError> {
    let server = support::start(&["--maxmemory-policy", "noeviction"]).await?;
    let publisher = RedisPublisher::new(support::options(server.address().port()))?;
    let mut client = support::client(server.address().port(), None).await?;
    let mut memory =
        async |bytes: u32| redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes).exec_async(&mut client).await;
    memory(1).await?;
    assert_eq!(kinds(&publisher.publish(messages("orders", 2)).await), [Some(Unavailable); 2]);
    assert_eq!(publisher.check(&["orders".to_owned()]).await.map_err(|error| error.kind()), Err(Unavailable));
    memory(0).await?;
    assert_eq!(kinds(&publisher.publish(messages("orders", 2)).await), [None; 2]);
    Ok(())
}

#[tokio::test]
async fn a_server_that_became_a_replica_is_left() -> Result<(), BoxError> {
    let (server, other) = (support::start(&[]).await?, support::start(&[]).await?);
    let publisher = RedisPublisher::new(support::options(server.address().port()))?;
    assert_eq!(kinds(&publisher.publish(messages("orders", 1)).await), [None]);
    let mut client = support::client(server.address().port(), None).await?;
    let connections = async |client: &mut redis::aio::MultiplexedConnection| {
        let info: redis::InfoDict = redis::cmd("INFO").arg("stats").query_async(client).await?;
        Ok::<_, BoxError>(info.get::<u64>("total_connections_received").unwrap_or(0))
    };
    redis::cmd("REPLICAOF").arg("127.0.0.1").arg(other.address().port()).exec_async(&mut client).await?;
    let before = connections(&mut client).await?;
    assert_eq!(kinds(&publisher.publish(messages("orders", 1)).await), [Some(Unavailable)]);
    assert_eq!(kinds(&publisher.publish(messages("orders", 1)).await), [Some(Unavailable)]);
    assert_eq!(connections(&mut client).await?, before + 1, "the second call asked for a new connection");
    redis::cmd("REPLICAOF").arg("NO").arg("ONE").exec_async(&mut client).await?;
    assert_eq!(kinds(&publisher.publish(messages("orders", 1)).await), [None]);
    Ok(())
}

#[tokio::test]
async fn a_user_who_may_only_append_is_enough_and_who_may_not_is_told() -> Result<(), BoxError> {
    let server = support::start(&[]).await?;
    let mut client = support::client(server.address().port(), None).await?;
    let mut user = redis::cmd("ACL");
    user.arg("SETUSER").arg("relay").arg("on").arg(">pass").arg("~orders*").arg("+xadd");
    user.exec_async(&mut client).await?;
    let mut options = support::options(server.address().port());
    (options.username, options.password) = (Some("relay".to_owned()), Some("pass".into()));
    let publisher = RedisPublisher::new(options)?;
    publisher.check(&["orders-new".to_owned()]).await?;
    let receipts = publisher.publish(vec![message("orders-new"), message("secrets")]).await;
    assert_eq!(kinds(&receipts), [None, Some(Misconfigured)]);
    let error = publisher.check(&["secrets".to_owned()]).await.expect_err("not allowed");
    assert!(error.kind() == Misconfigured && error.to_string().contains("+xadd"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_stream_is_trimmed_to_about_its_length() -> Result<(), BoxError> {
    let server = support::start(&[]).await?;
    let mut options = support::options(server.address().port());
    options.max_length = Some(500);
    let publisher = RedisPublisher::new(options)?;
    assert!(publisher.publish(messages("orders", 2_500)).await.iter().all(Result::is_ok));
    let left = support::entries(&mut support::client(server.address().port(), None).await?, "orders").await?.len();
    // Redis removes whole nodes of a hundred.
    assert!((500..=700).contains(&left), "{left}");
    Ok(())
}

#[tokio::test]
async fn the_database_of_the_url_is_used_and_one_that_is_missing_is_told() -> Result<(), BoxError> {
    let server = support::start(&[]).await?;
    let port = server.address().port();
    let publisher = RedisPublisher::new(RedisOptions::new(format!("redis://127.0.0.1:{port}/3")))?;
    assert_eq!(kinds(&publisher.publish(messages("orders", 1)).await), [None]);
    let mut client = support::client(port, None).await?;
    redis::cmd("SELECT").arg(3).exec_async(&mut client).await?;
    assert_eq!(support::entries(&mut client, "orders").await?.len(), 1);
    let missing = RedisPublisher::new(RedisOptions::new(format!("redis://127.0.0.1:{port}/99")))?;
    let error = missing.check(&[]).await.expect_err("there are sixteen");
    assert_eq!(error.kind(), Misconfigured, "{error}");
    Ok(())
}

/// A server with TLS alone, whose certificate is for `localhost`.
async fn start_with_tls() -> Result<Server, BoxError> {
    Server::start("redis-server", |place, command| {
        let (certificate, key) = (place.directory.join("cert.pem"), place.directory.join("key.pem"));
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]);
        openssl.args(["-subj", "/CN=pillarbox test", "-addext", "subjectAltName=DNS:localhost"]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"]).arg(&key).arg("-out");
        let made = openssl.arg(&certificate).output()?;
        if !made.status.success() {
            return Err(std::io::Error::other(String::from_utf8_lossy(&made.stderr).into_owned()));
        }
        command.args(["--port", "0", "--tls-port", &place.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--tls-auth-clients", "no", "--tls-cert-file"]).arg(&certificate);
        command.arg("--tls-key-file").arg(&key).arg("--tls-ca-cert-file").arg(&certificate);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_certificate_is_verified_with_its_name() -> Result<(), BoxError> {
    let server = start_with_tls().await?;
    let port = server.address().port();
    let trusted = server.place().directory.join("cert.pem");
    let with = |host: &str, ca_file: Option<std::path::PathBuf>| {
        let mut options = RedisOptions::new(format!("rediss://{host}:{port}"));
        options.ca_file = ca_file;
        RedisPublisher::new(options)
    };
    let publisher = with("localhost", Some(trusted.clone()))?;
    publisher.check(&[]).await?;
    assert_eq!(kinds(&publisher.publish(messages("orders", 2)).await), [None; 2]);
    let (stranger, misnamed) = (with("localhost", None)?, with("127.0.0.1", Some(trusted))?);
    for untrusted in [stranger, misnamed] {
        let error = untrusted.check(&[]).await.expect_err("not trusted");
        assert_eq!(error.kind(), Misconfigured, "{error}");
    }
    let missing = with("localhost", Some("/no/such.pem".into())).expect_err("is not there");
    assert!(missing.to_string().contains("/no/such.pem"), "{missing}");
    Ok(())
}
