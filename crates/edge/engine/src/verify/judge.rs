//! Is a block what it should be, and if not, in what way?

use virtbench_record::{Damage, DamagedBlock, Verification};

use super::header::{SECTOR, Sector, inspect};
use super::ledger::{Claim, Ledger};

/// When a block was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// While the load was running: an old version is stale.
    During,
    /// After it: an old version is what is left, the newer one is lost.
    After,
    /// In another process, perhaps after the target was killed: what was flushed must be there, what
    /// was sent after that may be, whole or in part.
    Later,
}

/// Judges every block of `data`, which was read at `offset`, against the ledger.
pub(super) fn judge(data: &[u8], offset: u64, ledger: &Ledger, moment: Moment, found: &mut Verification) {
    each_block(data, offset, ledger.block_bytes(), |block, offset| {
        if moment == Moment::Later {
            return judge_later(block, offset, ledger, found);
        }
        let Some(expected) = ledger.expected(offset, moment == Moment::During) else {
            found.blocks_unknown += 1;
            return;
        };
        let sectors = sectors(block, ledger.seed(), offset);
        let verdict = if expected == 0 { stray(&sectors) } else { compare(&sectors, expected, moment) };
        note(verdict, expected > 0, offset, found);
    });
}

fn judge_later(block: &[u8], offset: u64, ledger: &Ledger, found: &mut Verification) {
    let Some(claim) = ledger.claim_after(offset) else {
        found.blocks_unknown += 1;
        return;
    };
    let sectors = sectors(block, ledger.seed(), offset);
    let verdict = match claim {
        Claim { stable: 0, .. } => stray(&sectors),
        Claim { stable, newest } if stable == newest => compare(&sectors, stable, Moment::After),
        claim => compare_range(&sectors, claim),
    };
    note(verdict, claim.stable > 0, offset, found);
}

/// A block of which a version was flushed and newer ones were sent: each sector may be of any of them.
fn compare_range(sectors: &[Sector], Claim { stable, newest }: Claim) -> Option<(Damage, String)> {
    let version = |sector: &Sector| match sector {
        Sector::Ours { version } => Some(*version),
        _ => None,
    };
    let Some(versions) = sectors.iter().map(version).collect::<Option<Vec<u32>>>() else {
        // One that is missing altogether, misplaced, corrupt or foreign is so whatever is expected.
        return compare(sectors, stable, Moment::After);
    };
    let wrong: Vec<u32> = versions.iter().copied().filter(|v| !(stable..=newest).contains(v)).collect();
    let first = wrong.first()?;
    let words = format!("version {stable} was flushed and {newest} sent, the block holds version {first}");
    Some((if wrong.len() == versions.len() { Damage::Lost } else { Damage::Torn }, words))
}

/// Judges every block of `data` by itself, as where nobody knows which version it should be.
pub(super) fn judge_alone(data: &[u8], offset: u64, seed: u64, block_bytes: u64, found: &mut Verification) {
    each_block(data, offset, block_bytes, |block, offset| {
        let sectors = sectors(block, seed, offset);
        let unmarked = sectors.iter().all(|sector| *sector == Sector::Unmarked);
        let verdict = if unmarked { None } else { consistent(&sectors).err() };
        note(verdict, !unmarked, offset, found);
    });
}

fn each_block(data: &[u8], offset: u64, block_bytes: u64, mut act: impl FnMut(&[u8], u64)) {
    let size = usize::try_from(block_bytes).unwrap_or(usize::MAX);
    for (block, at) in data.chunks_exact(size).zip(0u64..) {
        act(block, offset + at * block_bytes);
    }
}

fn sectors(block: &[u8], seed: u64, offset: u64) -> Vec<Sector> {
    let sectors = block.chunks_exact(SECTOR).zip(0u64..);
    sectors.map(|(sector, at)| inspect(sector, seed, offset + at * SECTOR as u64)).collect()
}

fn note(verdict: Option<(Damage, String)>, known: bool, offset: u64, found: &mut Verification) {
    if known || verdict.is_some() {
        found.blocks_checked += 1;
    } else {
        found.blocks_unknown += 1;
    }
    if let Some((damage, words)) = verdict {
        found.add(DamagedBlock { offset, damage, words });
    }
}

/// A block that this run never wrote may hold anything, except what the run wrote for another place.
fn stray(sectors: &[Sector]) -> Option<(Damage, String)> {
    sectors.iter().find_map(|sector| match sector {
        Sector::Elsewhere { offset } => {
            Some((Damage::Misplaced, format!("holds what was written for offset {offset}")))
        }
        _ => None,
    })
}

fn compare(sectors: &[Sector], expected: u32, moment: Moment) -> Option<(Damage, String)> {
    let old = if moment == Moment::During { Damage::Stale } else { Damage::Lost };
    let unmarked = sectors.iter().filter(|sector| **sector == Sector::Unmarked).count();
    // Before its first write a block has no header, so that one without is an old version too.
    if expected == 1 && unmarked == sectors.len() {
        return Some((old, "version 1 was acknowledged, the block holds no header at all".into()));
    }
    let ours = sectors.iter().any(|sector| matches!(sector, Sector::Ours { .. }));
    if expected == 1 && unmarked > 0 && ours {
        return Some((
            Damage::Torn,
            format!("version 1 is missing in {unmarked} of {} sectors", sectors.len()),
        ));
    }
    match consistent(sectors) {
        Ok(version) if version == expected => None,
        Ok(version) => {
            Some((old, format!("version {expected} was acknowledged, the block holds version {version}")))
        }
        Err(damage) => Some(damage),
    }
}

/// The one version of all sectors, or in what way they do not make a block.
fn consistent(sectors: &[Sector]) -> Result<u32, (Damage, String)> {
    let mut versions = Vec::new();
    let mut foreign = None;
    for (index, sector) in sectors.iter().enumerate() {
        match sector {
            Sector::Ours { version } => versions.push(*version),
            Sector::Foreign { seed } => foreign = Some(*seed),
            Sector::Elsewhere { offset } => {
                let words = format!("sector {index} holds what was written for offset {offset}");
                return Err((Damage::Misplaced, words));
            }
            Sector::BadChecksum => {
                return Err((Damage::Corrupt, format!("sector {index} does not match its checksum")));
            }
            Sector::Unmarked => return Err((Damage::Corrupt, format!("sector {index} has no header"))),
        }
    }
    let [oldest, newest] = [versions.iter().min(), versions.iter().max()].map(Option::<&u32>::copied);
    match (oldest, newest, foreign) {
        (Some(oldest), Some(newest), None) if oldest == newest => Ok(oldest),
        (Some(oldest), Some(newest), None) => {
            Err((Damage::Torn, format!("its sectors are of versions {oldest} to {newest}")))
        }
        (Some(version), _, Some(seed)) => Err((
            Damage::Torn,
            format!("some sectors are of version {version}, others of the run with seed {seed}"),
        )),
        (None, _, Some(seed)) => Err((
            Damage::Foreign,
            format!(
                "holds a block of the run with seed {seed}: that run wrote it since, or this run's write never arrived"
            ),
        )),
        _ => Err((Damage::Corrupt, "it has no sector".into())),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
