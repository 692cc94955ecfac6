//! What the five papers conclude, each conclusion a rule over runs: whether it holds on the machine that was measured.
//!
//! A rule takes the runs of its study, and says of each platform whether what was measured is as the paper says. What a rule asks for
//! stands beside it in words, and so does the paper's own figure: a reader can disagree with either. The papers' tables stand row by row beside
//! the same figures of runs.

mod claim;
mod desktops_and_tiles;
mod disks;
mod many_vms;
mod predictability;
mod servers;
mod tables;

use virtbench_record::{ClaimFinding, ClaimVerdict, JudgedClaim, PapersSummary};

pub use claim::PaperRun;

use claim::Claim;

/// Every conclusion, paper by paper.
fn claims() -> impl Iterator<Item = Claim> {
    let all = [
        &disks::CLAIMS[..],
        &servers::CLAIMS,
        &desktops_and_tiles::CLAIMS,
        &many_vms::CLAIMS,
        &predictability::CLAIMS,
    ];
    all.into_iter().flatten().copied()
}

/// Holds runs beside every conclusion. Of runs that say something of one conclusion on one platform, the last counts.
#[must_use]
pub fn judge_claims(runs: &[PaperRun<'_>]) -> PapersSummary {
    let judged: Vec<JudgedClaim> = claims().map(|claim| judged(claim, runs)).collect();
    let count =
        |verdict| judged.iter().flat_map(|one| &one.findings).filter(|one| one.verdict == verdict).count();
    PapersSummary {
        runs: runs.iter().map(|run| run.folder.to_owned()).collect(),
        hold: count(ClaimVerdict::Holds),
        fail: count(ClaimVerdict::Fails),
        open: count(ClaimVerdict::Open),
        claims: judged,
        tables: tables::tables(runs),
    }
}

fn judged(claim: Claim, runs: &[PaperRun<'_>]) -> JudgedClaim {
    let Claim { id, paper, place, words, published, rule, differs, study, judge } = claim;
    let mut findings: Vec<ClaimFinding> = Vec::new();
    for finding in judge(runs) {
        match findings.iter_mut().find(|earlier| earlier.platform == finding.platform) {
            Some(earlier) => *earlier = finding,
            None => findings.push(finding),
        }
    }
    let [id, paper, place, words, published, rule, differs, study] =
        [id, paper, place, words, published, rule, differs, study].map(str::to_owned);
    JudgedClaim { id, paper, place, words, published, rule, differs, study, findings }
}

#[cfg(test)]
mod tests;
