use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::{Envelope, InvalidEvent};
use pillarbox_core::row::Change;
use pillarbox_core::store::Blocked;

use crate::Harness;
use crate::events::{HOUR, event, events, keyed, keyed_each, seq_of, settle_all};
use crate::nodes::owner;
use crate::run::{Db, Outcome};

/// Every event that failed and behind which later ones of its key and handler are pending, with how many there are, page
/// by page in the order of the table.
pub(in crate::conformance) async fn blocked_lists_the_heads_that_others_wait_behind<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    assert!(store.blocked(0, 10).await?.is_empty());
    let keys = ["order-1", "order-2", "order-2", "order-1", "Order-1", "order-2", "user-456", "order-1", "order-123"];
    let written = keyed_each(&keys)?;
    let seqs = db.write(written.clone()).await?;
    let keyless = db.write(events(2)?).await?;
    assert!(store.blocked(0, 10).await?.is_empty(), "none has failed");

    // No other waits behind these: the last of their keys, of a key that differs in case, or without a key.
    let retry = |delay, error: Option<&str>| Change::Retry { attempts: 1, delay, error: error.map(str::to_owned) };
    let dead = Change::Dead { attempts: 3, error: "gave up".to_owned() };
    settle_all(&*store, &node, &[seqs[4], seqs[8], keyless[0]], &retry(HOUR, None)).await?;
    settle_all(&*store, &node, &seqs[6..7], &dead).await?;
    assert!(store.blocked(0, 10).await?.is_empty(), "nothing waits behind them");

    settle_all(&*store, &node, &seqs[..1], &retry(HOUR, Some("mail server is down"))).await?;
    settle_all(&*store, &node, &seqs[1..2], &dead).await?;
    settle_all(&*store, &node, &seqs[3..4], &retry(Duration::ZERO, None)).await?;
    let blocked = store.blocked(0, 10).await?;
    let [first, second, third] = &blocked[..] else { return Err(format!("{blocked:?}").into()) };
    assert!(first.due_in.is_some_and(|wait| wait > HOUR / 2 && wait <= HOUR), "{first:?}");
    let head = |index: usize, key: &str, waiting| Blocked {
        seq: seqs[index],
        event_id: written[index].id().as_str().to_owned(),
        event_type: "test.keyed".to_owned(),
        key: key.to_owned(),
        handler: None,
        dead: false,
        attempts: 1,
        due_in: None,
        last_error: None,
        waiting,
    };
    let error = Some("mail server is down".to_owned());
    assert_eq!(*first, Blocked { due_in: first.due_in, last_error: error, ..head(0, "order-1", 2) });
    let gave_up = Some("gave up".to_owned());
    assert_eq!(*second, Blocked { dead: true, attempts: 3, last_error: gave_up, ..head(1, "order-2", 2) });
    assert_eq!(*third, head(3, "order-1", 1), "one that waits itself is a head too");

    // Page by page.
    assert_eq!(store.blocked(seqs[0], 10).await?, blocked[1..]);
    assert_eq!(store.blocked(seqs[1], 1).await?, blocked[2..]);
    assert!(store.blocked(seqs[3], 10).await?.is_empty() && store.blocked(i64::MAX, 1).await?.is_empty());
    assert_eq!(store.blocked(0, 1).await?.len(), 1);

    // What is over waits no more, and what is held in its place is a head like any other.
    settle_all(&*store, &node, &[seqs[2]], &Change::Done).await?;
    settle_all(&*store, &node, &[seqs[5]], &Change::RetryInPlace { attempts: 1, error: "late".to_owned() }).await?;
    let waiting: Vec<_> = store.blocked(0, 10).await?.iter().map(|head| (head.seq, head.waiting)).collect();
    assert_eq!(waiting, [(seqs[0], 2), (seqs[1], 1), (seqs[3], 1)]);
    assert_eq!(store.discard(&seqs[1..2]).await?, seqs[1..2]);
    let mut late = db.write(vec![keyed("order-2")?]).await?;
    let waiting: Vec<_> = store.blocked(seqs[0], 10).await?.iter().map(|head| (head.seq, head.waiting)).collect();
    assert_eq!(waiting, [(seqs[3], 1), (seqs[5], 1)]);

    // Handlers keep their orders apart, and an aggregate id is a key where there is no other.
    let mail = [event_of_user()?, event_of_user()?, event()?];
    late.extend(db.write(mail.to_vec()).await?);
    db.set_handler(mail[1].id().as_str(), "mail").await?;
    db.insert_of_aggregate("foreign", "user-456").await?;
    let foreign = seq_of(db, "foreign").await?;
    let waiting: Vec<_> = store.blocked(seqs[5], 10).await?.iter().map(|head| (head.seq, head.waiting)).collect();
    assert_eq!(waiting, [(seqs[6], 2)], "the DEAD one blocks them, but not the one for mail");
    settle_all(&*store, &node, &[late[2]], &retry(HOUR, None)).await?;
    settle_all(&*store, &node, &[late[1]], &retry(HOUR, None)).await?;
    let waiting: Vec<_> = store.blocked(seqs[6], 10).await?.iter().map(|head| (head.seq, head.waiting)).collect();
    assert_eq!(waiting, [(late[1], 1)], "nothing else is there for mail");
    let more = event_of_user()?;
    db.write(vec![more.clone()]).await?;
    db.set_handler(more.id().as_str(), "mail").await?;
    let blocked = store.blocked(late[1], 10).await?;
    let [head] = &blocked[..] else { return Err(format!("{blocked:?}").into()) };
    assert_eq!(
        (head.seq, head.key.as_str(), head.handler.as_deref(), head.waiting),
        (late[2], "user-456", Some("mail"), 1)
    );

    settle_all(&*store, &node, &[foreign], &retry(HOUR, None)).await?;
    let many = std::iter::repeat_with(|| keyed("user-456")).take(1_100).collect::<Result<_, _>>()?;
    db.write(many).await?;
    let blocked = store.blocked(late[2], 10).await?;
    let [head] = &blocked[..] else { return Err(format!("{blocked:?}").into()) };
    assert_eq!((head.seq, head.key.as_str(), head.waiting), (foreign, "user-456", 1_000), "counted no further");
    Ok(())
}

