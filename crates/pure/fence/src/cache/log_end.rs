//! How far the log of a partition goes.

use super::metadata::{Identity, LogHeader};

/// How far the log goes.
pub(super) struct End {
    /// The log block behind the last whole commit.
    pub(super) head: u32,
    /// Number of that commit, and the highest number seen: also of a commit that did not come to its end. A second one with
    /// its number could complete it, and what was answered for the second would pass for stable.
    pub(super) stable: u64,
    pub(super) newest: u64,
    /// Of each log block what it says of itself, if it is whole, and whether it is part of a whole commit.
    pub(super) headers: Vec<Option<LogHeader>>,
    pub(super) whole: Vec<bool>,
}

impl End {
    pub(super) fn find(identity: Identity, bytes: &[u8]) -> Self {
        let mut highest = 0;
        let header = |block| {
            // Most of a young log is empty: what has no header is not read further.
            let begun = LogHeader::peek(identity, block)?;
            highest = highest.max(begun.commit);
            LogHeader::is_whole(block).then_some(begun)
        };
        let headers: Vec<Option<LogHeader>> = bytes.chunks_exact(4096).map(header).collect();
        let newest = headers.iter().flatten().max_by_key(|header| header.commit);
        let stable = newest.map_or(0, |newest| {
            let valid = headers.iter().flatten().filter(|header| header.commit == newest.commit).count();
            if valid == newest.count as usize { newest.commit } else { newest.after }
        });
        let void = cut_off(headers.iter().flatten());
        let is_whole = |header: &LogHeader| {
            let before = void.partition_point(|&(after, _)| after < header.commit);
            let is_void = before.checked_sub(1).is_some_and(|at| header.commit < void[at].1);
            header.commit <= stable && !is_void
        };
        let last = headers.iter().zip(0..).filter_map(|(header, at)| {
            header.filter(|header| header.commit == stable).map(|header| (header.index, at))
        });
        let ring = u32::try_from(headers.len().max(1)).unwrap_or(u32::MAX);
        let head = last.max().map_or(0, |(_, at): (u32, u32)| (at + 1) % ring);
        let whole = headers.iter().map(|header| header.as_ref().is_some_and(is_whole)).collect();
        Self { head, stable, newest: highest, headers, whole }
    }
}

/// The commits that a crash cut off, as the first commit after each tells: those between the two numbers of a pair.
fn cut_off<'a>(headers: impl Iterator<Item = &'a LogHeader>) -> Vec<(u64, u64)> {
    let mut pairs: Vec<(u64, u64)> = headers.map(|header| (header.after, header.commit)).collect();
    pairs.sort_unstable();
    let mut disjoint: Vec<(u64, u64)> = Vec::new();
    for (after, next) in pairs.into_iter().filter(|(after, next)| after + 1 < *next) {
        match disjoint.last_mut() {
            Some(last) if after < last.1 => last.1 = last.1.max(next),
            _ => disjoint.push((after, next)),
        }
    }
    disjoint
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log block of one entry, which is no more than bytes here.
    fn block(identity: Identity, header: LogHeader, entry: u8) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[32..64].fill(entry);
        header.seal(identity, &mut bytes);
        bytes
    }

    #[test]
    fn the_number_of_a_commit_that_was_cut_off_is_used_up() {
        let identity = Identity::new(&[3; 16]);
        let whole = block(identity, LogHeader { commit: 5, after: 4, index: 0, count: 1 }, 1);
        let mut cut_off = block(identity, LogHeader { commit: 6, after: 5, index: 0, count: 1 }, 2);
        cut_off[40] ^= 1;
        let end = End::find(identity, &[whole, cut_off].concat());
        assert_eq!((end.stable, end.newest, end.head), (5, 6, 1));
    }
}
