use super::*;

/// A log block of 127 entries, one for each data block.
fn log_block(commit: u64, kind: Kind) -> Vec<u8> {
    let identity = Identity::new(&[7; 16]);
    let mut bytes = vec![0; ENTRY_BYTES];
    for block in 0..127 {
        let generation = commit * 200 + u64::from(block);
        let mut entry = [0; ENTRY_BYTES];
        Entry { generation, key: u64::from(block), block, data_crc: 5 * block, kind }
            .encode(identity, &mut entry);
        bytes.extend_from_slice(&entry);
    }
    LogHeader { commit, after: commit - 1, index: 0, count: 1 }.seal(identity, &mut bytes);
    bytes
}

fn open(identity: Identity, block: &[u8]) -> Option<LogHeader> {
    LogHeader::peek(identity, block).filter(|_| LogHeader::is_whole(block))
}

#[test]
fn a_log_block_with_a_sector_of_an_older_commit_is_not_whole() {
    let identity = Identity::new(&[7; 16]);
    let (older, newer) = (log_block(10, Kind::Clean), log_block(12, Kind::Tombstone));
    assert_eq!(open(identity, &newer).map(|header| header.commit), Some(12));
    for sector in 0..8 {
        let mut torn = newer.clone();
        torn[512 * sector..512 * (sector + 1)].copy_from_slice(&older[512 * sector..512 * (sector + 1)]);
        assert_eq!(open(identity, &torn), None, "sector {sector}");
    }
}

#[test]
fn a_log_block_of_an_earlier_version_is_whole() {
    let identity = Identity::new(&[7; 16]);
    let mut block = log_block(12, Kind::Clean);
    let sum = crc32c::crc32c(&block[ENTRY_BYTES..]);
    block[16..20].copy_from_slice(&sum.to_le_bytes());
    let crc = identity.sum(&block[..28]);
    block[28..32].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(open(identity, &block).map(|header| header.commit), Some(12));
}