/// The first that failed before it, of its own key and handler, and nothing for rows that are over.
pub(in crate::conformance) async fn head_of_tells_what_an_event_waits_behind<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let node = owner(&*store).await?;
    let seqs = db.write(keyed_each(&["order-1", "order-1", "Order-1", "order-1", "order-1"])?).await?;
    let heads = async || -> Result<Vec<Option<i64>>, BoxError> {
        let mut heads = Vec::new();
        for seq in &seqs {
            heads.push(store.head_of(*seq).await?);
        }
        Ok(heads)
    };
    assert_eq!(heads().await?, [None; 5], "none has failed");
    let retry = Change::Retry { attempts: 1, delay: HOUR, error: None };
    settle_all(&*store, &node, &seqs[3..4], &retry).await?;
    assert_eq!(heads().await?, [None, None, None, None, Some(seqs[3])], "it waits behind none itself");
    settle_all(&*store, &node, &seqs[1..2], &Change::Dead { attempts: 3, error: "gave up".to_owned() }).await?;
    let (first, head) = (seqs[0], Some(seqs[1]));
    assert_eq!(
        heads().await?,
        [None, None, None, head, head],
        "the first of them stops the others, and a key its own events"
    );
    settle_all(&*store, &node, &[first, seqs[4]], &Change::Done).await?;
    assert_eq!(heads().await?, [None, None, None, head, None], "what is over waits for nothing");
    assert_eq!(store.head_of(seqs[4] + 100).await?, None, "no such row");

    // Handlers keep their orders apart, an aggregate id is a key where there is no other, and without any nothing waits.
    let users = [event_of_user()?, event_of_user()?, event_of_user()?];
    let mail = db.write(users.to_vec()).await?;
    for event in &users[1..] {
        db.set_handler(event.id().as_str(), "mail").await?;
    }
    settle_all(&*store, &node, &mail[..1], &retry).await?;
    assert_eq!(store.head_of(mail[2]).await?, None, "the one that failed is for another handler");
    settle_all(&*store, &node, &mail[1..2], &retry).await?;
    assert_eq!(store.head_of(mail[2]).await?, Some(mail[1]));
    let keyless = db.write(events(2)?).await?;
    settle_all(&*store, &node, &keyless[..1], &retry).await?;
    assert_eq!(store.head_of(keyless[1]).await?, None);
    Ok(())
}

fn event_of_user() -> Result<Envelope, InvalidEvent> {
    Envelope::builder("test.event").aggregate("user", "user-456").payload_json("{}").build()
}
