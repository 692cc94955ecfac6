//! A conclusion as the papers' files write it down, a run as it is held beside them, and what both call a platform.

use virtbench_record::{ClaimFinding, ClaimVerdict, OperationsPlan, Provenance, Records};

/// A run that is held beside the papers.
#[derive(Debug, Clone, Copy)]
pub struct PaperRun<'r> {
    /// Its folder.
    pub folder: &'r str,
    /// What says what was measured, and where.
    pub provenance: &'r Provenance,
    /// Its results.
    pub records: &'r Records,
}

/// One conclusion of a paper.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) id: &'static str,
    pub(super) paper: &'static str,
    pub(super) place: &'static str,
    pub(super) words: &'static str,
    pub(super) published: &'static str,
    pub(super) rule: &'static str,
    pub(super) differs: &'static str,
    pub(super) study: &'static str,
    pub(super) judge: fn(&[PaperRun<'_>]) -> Vec<ClaimFinding>,
}

/// What a rule says: figures in words, and the verdict. Nothing where the run lacks what it needs.
pub(super) type Judged = Option<(String, ClaimVerdict)>;

/// What a rule says of each run, under the run's platform.
pub(super) fn each_run(runs: &[PaperRun<'_>], rule: impl Fn(&PaperRun<'_>) -> Judged) -> Vec<ClaimFinding> {
    let of = |run: &PaperRun<'_>| {
        let (figures, verdict) = rule(run)?;
        Some(ClaimFinding { platform: platform(run.provenance), figures, verdict })
    };
    runs.iter().filter_map(of).collect()
}

/// The platform of a run whose machines are all of one kind: what executes its guests, or this host.
pub(super) fn platform(provenance: &Provenance) -> String {
    provenance.guest.as_ref().map_or_else(|| NATIVE.to_owned(), |guest| guest.accelerator.name.to_uppercase())
}

/// The platform of an environment of a grid, by its name: that of the guest where it is the only one.
pub(super) fn platform_of(provenance: &Provenance, environment: &str) -> String {
    match environment {
        ONLY_GUEST => platform(provenance),
        name if ACCELERATORS.contains(&name) => name.to_uppercase(),
        name => name.to_owned(),
    }
}

/// What management operations are asked of, without where it is: `libvirt` of `libvirt+qemu:///system`.
pub(super) fn manager(plan: &OperationsPlan) -> String {
    plan.platform.split(['+', ':']).next().unwrap_or_default().to_owned()
}

/// Key of the paper on platforms.
pub(super) const PLATFORM: &str = "[Platform 2014]";

const NATIVE: &str = "native";

/// The guest of a grid that has one.
const ONLY_GUEST: &str = "vm";

/// Guests of grids that have several are called by what executes them.
const ACCELERATORS: [&str; 3] = ["kvm", "uml", "tcg"];
