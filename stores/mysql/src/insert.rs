use std::sync::Arc;

use pillarbox_connect::batches;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::write::{Bind, NewRow, Statement};

use crate::literal::{Literal, fill};
use crate::sql::{RETURNING, Sql};

/// Rows of one statement at most: far below the 65,535 placeholders that the protocol allows.
const MAX_ROWS: usize = 1000;
/// Bytes of one statement, roughly, and but for a single row: a server takes 16 MiB by default, seldom less.
const MAX_BYTES: usize = 4 << 20;
/// The bytes of a row's other columns, roughly.
const OTHERS: usize = 1024;

/// One statement for as many rows as fit; on MySQL, which returns nothing from an insert, a second one reads their `seq`s.
/// A single row needs none: its `seq` is in the answer.
pub(crate) fn statements<'a>(sql: &Sql, mariadb: bool, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
    match rows {
        [] => Vec::new(),
        [row] => {
            let text = if mariadb { &sql.insert_one_returning } else { &sql.insert_one };
            vec![Statement { sql: Arc::clone(text), binds: Bind::of(row, micros).into(), reusable: true }]
        }
        rows => batches(rows, MAX_ROWS, MAX_BYTES, |row| OTHERS + row.envelope().content_bytes())
            .flat_map(|rows| many(sql, mariadb, rows))
            .collect(),
    }
}

fn many<'a>(sql: &Sql, mariadb: bool, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
    let values = vec![sql.insert_values.as_str(); rows.len()].join(",\n");
    let insert = format!("{}\n{values}{}", sql.insert, if mariadb { RETURNING } else { "" });
    let mut statements = vec![Statement {
        sql: insert.into(),
        binds: rows.iter().flat_map(|row| Bind::of(row, micros)).collect(),
        reusable: false,
    }];
    if !mariadb {
        let placeholders = Literal::clause(vec!["(?, ?)"; rows.len()].join(", "));
        let id =
            |row: &'a NewRow| [row.event_id(), row.handler().unwrap_or_default()].map(|text| Bind::Text(Some(text)));
        let binds = rows.iter().flat_map(id).collect();
        let inserted = fill(&sql.inserted, &[("ids", &placeholders)]);
        statements.push(Statement { sql: inserted.into(), binds, reusable: false });
    }
    statements
}

/// The statement that looks for the row which has the unique key, before it could be locked.
pub(crate) fn find_unique<'a>(sql: &Sql, row: &'a NewRow) -> Statement<'a> {
    let binds = vec![Bind::Text(row.unique_key()), Bind::Text(Some(row.handler().unwrap_or_default()))];
    Statement { sql: Arc::clone(&sql.find_unique), binds, reusable: true }
}

/// The statements that insert the row unless one has its unique key, once the row that `ended` has given it up.
pub(crate) fn unique<'a>(sql: &Sql, row: &'a NewRow, ended: Option<i64>) -> Vec<Statement<'a>> {
    let statement = |sql: &Arc<str>, binds| Statement { sql: Arc::clone(sql), binds, reusable: true };
    let free = ended.map(|seq| statement(&sql.free_unique, vec![Bind::Int(Some(seq)), Bind::Text(row.unique_key())]));
    let insert = statement(&sql.insert_unique, Bind::of_unique(row, micros));
    free.into_iter().chain([insert, statement(&sql.inserted_unique, Vec::new())]).collect()
}

/// A time within the years 1 to 9999, which is as far as the database's times go; beyond, it would become NULL, and a row
/// for the far future be due at once.
fn micros(time: Timestamp) -> i64 {
    time.as_micros().clamp(-62_135_596_800_000_000, 253_402_300_799_999_999)
}

#[cfg(test)]
mod tests {
    use pillarbox_core::event::Envelope;
    use pillarbox_core::store::{Fetch, FetchedRow, Store as _};
    use pillarbox_core::write::{Begin as _, insert};
    use pillarbox_mysql_async as _;

    use super::*;
    use crate::plans::{url, with_tables};

    #[test]
    fn times_stay_within_the_range_of_the_database() {
        let clamped = |time: i64| micros(Timestamp::from_micros(time));
        assert_eq!(clamped(i64::MAX), 253_402_300_799_999_999);
        assert_eq!(clamped(i64::MIN), -62_135_596_800_000_000);
        assert_eq!(clamped(-1), -1);
    }

    /// MariaDB understands the form for MySQL, too, so that it can be tested on it; with numbers that leave gaps, as
    /// servers in a cluster give them.
    #[tokio::test]
    async fn seqs_are_known_without_returning() {
        with_tables(async |store, _, _| {
            let store = store.without_returning();
            let setup = "SET SESSION auto_increment_increment = 3, auto_increment_offset = 2";
            let options = mysql_async::OptsBuilder::from_opts(mysql_async::Opts::from_url(&url()).expect("a URL"));
            let pool = mysql_async::Pool::new(options.setup(vec![setup]));
            let mut written = Vec::new();
            for count in [1, 3, 2100] {
                let events: Vec<Envelope> =
                    (0..count).map(|_| Envelope::json("order.placed", "{}").expect("valid")).collect();
                let ids: Vec<String> = events.iter().map(|event| event.id().to_string()).collect();
                let mut transaction = (&pool).begin().await.expect("begins");
                let seqs = insert(&store, &mut transaction, events).await.expect("inserts");
                transaction.commit().await.expect("commits");
                assert_eq!(seqs.len(), count);
                written.extend(seqs.into_iter().zip(ids));
            }
            let fetched = store.fetch(&Fetch::new(5000)).await.expect("fetches");
            let row = |row: FetchedRow| match row {
                FetchedRow::Row(row) => (row.seq, row.event.id().to_string()),
                FetchedRow::Broken(row) => panic!("{row:?}"),
            };
            assert_eq!(fetched.rows.into_iter().map(row).collect::<Vec<_>>(), written);
        })
        .await;
    }
}
