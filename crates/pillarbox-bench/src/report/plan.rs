//! The benches of a report, in their order, each with its command line.

use pillarbox_program::address::Address;

/// The size of the benches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// The sizes for which the targets are stated.
    Full,
    /// Just enough to see every bench run.
    Quick,
}

/// A bench to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// The arguments of `pillarbox bench`.
    pub(crate) arguments: String,
}

/// The drain that the cliffs are measured against: the one mode that has all of them.
pub(crate) const PLAIN: &str = "drain partitioned";

const IDLE_TRANSACTION: &str = "an idle transaction";

/// Every bench once, and the drains in all modes.
pub(crate) fn benches(size: Size) -> Vec<Entry> {
    let (events, seconds) = size.pick(("100000", "20"), ("300", "1"));
    let (rate, rows) = size.pick(("1000", "20000"), ("100", "300"));
    let pace = format!("--rate {rate} --seconds {seconds}");
    let idle = size.pick("idle", "idle --after 0 --seconds 1 --mode single_node");
    named([
        ("write", format!("write --events {events}")),
        ("hot", format!("hot --events {events}")),
        ("drain single_node", format!("drain --events {events}")),
        (PLAIN, format!("drain --mode partitioned --events {events}")),
        ("drain ordered", format!("drain --mode ordered --events {events}")),
        ("drain multi_node, 2 nodes", format!("drain --mode multi_node --nodes 2 --events {events}")),
        ("drain single_node, delete", format!("drain --delete-done --events {events}")),
        ("drain partitioned, delete", format!("drain --mode partitioned --delete-done --events {events}")),
        ("drain beside a naive loop", format!("drain --compare naive --events {events}")),
        ("drain, a row at least once", format!("drain --handler row --events {rows}")),
        ("drain, a row exactly once", format!("drain --handler transaction --events {rows}")),
        ("steady", format!("steady {pace}")),
        ("steady, cold", format!("steady --cold {pace}")),
        ("latency", format!("latency {pace}")),
        ("mixed", format!("mixed --events {events}")),
        ("idle", idle.to_owned()),
        ("memory", format!("memory --events {}", size.pick("1000000", "300"))),
        ("overhead", format!("overhead --events {}", size.pick("1000000", "300"))),
    ])
}

/// Drains, each with one condition that must not slow it down.
pub(crate) fn cliffs(size: Size, database: &Address) -> Vec<Entry> {
    let (events, many, more) = size.pick(("100000", "100000", "1000000"), ("300", "50", "100"));
    let (few, most) = size.pick(("2000", "10000000"), ("20", "200"));
    let drain = |rest: &str| format!("drain --mode partitioned {rest}");
    let with = |rest: &str| drain(&format!("--events {events} {rest}"));
    let mut entries = named([
        ("1 M pending", drain(&format!("--events {more}"))),
        ("10 M DONE", with(&format!("--done {most}"))),
        ("1 M delayed until tomorrow", with(&format!("--delayed {more}"))),
        ("100 k DEAD, 100 k blocked", with(&format!("--dead {many} --blocked {many}"))),
        (IDLE_TRANSACTION, with("--idle-transaction")),
        ("8 writers meanwhile", with("--writers 8")),
        ("payload of 20 B", with("--payload 20")),
        ("payload of 2 KB", with("--payload 2000")),
        ("payload of 200 KB", drain(&format!("--events {few} --payload 200000"))),
        ("1 worker", with("--workers 1")),
        ("4 workers", with("--workers 4")),
        ("16 workers", with("--workers 16")),
        ("256 workers", with("--workers 256")),
        ("20 keys, 32 workers", with("--keys 20 --workers 32")),
        ("300 keys, 256 workers", with("--keys 300 --workers 256")),
        ("batches of 10", with("--batch 10")),
        ("batches of 100", with("--batch 100")),
        ("batches of 1,000", with("--batch 1000")),
        ("batches of 5,000", with("--batch 5000")),
        ("1 node", with("--nodes 1")),
        ("2 nodes", with("--nodes 2")),
        ("4 nodes", with("--nodes 4")),
        ("8 nodes", with("--nodes 8")),
    ]);
    // On SQLite readers keep no row from being removed, and the bench refuses the option.
    entries.retain(|entry| entry.name != IDLE_TRANSACTION || !matches!(database, Address::Sqlite(_)));
    entries
}

fn named<const N: usize>(entries: [(&'static str, String); N]) -> Vec<Entry> {
    entries.map(|(name, arguments)| Entry { name, arguments }).into()
}

impl Entry {
    /// True if the bench accepts `--samples`: the idle one has none.
    pub(crate) fn has_samples(&self) -> bool {
        !self.arguments.starts_with("idle")
    }
}

impl Size {
    fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashSet;

    use clap::Parser as _;

    use super::*;
    use crate::args::BenchArgs;

    /// All entries on a database that has all of them.
    pub(crate) fn all(size: Size) -> Vec<Entry> {
        [benches(size), cliffs(size, &Address::Postgres(String::new()))].concat()
    }

    #[test]
    fn every_entry_has_a_name_of_its_own_and_is_understood() {
        for size in [Size::Full, Size::Quick] {
            let entries = all(size);
            let names: HashSet<_> = entries.iter().map(|entry| entry.name).collect();
            assert_eq!(names.len(), entries.len());
            for Entry { arguments, .. } in entries {
                let store = if arguments.starts_with("overhead") { "" } else { "--store bench.db" };
                let line = format!("pillarbox-bench {arguments} {store} --json");
                let parsed = BenchArgs::try_parse_from(line.split_whitespace());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn cliffs_that_a_database_does_not_have_are_left_out() {
        let names = |database| cliffs(Size::Full, &database).len();
        assert_eq!(names(Address::Mysql(String::new())), names(Address::Sqlite(String::new())) + 1);
    }
}
