use pillarbox_core::error::BoxError;
use pillarbox_core::examine::{Checked, Judgement};
use pillarbox_core::publisher::Publisher as _;
use pillarbox_redis::RedisPublisher;
use pillarbox_testkit::publishers::Server;

use crate::support::{client, options, start};

async fn examine(server: &Server) -> Result<Vec<Checked>, BoxError> {
    let publisher = RedisPublisher::new(options(server.address().port()))?;
    let results = publisher.examine(&[]).await;
    publisher.close().await;
    Ok(results)
}

fn evidence<'a>(results: &'a [Checked], code: &str) -> Option<&'a str> {
    let checked = results.iter().find(|checked| checked.check.code == code).expect("it is looked for");
    match &checked.judgement {
        Judgement::Found { evidence, .. } => Some(evidence),
        Judgement::Healthy => None,
        Judgement::NotChecked { reason } => panic!("{code} was not checked: {reason}"),
    }
}

#[tokio::test]
async fn a_server_that_may_lose_entries_is_found() -> Result<(), BoxError> {
    let server = start(&["--appendfsync", "always"]).await?;
    let codes = ["redis-not-persistent", "redis-fsync-delayed", "redis-evicts", "redis-replication-asynchronous"];
    let results = examine(&server).await?;
    assert_eq!(codes.map(|code| evidence(&results, code)), [None; 4], "all is well");
    let mut admin = client(server.address().port(), None).await?;
    for (setting, value, code, told) in [
        ("appendfsync", "everysec", "redis-fsync-delayed", "appendfsync is everysec"),
        ("appendonly", "no", "redis-not-persistent", "appendonly is no"),
        ("maxmemory", "100000000", "redis-evicts", ""),
        ("maxmemory-policy", "allkeys-lru", "redis-evicts", "maxmemory-policy is allkeys-lru"),
    ] {
        redis::cmd("CONFIG").arg("SET").arg(setting).arg(value).exec_async(&mut admin).await?;
        let results = examine(&server).await?;
        match told {
            "" => assert_eq!(evidence(&results, code), None, "a limit alone evicts nothing"),
            told => assert!(evidence(&results, code).is_some_and(|evidence| evidence.contains(told)), "{results:?}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_replica_that_follows_is_told() -> Result<(), BoxError> {
    let server = start(&[]).await?;
    let replica = start(&[]).await?;
    let mut follower = client(replica.address().port(), None).await?;
    let port = server.address().port();
    redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port).exec_async(&mut follower).await?;
    let mut admin = client(port, None).await?;
    // Returns as soon as it has caught up.
    let caught_up: u64 = redis::cmd("WAIT").arg(1).arg(15_000).query_async(&mut admin).await?;
    let results = examine(&server).await?;
    assert_eq!((caught_up, evidence(&results, "redis-replication-asynchronous")), (1, Some("replicas attached: 1")));
    Ok(())
}

#[tokio::test]
async fn checks_that_a_user_may_not_make_are_reported() -> Result<(), BoxError> {
    let server = start(&[]).await?;
    let mut admin = client(server.address().port(), None).await?;
    redis::cmd("ACL").arg(&["SETUSER", "default", "-config", "-info"]).exec_async(&mut admin).await?;
    let results = examine(&server).await?;
    assert_eq!(results.len(), 4);
    for checked in results {
        let Judgement::NotChecked { reason } = &checked.judgement else { panic!("{checked:?}") };
        assert!(reason.contains("may not ask"), "{reason}");
    }
    Ok(())
}
