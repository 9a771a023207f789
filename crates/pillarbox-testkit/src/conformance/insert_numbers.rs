use crate::Harness;
use crate::events::{all, events, seqs_of};
use crate::run::{Db, Outcome};

/// A `seq` that a program made up is refused, or later rows stand above it: what was read up to the highest stays read.
pub(super) async fn insert_gives_numbers_above_those_that_a_program_made_up<H: Harness>(db: &Db<H>) -> Outcome {
    let store = db.store();
    let mut seqs = db.write(events(2)?).await?;
    let (table, huge) = (db.table("event"), 1_000_000_000_000_i64);
    let insert = format!(
        "INSERT INTO {table} (seq, event_id, event_type, payload) VALUES ({huge}, 'made up', 'test.event', '{{}}')"
    );
    match db.execute(&insert).await {
        Ok(()) => seqs.push(huge),
        Err(error) => assert!(error.to_string().contains("seq"), "it says which column: {error}"),
    }
    seqs.extend(db.write(events(3)?).await?);
    assert!(seqs.is_sorted(), "{seqs:?}");
    assert_eq!(seqs_of(&store.fetch(&all()).await?), seqs);
    assert_eq!(store.writers().await?.highest, seqs[seqs.len() - 1]);
    Ok(())
}
