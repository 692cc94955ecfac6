//! A single bit of the log that has flipped is flipped back: every entry has a sum of its own, the block one of another
//! polynomial, and both must be right afterwards, so that nothing but what was written can come out.

use super::metadata::{ENTRY_BYTES, Entry, Identity, LogHeader};

const LOG_BLOCK_BYTES: usize = 4096;

/// Blocks without a header that are tried at most. A log of an earlier cache has many, and a flip spoils one.
const MOST_WITHOUT_HEADER: usize = 8;

/// Blocks of a log as they were before a bit of each flipped, by their place.
pub(super) fn repaired(
    identity: Identity,
    log: &[u8],
    headers: &[Option<LogHeader>],
) -> Vec<(usize, Vec<u8>)> {
    let is_spoilt = |(place, header): (usize, &Option<LogHeader>)| {
        let block = log.get(place * LOG_BLOCK_BYTES..(place + 1) * LOG_BLOCK_BYTES)?;
        (header.is_none() && block.iter().any(|byte| *byte != 0)).then_some((place, block))
    };
    let mut without_header = 0;
    let mut repair = |(place, block): (usize, &[u8])| {
        if LogHeader::peek(identity, block).is_some() {
            return entry_repaired(identity, block).map(|block| (place, block));
        }
        without_header += 1;
        let may_try = without_header <= MOST_WITHOUT_HEADER;
        may_try.then(|| header_repaired(identity, block)).flatten().map(|block| (place, block))
    };
    headers.iter().enumerate().filter_map(is_spoilt).filter_map(&mut repair).collect()
}

fn header_repaired(identity: Identity, block: &[u8]) -> Option<Vec<u8>> {
    let mut block = block.to_vec();
    flipped_until(&mut block, 0, |block| {
        LogHeader::peek(identity, block).is_some() && LogHeader::is_whole(block)
    })
    .then_some(block)
}

/// With one entry that is none, and the header right.
fn entry_repaired(identity: Identity, block: &[u8]) -> Option<Vec<u8>> {
    let entries = block.as_chunks::<ENTRY_BYTES>().0;
    let is_foreign = |entry: &[u8; ENTRY_BYTES]| {
        entry.iter().any(|byte| *byte != 0) && Entry::decode(identity, entry).is_none()
    };
    let mut foreign = (1..entries.len()).filter(|&place| is_foreign(&entries[place]));
    let (Some(place), None) = (foreign.next(), foreign.next()) else { return None };
    let mut block = block.to_vec();
    flipped_until(&mut block, place * ENTRY_BYTES, |block| {
        !is_foreign(&block.as_chunks::<ENTRY_BYTES>().0[place]) && LogHeader::is_whole(block)
    })
    .then_some(block)
}

/// Flips one bit after the other of the entry at `from`, until `is_right`.
fn flipped_until(block: &mut [u8], from: usize, is_right: impl Fn(&[u8]) -> bool) -> bool {
    for bit in 0..ENTRY_BYTES * 8 {
        let (at, mask) = (from + bit / 8, 1 << (bit % 8));
        block[at] ^= mask;
        if is_right(block) {
            return true;
        }
        block[at] ^= mask;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::metadata::Kind;

    fn block(identity: Identity) -> Vec<u8> {
        let mut bytes = vec![0; LOG_BLOCK_BYTES];
        for (place, entry) in bytes.as_chunks_mut::<ENTRY_BYTES>().0.iter_mut().enumerate().skip(1).take(9) {
            let (generation, block) = (place as u64 + 5, 3);
            Entry { generation, key: 7, block, data_crc: 9, kind: Kind::Dirty }.encode(identity, entry);
        }
        LogHeader { commit: 5, after: 4, index: 0, count: 1 }.seal(identity, &mut bytes);
        bytes
    }

    #[test]
    fn any_one_bit_is_flipped_back_and_two_are_not() {
        let identity = Identity::new(&[3; 16]);
        let whole = block(identity);
        let header = |block: &[u8]| {
            let whole = LogHeader::peek(identity, block).filter(|_| LogHeader::is_whole(block));
            vec![whole]
        };
        for bit in 0..LOG_BLOCK_BYTES * 8 {
            let mut spoilt = whole.clone();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            let back = repaired(identity, &spoilt, &header(&spoilt));
            assert_eq!(back, [(0, whole.clone())], "bit {bit}");
            let other = (bit * 7919 + 13) % (LOG_BLOCK_BYTES * 8);
            if other == bit {
                continue;
            }
            spoilt[other / 8] ^= 1 << (other % 8);
            let back = repaired(identity, &spoilt, &header(&spoilt));
            assert!(back.iter().all(|(_, block)| *block == whole), "bits {bit} and {other}");
        }
        assert_eq!(repaired(identity, &whole, &header(&whole)), []);
    }
}
