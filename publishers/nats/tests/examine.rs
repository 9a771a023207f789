//! Streams and servers that may lose what they have confirmed are found.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use async_nats::jetstream::{self, stream};
use pillarbox_core::error::BoxError;
use pillarbox_core::examine::{Checked, Judgement};
use pillarbox_core::publisher::Publisher as _;
use pillarbox_nats::{NatsOptions, NatsPublisher};
use pillarbox_testkit::publishers::Server;
use support::{PASSWORD, USER, client, start, start_as};

async fn examine(server: &Server, targets: &[&str]) -> Result<Vec<Checked>, BoxError> {
    let options = NatsOptions::new(format!("nats://{USER}:{PASSWORD}@{}", server.address()));
    let publisher = NatsPublisher::new(options)?;
    let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
    let results = publisher.examine(&targets).await;
    publisher.close().await;
    Ok(results)
}

fn judgement<'a>(results: &'a [Checked], code: &str) -> &'a Judgement {
    &results.iter().find(|checked| checked.check.code == code).expect("it is looked for").judgement
}

fn found(results: &[Checked], code: &str, part: &str) {
    let judgement = judgement(results, code);
    let Judgement::Found { evidence, .. } = judgement else { panic!("{code}: {judgement:?}") };
    assert!(evidence.contains(part), "{part}: {evidence}");
}

async fn stream_in(context: &jetstream::Context, name: &str, storage: stream::StorageType) -> Result<(), BoxError> {
    let subjects = vec![format!("{}.>", name.to_lowercase())];
    context.create_stream(stream::Config { name: name.to_owned(), subjects, storage, ..Default::default() }).await?;
    Ok(())
}

#[tokio::test]
async fn streams_that_may_lose_messages_are_found() -> Result<(), BoxError> {
    let server = start().await?;
    let context = client(&server).await?;
    stream_in(&context, "FILES", stream::StorageType::File).await?;
    stream_in(&context, "MEMORY", stream::StorageType::Memory).await?;
    let results = examine(&server, &["files.a", "files.b"]).await?;
    assert_eq!(judgement(&results, "nats-stream-memory"), &Judgement::Healthy);
    found(&results, "nats-stream-one-replica", "stream FILES has one replica");
    let results = examine(&server, &["files.a", "memory.a"]).await?;
    found(&results, "nats-stream-memory", "stream MEMORY is kept in memory");
    let nothing = examine(&server, &[]).await?;
    for code in ["nats-stream-memory", "nats-stream-one-replica"] {
        let Judgement::NotChecked { reason } = judgement(&nothing, code) else { panic!("{nothing:?}") };
        assert!(reason.contains("depends on the event"), "{reason}");
    }
    let Judgement::NotChecked { reason } = judgement(&results, "nats-sync-delayed") else { panic!("{results:?}") };
    assert!(reason.contains("system account"), "{reason}");
    Ok(())
}

#[tokio::test]
async fn a_server_that_confirms_before_it_syncs_is_found_where_it_may_be_asked() -> Result<(), BoxError> {
    let configuration = format!(
        "jetstream {{ store_dir: \"$DIRECTORY/data\" }}
            accounts {{
                SYS {{ users: [ {{ user: admin, password: secret }} ],
                    exports: [ {{ service: \"$SYS.REQ.SERVER.PING.JSZ\" }} ] }}
                APP {{ jetstream: enabled, users: [ {{ user: {USER}, password: \"{PASSWORD}\" }} ],
                    imports: [ {{ service: {{ account: SYS, subject: \"$SYS.REQ.SERVER.PING.JSZ\" }} }} ] }}
            }}
            system_account: SYS"
    );
    let server = start_as(configuration).await?;
    // Newer servers tell the interval, those before 2.10 have none to tell.
    found(&examine(&server, &[]).await?, "nats-sync-delayed", "sync");
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_away_is_told() -> Result<(), BoxError> {
    let mut server = start().await?;
    server.kill().await?;
    let results = examine(&server, &[]).await?;
    assert!(results.iter().all(|checked| matches!(checked.judgement, Judgement::NotChecked { .. })), "{results:?}");
    assert_eq!(results.len(), 3);
    Ok(())
}
