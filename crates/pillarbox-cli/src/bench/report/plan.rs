//! What is run, in which order, and with what beside it in the table.

/// How much of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// As the targets are stated.
    Full,
    /// Just enough to see every bench run.
    Quick,
}

/// A bench to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// What stands after `pillarbox bench`.
    pub(crate) arguments: String,
}

/// The drain that the cliffs are measured against: the one mode that has all of them.
pub(crate) const PLAIN: &str = "drain partitioned";

/// Every bench once, and the drains in all modes.
pub(crate) fn benches(size: Size) -> Vec<Entry> {
    let events = size.pick("100000", "300");
    let entries = [
        ("write", format!("write --events {events}")),
        ("hot", format!("hot --events {events}")),
        ("drain single_node", format!("drain --events {events}")),
        (PLAIN, format!("drain --mode partitioned --events {events}")),
        ("drain ordered", format!("drain --mode ordered --events {events}")),
        ("drain multi_node, 2 nodes", format!("drain --mode multi_node --nodes 2 --events {events}")),
        ("drain single_node, delete", format!("drain --delete-done --events {events}")),
        ("drain partitioned, delete", format!("drain --mode partitioned --delete-done --events {events}")),
    ];
    entries.map(|(name, arguments)| Entry { name, arguments }).into()
}

/// Drains that would be slow if something grew with what must not matter.
pub(crate) fn cliffs(size: Size) -> Vec<Entry> {
    let (events, more) = size.pick(("100000", "1000000"), ("300", "100"));
    let most = size.pick("10000000", "200");
    let drain = |rest: String| format!("drain --mode partitioned {rest}");
    let with = |rest: &str| drain(format!("--events {events} {rest}"));
    let few = size.pick("2000", "20");
    let entries = [
        ("1 M pending", drain(format!("--events {more}"))),
        ("10 M DONE", with(&format!("--done {most}"))),
        ("1 M delayed until tomorrow", with(&format!("--delayed {more}"))),
        ("payload of 20 B", with("--payload 20")),
        ("payload of 2 KB", with("--payload 2000")),
        ("payload of 200 KB", drain(format!("--events {few} --payload 200000"))),
        ("1 node", with("--nodes 1")),
        ("2 nodes", with("--nodes 2")),
        ("4 nodes", with("--nodes 4")),
        ("8 nodes", with("--nodes 8")),
    ];
    entries.map(|(name, arguments)| Entry { name, arguments }).into()
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
mod tests {
    use std::collections::HashSet;

    use clap::Parser as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_entry_has_a_name_of_its_own_and_is_understood() {
        for size in [Size::Full, Size::Quick] {
            let entries = [benches(size), cliffs(size)].concat();
            let names: HashSet<_> = entries.iter().map(|entry| entry.name).collect();
            assert_eq!(names.len(), entries.len());
            for entry in entries {
                let line = format!("pillarbox bench {} --store bench.db --json --samples", entry.arguments);
                let parsed = Cli::try_parse_from(line.split_whitespace());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
