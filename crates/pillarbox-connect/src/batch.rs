/// Cuts what is sent at once into batches of at most `most` items and `most_bytes` bytes; an item that is larger goes alone.
pub fn batches<T>(
    mut items: &[T],
    most: usize,
    most_bytes: usize,
    bytes: impl Fn(&T) -> usize,
) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let mut sum = 0_usize;
        let fits = items.iter().take(most).take_while(|item| {
            let first = sum == 0;
            sum = sum.saturating_add(bytes(item).max(1));
            first || sum <= most_bytes
        });
        let (batch, rest) = items.split_at(fits.count());
        items = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::batches;

    #[test]
    fn batches_are_bounded_and_hold_each_item_once() {
        let expected: [(&[usize], &[&[usize]]); 6] = [
            (&[], &[]),
            (&[0; 7], &[&[0; 3], &[0; 3], &[0]]),
            (&[20, 1], &[&[20], &[1]]),
            (&[1, 10, 1], &[&[1], &[10], &[1]]),
            (&[5, 5, 1], &[&[5, 5], &[1]]),
            (&[usize::MAX, usize::MAX], &[&[usize::MAX], &[usize::MAX]]),
        ];
        for (sizes, cut) in expected {
            assert_eq!(batches(sizes, 3, 10, |size| *size).collect::<Vec<_>>(), cut);
        }
    }
}
