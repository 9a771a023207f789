//! The messages per second that are confirmed, beside the rate of the client alone with the same confirmations:
//!
//! ```sh
//! cargo run --release -p pillarbox-nats --example throughput
//! ```
//!
//! It starts a `nats-server` of its own, with a stream on disk.

#![allow(clippy::print_stdout, reason = "the report is what it is for")]

use std::process::ExitCode;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::{self, message::PublishMessage, stream::Config};
use futures_util::future::{join_all, try_join_all};
use pillarbox_core::error::BoxError;
use pillarbox_core::publisher::{Message, Publisher as _, header};
use pillarbox_nats::{NatsOptions, NatsPublisher};
use pillarbox_testkit::publishers::{Server, messages};
use tokio::time::Instant;

const SUBJECT: &str = "orders.placed";
const BATCH: usize = 256;
const BODY: usize = 200;
const LASTS: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() -> ExitCode {
    match measure().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<(), BoxError> {
    let server = Server::start("nats-server", |place, command| {
        command.args(["--addr", "127.0.0.1", "--port", &place.port.to_string(), "--jetstream", "--store_dir"]);
        command.arg(&place.directory);
        Ok(())
    })
    .await?;
    let address = format!("nats://{}", server.address());
    let context = jetstream::new(async_nats::connect(&address).await?);
    let publisher = NatsPublisher::new(NatsOptions::new(&*address))?;
    println!("messages confirmed a second, {BODY} bytes, {BATCH} in a batch");
    println!("{:>8} {:>10} {:>10} {:>7}", "callers", "client", "publisher", "ratio");
    for callers in [1, 4, 8, 16] {
        let mut speeds = [0.0; 2];
        // Each first and last once: whoever comes later has a server that is still busy with deleting the stream before.
        for ours in [false, true, true, false] {
            let subjects = vec![SUBJECT.to_owned()];
            context.create_stream(Config { name: "ORDERS".to_owned(), subjects, ..Default::default() }).await?;
            let until = Instant::now() + LASTS;
            let calls = (0..callers).map(|_| async {
                let mut confirmed = 0;
                while Instant::now() < until {
                    if ours {
                        for receipt in publisher.publish(batch()).await {
                            receipt?;
                        }
                    } else {
                        plain(&context, batch()).await?;
                    }
                    confirmed += BATCH;
                }
                Ok::<_, BoxError>(confirmed)
            });
            let began = Instant::now();
            let confirmed: usize = try_join_all(calls).await?.into_iter().sum();
            let speed = confirmed as f64 / began.elapsed().as_secs_f64();
            speeds[usize::from(ours)] += speed / 2.0;
            context.delete_stream("ORDERS").await?;
        }
        println!("{callers:>8} {:>10.0} {:>10.0} {:>7.2}", speeds[0], speeds[1], speeds[1] / speeds[0]);
    }
    Ok(())
}

fn batch() -> Vec<Message> {
    let mut batch = messages(SUBJECT, BATCH);
    for message in &mut batch {
        message.body = vec![b'x'; BODY].into();
        message.headers.push((header::TYPE.into(), "order.placed".to_owned()));
    }
    batch
}

/// The same by the client alone.
async fn plain(context: &jetstream::Context, batch: Vec<Message>) -> Result<(), BoxError> {
    let mut acks = Vec::with_capacity(batch.len());
    for message in batch {
        let mut headers = HeaderMap::new();
        for (name, value) in &message.headers {
            headers.insert(&**name, &**value);
        }
        headers.insert("content-type", &*message.content_type);
        let publish = PublishMessage::build().message_id(message.id.as_str()).headers(headers).payload(message.body);
        acks.push(context.send_publish(SUBJECT, publish).await?);
    }
    for ack in join_all(acks.into_iter().map(IntoFuture::into_future)).await {
        ack?;
    }
    Ok(())
}
