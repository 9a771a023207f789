/// The number of partitions that keys are grouped into. Fixed: changing it would move keys between owners.
pub const PARTITIONS: u16 = 256;

/// The partition of a key: `murmur3_x86_32(utf8(key), seed 0) & 0x7fffffff % 256`, as the predecessors compute it.
///
/// ```
/// assert_eq!(pillarbox_core::event::partition_of("order-123"), 189);
/// ```
#[must_use]
pub fn partition_of(key: &str) -> u8 {
    // The mask and the modulus together keep the lowest byte.
    murmur3_x86_32(key.as_bytes()).to_le_bytes()[0]
}

/// MurmurHash3, 32-bit x86 variant, seed 0. Source: Austin Appleby's public-domain reference description (SMHasher).
fn murmur3_x86_32(bytes: &[u8]) -> u32 {
    let scramble = |block: u32| block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = blocks.iter().fold(0_u32, |hash, block| {
        (hash ^ scramble(u32::from_le_bytes(*block))).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
    });
    if !tail.is_empty() {
        let mut block = [0; 4];
        block[..tail.len()].copy_from_slice(tail);
        hash ^= scramble(u32::from_le_bytes(block));
    }
    #[expect(clippy::cast_possible_truncation, reason = "the algorithm mixes in the length modulo 2^32")]
    let length = bytes.len() as u32;
    hash ^= length;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::partition_of;

    #[test]
    fn partitions_match_the_predecessors() {
        let vectors = [
            ("", 0),
            ("order-1", 33),
            ("order-2", 159),
            ("order-123", 189),
            ("user-456", 22),
            ("payment:0", 123),
            ("550e8400-e29b-41d4-a716-446655440000", 220),
        ];
        for (key, partition) in vectors {
            assert_eq!(partition_of(key), partition, "{key:?}");
        }
    }
}
