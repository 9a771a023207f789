use std::time::Duration;

use pillarbox_core::publisher::{PublishError, PublishErrorKind};
use tokio::time::Instant;

use super::messages::{LONG, assert_unavailable, confirmed, message};
use super::{Link, PublisherHarness};
use crate::run::Outcome;

/// The targets that are there are accepted, none as well as two, before anything was published and after; and nothing is
/// published by it.
pub(super) async fn check_accepts_what_is_there<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let targets = [broker.target(&link).await?, broker.target(&link).await?];
    publisher.check(&[]).await?;
    publisher.check(&targets).await?;
    confirmed(&*publisher, vec![message(&targets[0])]).await?;
    publisher.check(&targets).await?;
    assert_eq!(broker.arrived(&targets[0], 1).await?.len(), 1);
    assert_eq!(broker.arrived(&targets[1], 0).await?.len(), 0, "checking publishes nothing");
    Ok(())
}

/// One that is missing is named, and still is when asked again: nothing was created.
pub(super) async fn check_names_a_missing_target<H: PublisherHarness>(broker: &H) -> Outcome {
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, LONG)?;
    let (there, missing) = (broker.target(&link).await?, broker.missing_target(&link));
    for _ in 0..2 {
        let error = expect_error(publisher.check(&[there.clone(), missing.clone()]).await)?;
        assert_eq!(error.kind(), PublishErrorKind::Misconfigured, "{error}");
        assert!(error.to_string().contains(&missing), "the target is not named: {error}");
    }
    publisher.check(&[there]).await?;
    Ok(())
}

/// Refused credentials are a matter of configuration, for a check as for a message, and stay secret.
pub(super) async fn check_refuses_wrong_credentials_and_shows_none<H: PublisherHarness>(broker: &H) -> Outcome {
    const SECRET: &str = "n0t-the-passw0rd";
    let link = broker.link().await?;
    let publisher = broker.intruder(&link, LONG, SECRET)?;
    let target = broker.target(&link).await?;
    let error = expect_error(publisher.check(std::slice::from_ref(&target)).await)?;
    let receipts = publisher.publish(vec![message(&target)]).await;
    for receipt in [&Err(error)].into_iter().chain(&receipts) {
        assert!(
            matches!(receipt, Err(error) if error.kind() == PublishErrorKind::Misconfigured),
            "expected misconfigured, not {receipt:?}"
        );
    }
    let shown = format!("{receipts:?} {publisher:?} {:?}", publisher.info());
    assert!(!shown.contains(SECRET), "the secret is shown: {shown}");
    Ok(())
}

/// Nobody listens, and then somebody who says nothing.
pub(super) async fn check_says_unavailable_when_nobody_answers<H: PublisherHarness>(broker: &H) -> Outcome {
    let limit = Duration::from_secs(2);
    let link = broker.link().await?;
    let publisher = broker.publisher(&link, limit)?;
    let target = [broker.target(&link).await?];
    link.refuse().await;
    let began = Instant::now();
    assert_unavailable([&publisher.check(&target).await]);
    link.stall();
    assert_unavailable([&publisher.check(&target).await]);
    assert!(began.elapsed() < limit * 4, "it took {:?}", began.elapsed());
    Ok(())
}

fn expect_error(outcome: Result<(), PublishError>) -> Result<PublishError, &'static str> {
    outcome.err().ok_or("the check has succeeded")
}
