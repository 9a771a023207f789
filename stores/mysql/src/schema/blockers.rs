use crate::answer::int;
use crate::session::Session;

const OPEN_TRANSACTIONS: &str = include_str!("../../sql/open_transactions.sql");

/// The oldest transactions of the server, one of which keeps the table, in words; nothing where the user may not see them.
pub(super) async fn open_transactions(session: &mut Session) -> String {
    let Ok(answers) = session.run(OPEN_TRANSACTIONS).await else { return String::new() };
    let open = answers.rows(0).iter().filter_map(|row| {
        let (connection, age) = (int(row, 0).ok()?, int(row, 1).ok()?);
        Some(format!("connection {connection} for {age} s"))
    });
    let open: Vec<String> = open.collect();
    if open.is_empty() { String::new() } else { format!("; transactions open now: {}", open.join(", ")) }
}
