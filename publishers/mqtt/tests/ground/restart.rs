//! A broker that ends and comes back while much is published.

#![allow(clippy::print_stderr, reason = "a test says how many duplicates there were")]

use std::collections::HashSet;

use crate::support::{self, Listener};
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::Publisher as _;
use pillarbox_mqtt::MqttPublisher;
use pillarbox_testkit::publishers::{Arrived, Confirmed, Load, load_through, messages};

/// The publisher notices that its connection is gone, rather than to wait for an answer until its time is over.
fn assert_nobody_waited_in_vain(confirmed: &Confirmed) {
    let has_waited = |problem: &&String| problem.contains("did not answer in time");
    assert_eq!(confirmed.problems.keys().find(has_waited), None, "{:?}", confirmed.problems);
}

fn ids(arrived: &[Arrived]) -> impl Iterator<Item = &str> {
    arrived.iter().filter_map(|message| message.header("event-id"))
}

/// It has the time to write to disk what it has acknowledged, and the listener's session keeps what was meant for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_when_the_broker_is_restarted_under_load() -> Result<(), BoxError> {
    let mut server = support::start("").await?;
    let listener = Listener::start(server.address().port()).await?;
    let publisher = MqttPublisher::new(support::options(server.address().port()))?;
    let confirmed = load_through(&publisher, "orders", Load::default(), async {
        support::stop(&server).await?;
        server.restart().await
    })
    .await?;
    assert!(confirmed.failures > 0, "the broker was away");
    assert_nobody_waited_in_vain(&confirmed);
    let arrived = listener.arrived("orders", confirmed.ids.len() + confirmed.failures).await;
    let duplicates = confirmed.duplicates_among(ids(&arrived))?;
    eprintln!(
        "{duplicates} duplicates, {} failures, {:?} {:?}",
        confirmed.failures, confirmed.took, confirmed.problems
    );
    Ok(())
}

/// What Mosquitto had acknowledged and not yet written or passed on dies with it: its part of the guarantee ends there, and
/// the publisher's does not. Everything that was not confirmed is published again, and all is confirmed in the end. What is
/// confirmed once the broker and its listener are back arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_publisher_goes_on_when_the_broker_is_killed_under_load() -> Result<(), BoxError> {
    let mut server = support::start("").await?;
    let publisher = MqttPublisher::new(support::options(server.address().port()))?;
    let listener = Listener::start(server.address().port()).await?;
    let confirmed = load_through(&publisher, "orders", Load::default(), async {
        server.kill().await?;
        server.restart().await?;
        listener.subscribed(2).await;
        Ok(())
    })
    .await?;
    assert!(confirmed.failures > 0, "the broker was away");
    assert_nobody_waited_in_vain(&confirmed);
    let later = messages("later", 500);
    let sent: Vec<_> = later.iter().map(|message| message.id.to_string()).collect();
    for receipt in publisher.publish(later).await {
        receipt?;
    }
    let arrived = listener.arrived("later", sent.len()).await;
    let arrived: HashSet<_> = ids(&arrived).collect();
    let lost: Vec<_> = sent.iter().filter(|id| !arrived.contains(id.as_str())).collect();
    assert!(lost.is_empty(), "confirmed by a broker that stayed, and lost: {lost:?}");
    let arrived = listener.arrived("orders", confirmed.ids.len()).await;
    let arrived: HashSet<_> = ids(&arrived).collect();
    let lost = confirmed.ids.iter().filter(|id| !arrived.contains(id.as_str())).count();
    eprintln!("{lost} of {} confirmed were lost by the broker, {:?}", confirmed.ids.len(), confirmed.took);
    Ok(())
}
