//! A Redis of the test's own, and what is in its streams.

#![allow(dead_code, clippy::expect_used, clippy::panic, reason = "a test's helpers, of which each test uses some")]

use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_redis::RedisOptions;
use pillarbox_testkit::publishers::{Arrived, Server};
use redis::aio::MultiplexedConnection;
use redis::streams::StreamRangeReply;
use redis::{AsyncCommands as _, AsyncConnectionConfig, FromRedisValue, Value};

/// Starts a server whose entries survive a SIGKILL, with more of its settings.
pub(crate) async fn start(settings: &'static [&'static str]) -> Result<Server, BoxError> {
    Server::start("redis-server", move |place, command| {
        command.args(["--bind", "127.0.0.1", "--port", &place.port.to_string(), "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"]).arg(&place.directory);
        command.args(settings);
        Ok(())
    })
    .await
}

/// Options for a server, or for a proxy before it.
pub(crate) fn options(port: u16) -> RedisOptions {
    let mut options = RedisOptions::new(format!("redis://127.0.0.1:{port}"));
    options.timeout = Duration::from_secs(20);
    options
}

/// The broker's own client, past the publisher.
pub(crate) async fn client(port: u16, password: Option<&str>) -> Result<MultiplexedConnection, BoxError> {
    let login = password.map(|password| format!(":{password}@")).unwrap_or_default();
    let client = redis::Client::open(format!("redis://{login}127.0.0.1:{port}"))?;
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(20)));
    Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
}

/// All entries of a stream.
pub(crate) async fn entries(client: &mut MultiplexedConnection, stream: &str) -> Result<Vec<Arrived>, BoxError> {
    let reply: StreamRangeReply = client.xrange_all(stream).await?;
    reply.ids.into_iter().map(|entry| arrived(entry.map)).collect()
}

fn arrived(fields: std::collections::HashMap<String, Value>) -> Result<Arrived, BoxError> {
    let mut arrived = Arrived::default();
    for (field, value) in fields {
        match field.as_str() {
            "body" => arrived.body = Vec::from_redis_value(value)?,
            "id" => arrived.id = Some(String::from_redis_value(value)?),
            "key" => arrived.key = Some(String::from_redis_value(value)?),
            "content-type" => arrived.content_type = Some(String::from_redis_value(value)?),
            other => {
                let name = other.strip_prefix("h:").ok_or_else(|| format!("an unknown field: {other}"))?;
                arrived.headers.push((name.to_owned(), String::from_redis_value(value)?));
            }
        }
    }
    Ok(arrived)
}
