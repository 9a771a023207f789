//! A broker that is killed and comes back while much is published.

#![allow(clippy::print_stderr, reason = "a test says how many duplicates there were")]

mod support;

use pillarbox_core::error::BoxError;
use pillarbox_rabbitmq::RabbitMqPublisher;
use pillarbox_testkit::publishers::{Load, load_through};
use support::Client;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_when_the_broker_is_killed_under_load() -> Result<(), BoxError> {
    let mut server = support::start().await?;
    let port = server.address().port();
    let client = Client::connect(port).await?;
    client.exchange("shop").await?;
    client.bound("orders", "shop", "#").await?;
    drop(client);
    // The broker writes what was declared to its disk when it has time, and a kill before that loses the queue with all it holds.
    support::control(&server, &["eval", "mnesia:sync_log()."])?;
    let publisher = RabbitMqPublisher::new(support::options(port))?;
    let confirmed = load_through(&publisher, "shop/order.placed", Load::default(), async {
        server.kill().await?;
        server.restart().await
    })
    .await?;
    assert!(confirmed.failures > 0, "the broker was away");
    let arrived = Client::connect(port).await?.drain("orders").await?;
    let duplicates = confirmed.duplicates_among(arrived.iter().filter_map(|message| message.id.as_deref()))?;
    eprintln!("{duplicates} duplicates, {} failures, {:?}", confirmed.failures, confirmed.took);
    assert!(duplicates <= confirmed.failures, "only what was not confirmed is sent twice");
    Ok(())
}
