//! A server that is killed and comes back while much is published.

use pillarbox_core::error::BoxError;
use pillarbox_redis::RedisPublisher;
use pillarbox_testkit::publishers::{Load, load_through};

use crate::support;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_when_the_server_is_killed_under_load() -> Result<(), BoxError> {
    let mut server = support::start(&[]).await?;
    let publisher = RedisPublisher::new(support::options(server.address().port()))?;
    let port = server.address().port();
    let confirmed = load_through(&publisher, "orders", Load::default(), async {
        server.kill().await?;
        server.restart().await
    })
    .await?;
    assert!(confirmed.failures > 0, "the server was away");
    let entries = support::entries(&mut support::client(port, None).await?, "orders").await?;
    let ids = entries.iter().filter_map(|entry| entry.id.as_deref());
    let duplicates = confirmed.duplicates_among(ids)?;
    eprintln!("{duplicates} duplicates, {} failures, {:?}", confirmed.failures, confirmed.took);
    assert!(duplicates <= confirmed.failures, "only what was not confirmed is sent twice");
    Ok(())
}
