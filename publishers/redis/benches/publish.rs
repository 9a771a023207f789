//! The messages per second that a Redis of its own confirms, with its log on disk: `cargo bench -p pillarbox-redis`, or
//! with other sizes: `… -- CALLERS BATCH`.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

#[path = "../tests/support/mod.rs"]
mod support;

use futures_util::future::try_join_all;
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::Publisher as _;
use pillarbox_redis::RedisPublisher;
use pillarbox_testkit::publishers::messages;
use tokio::time::Instant;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let sizes: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (callers, batch) = (sizes.first().copied().unwrap_or(4), sizes.get(1).copied().unwrap_or(256));
    let server = support::start(&[]).await?;
    let publisher = RedisPublisher::new(support::options(server.address().port()))?;
    for _ in 0..3 {
        let work: Vec<_> = (0..callers).map(|_| messages("orders", 200 * batch)).collect();
        let began = Instant::now();
        let callers = work.iter().map(async |own| {
            for batch in own.chunks(batch) {
                publisher.publish(batch.to_vec()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
            }
            Ok::<_, BoxError>(200 * batch)
        });
        let confirmed: usize = try_join_all(callers).await?.into_iter().sum();
        let seconds = began.elapsed().as_secs_f64();
        let pace = u32::try_from(confirmed).map(f64::from)? / seconds;
        println!("{confirmed} confirmed in {seconds:.2} s: {pace:.0} a second, batches of {batch}");
    }
    Ok(())
}
