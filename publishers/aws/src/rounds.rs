//! Divides the messages to one target into batches.

use std::collections::HashMap;

use crate::entry::Entry;

/// Messages of a batch.
const MOST: usize = 10;

/// Batches, in rounds. All batches of a round may be under way at once; a round waits for the one before. Only FIFO has more than
/// one round: no two messages of a group are in the same, since a service may take the second and refuse the first. A batch has
/// `largest` bytes at most, but for a single larger message.
pub(crate) fn of(entries: Vec<Entry>, largest: usize) -> Vec<Vec<Vec<Entry>>> {
    let mut rounds: Vec<Vec<Vec<Entry>>> = Vec::new();
    let mut next_of: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        let round = match &entry.fifo {
            Some(fifo) => {
                let next = next_of.entry(fifo.group.clone()).or_default();
                *next += 1;
                *next - 1
            }
            None => 0,
        };
        // Rounds are begun one after the other: the message ahead in the group has begun the one before.
        if rounds.len() <= round {
            rounds.push(Vec::new());
        }
        if let Some(batches) = rounds.get_mut(round) {
            add(batches, entry, largest);
        }
    }
    rounds
}

fn add(batches: &mut Vec<Vec<Entry>>, entry: Entry, largest: usize) {
    match batches.last_mut() {
        Some(last) if last.len() < MOST && last.iter().map(|one| one.bytes).sum::<usize>() + entry.bytes <= largest => {
            last.push(entry);
        }
        _ => batches.push(vec![entry]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Fifo;

    fn entry(index: usize, bytes: usize, group: Option<&str>) -> Entry {
        let fifo = group.map(|group| Fifo { group: group.to_owned(), id: index.to_string() });
        Entry { index, body: String::new(), attributes: Vec::new(), fifo, bytes }
    }

    const LARGEST: usize = 262_144;

    fn shape(entries: Vec<Entry>) -> Vec<Vec<Vec<usize>>> {
        let numbers = |batch: Vec<Entry>| batch.into_iter().map(|entry| entry.index).collect();
        of(entries, LARGEST).into_iter().map(|round| round.into_iter().map(numbers).collect()).collect()
    }

    #[test]
    fn batches_are_of_ten_and_of_a_quarter_megabyte() {
        assert!(shape(Vec::new()).is_empty());
        let many = shape((0..25).map(|index| entry(index, 1, None)).collect());
        assert_eq!(many[0].iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5]);
        let large = [100_000, 100_000, 62_144, 1, LARGEST, 1];
        let large = large.into_iter().enumerate().map(|(index, bytes)| entry(index, bytes, None));
        assert_eq!(shape(large.collect()), [[vec![0, 1, 2], vec![3], vec![4], vec![5]]]);
    }

    #[test]
    fn a_group_has_one_message_in_a_round() {
        let groups = ["a", "a", "b", "a", "c", "b"];
        let entries = groups.into_iter().enumerate().map(|(index, group)| entry(index, 1, Some(group)));
        assert_eq!(shape(entries.collect()), [[vec![0, 2, 4]], [vec![1, 5]], [vec![3]]]);
    }
}
