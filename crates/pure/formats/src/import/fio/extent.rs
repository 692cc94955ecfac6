//! Where on its target a job works, and how much of it is moved: what fio 3.33 does with `filesize`, `size`,
//! `offset` and `offset_increment`.

use virtbench_workload::Amount;

use super::super::{Findings, Location, Surroundings};
use super::draft::{Draft, Engine, Quantity};

/// Where a job works, in bytes.
pub struct Extent {
    /// How much of the target is used.
    pub size_bytes: Option<u64>,
    /// Where that begins.
    pub start_bytes: u64,
    /// How much further on each next clone begins.
    pub step_bytes: u64,
    /// How many bytes a pass moves, where that is not once the region.
    pass_bytes: Option<u64>,
}

impl Extent {
    /// What ends a clone, where passes over the region would not be what fio does.
    pub fn limit(&self, amount: Amount) -> Amount {
        match (amount.passes, self.pass_bytes) {
            (Some(passes), Some(pass_bytes)) => {
                Amount { passes: None, bytes: Some(pass_bytes.saturating_mul(passes.into())), ..amount }
            }
            _ => amount,
        }
    }
}

impl Draft {
    /// Where a clone works.
    pub fn extent(
        &self,
        target: Option<&str>,
        clone: u32,
        at: Location,
        surroundings: &Surroundings<'_>,
        findings: &mut Findings,
    ) -> Extent {
        let grain_bytes = self.mix.grain();
        let whole_bytes =
            self.file_bytes.or_else(|| target.and_then(|target| (surroundings.size_of)(target)));
        let mut resolve = |what: &str, quantity: Quantity| match (quantity, whole_bytes) {
            (Quantity::Bytes(bytes), _) => Some(bytes),
            (Quantity::Percent(percent), Some(whole)) => Some(share(whole, percent)),
            (Quantity::Percent(percent), None) => {
                findings.ignore(
                    at,
                    format!("{what}={percent}%: a share of a target that does not exist yet; write {what} in bytes, or filesize"),
                );
                None
            }
        };
        let step_bytes = resolve("offset_increment", self.offset_step).unwrap_or(0);
        let mut start_bytes = resolve("offset", self.offset).unwrap_or(0);
        if self.has_own_regions() || self.has_own_files() {
            start_bytes = start_bytes.saturating_add(step_bytes.saturating_mul(clone.into()));
        }
        // A place that is a share of the target moves on to the next block.
        if [self.offset, self.offset_step].iter().any(|part| matches!(part, Quantity::Percent(_))) {
            let unit_bytes = self.offset_align.unwrap_or(grain_bytes);
            start_bytes = start_bytes.checked_next_multiple_of(unit_bytes).unwrap_or(start_bytes);
        }
        let turns = u64::from(self.again) + 1;
        let asked_bytes = match self.size {
            // Each of several files has its part.
            Some(Quantity::Bytes(bytes)) => Some(bytes / turns),
            size => size.and_then(|size| resolve("size", size)),
        };
        let rest_bytes =
            whole_bytes.and_then(|whole| whole.checked_sub(start_bytes)).filter(|rest| *rest > 0);
        let size_bytes = match (self.size, self.file_bytes, rest_bytes) {
            // The region is the whole file, of which so much is moved.
            (Some(Quantity::Bytes(_)), Some(_), Some(rest)) => Some(rest),
            (Some(Quantity::Percent(_)), _, Some(rest)) => asked_bytes.map(|asked| asked.min(rest)),
            (Some(_), ..) => asked_bytes,
            (None, _, Some(rest)) => Some(rest),
            (None, _, None) => {
                if start_bytes > 0 && self.engine != Engine::Nbd {
                    findings.ignore(
                        at,
                        "offset: the target does not reach so far, or does not exist; write size",
                    );
                }
                None
            }
        };
        // What is left at the end is less than a block, and stays as it is.
        let size_bytes = size_bytes.map(|bytes| match bytes - bytes % grain_bytes {
            0 => bytes,
            whole => whole,
        });
        let moved_bytes = match (self.size, self.file_bytes) {
            (Some(Quantity::Bytes(asked)), Some(_)) => Some(size_bytes.map_or(asked, |size| size.min(asked))),
            // Passes go on until so much has been moved, however much each of them leaves out.
            _ if self.mix.has_holes() || turns > 1 => size_bytes.map(|bytes| bytes.saturating_mul(turns)),
            _ => None,
        };
        Extent { size_bytes, start_bytes, step_bytes, pass_bytes: moved_bytes }
    }
}

/// So many percent of the whole, to the byte.
fn share(whole: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}
