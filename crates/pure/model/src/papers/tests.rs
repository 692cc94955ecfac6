//! Invented runs that hold and break conclusions: what the tests of each paper's rules share.

use std::collections::BTreeSet;

use virtbench_record::{ClaimVerdict, Provenance, Records};

use super::{PaperRun, claims, judge_claims};

/// What runs say to a conclusion, platform by platform.
pub(super) fn judged(id: &str, runs: &[(Provenance, Records)]) -> Vec<(String, ClaimVerdict)> {
    let runs: Vec<PaperRun<'_>> =
        runs.iter().map(|(provenance, records)| PaperRun { folder: id, provenance, records }).collect();
    let found = judge_claims(&runs).claims.into_iter().find(|one| one.id == id).unwrap();
    found.findings.into_iter().map(|finding| (finding.platform, finding.verdict)).collect()
}

/// The same where one platform says something.
pub(super) fn verdict(id: &str, runs: &[(Provenance, Records)]) -> ClaimVerdict {
    let judged = judged(id, runs);
    assert_eq!(judged.len(), 1, "{id}: {judged:?}");
    judged[0].1
}

/// The run with its guests executed by another accelerator.
pub(super) fn executed_by(accelerator: &str, mut provenance: Provenance) -> Provenance {
    provenance.guest.as_mut().unwrap().accelerator.name = accelerator.into();
    provenance
}

#[test]
fn every_paper_has_conclusions_and_each_its_own_name() {
    let all: Vec<_> = claims().collect();
    let names: BTreeSet<&str> = all.iter().map(|claim| claim.id).collect();
    assert_eq!(names.len(), all.len());
    let papers: BTreeSet<&str> = all.iter().map(|claim| claim.paper).collect();
    assert_eq!(papers.len(), 5);
    let bibliography = include_str!("../../../../../docs/bibliography.md");
    for paper in papers {
        assert!(bibliography.contains(&format!("| {paper} |")), "{paper}");
    }
}

#[test]
fn without_runs_nothing_is_said() {
    let judged = judge_claims(&[]);
    assert!(judged.claims.iter().all(|one| one.findings.is_empty()));
    assert_eq!((judged.hold, judged.fail, judged.open), (0, 0, 0));
}
