//! Management operations on a platform's VMs ([Platform 2014], sections III.C and IV.C): the plan of the study.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::operations::{CloneKind, OperationKind};

/// How operations arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OperationsLoad {
    /// Open loop at these rates, in operations a minute, alternating piece by piece.
    Open(Vec<f64>),
    /// Closed loop: so many clients, each with one operation at a time.
    Closed(u32),
    /// The highest rate that is sustained is searched.
    Max {
        /// The longest that 95 % of operations may take, in nanoseconds.
        limit_ns: u64,
    },
}

/// What a study of management operations set out to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationsPlan {
    /// Address of the platform, without any secret.
    pub platform: String,
    /// Where VMs are migrated to and back, if that is another address.
    pub destination: Option<String>,
    /// Share of each operation; only their ratios matter.
    pub mix: BTreeMap<OperationKind, u32>,
    /// What was taken out of the mix since the platform does not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OperationKind>,
    /// Numbers of VMs to begin with, one after the other: half of them run.
    pub vms: Vec<u32>,
    /// How operations arrive.
    pub load: OperationsLoad,
    /// Pieces at each number of VMs. Each is a line of the results.
    pub pieces: u32,
    /// Length of a piece, in nanoseconds.
    pub piece_ns: u64,
    /// Before the first piece at each number of VMs, in nanoseconds.
    pub warm_ns: u64,
    /// How disks are copied, one clone after the other where there are several ways.
    #[serde(alias = "clone", deserialize_with = "one_or_several")]
    pub clones: Vec<CloneKind>,
    /// The longest that an operation may take, in nanoseconds.
    pub limit_ns: u64,
    /// Operations in flight at once, at most.
    pub most_at_once: u32,
    /// Memory of each VM, in bytes.
    pub memory_bytes: u64,
    /// Bytes of each VM's disk.
    pub disk_bytes: u64,
    /// What executes VMs: `auto`, `kvm` or `tcg`.
    pub accelerator: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Machines with a load of their own meanwhile, such as `qemu:`. With them every cycle of rates begins with a piece without
    /// operations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// What they do, as on a command line, where it is not small random I/O on their disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_workload: Option<String>,
}

impl OperationsPlan {
    /// Pieces after which the same rates come again: one without operations before them where there are tenants.
    #[must_use]
    pub fn cycle(&self) -> u32 {
        let rates = if let OperationsLoad::Open(rates) = &self.load { rates.len() } else { 1 };
        u32::try_from(rates.max(1)).unwrap_or(u32::MAX) + u32::from(!self.tenants.is_empty())
    }

    /// The rate of a piece, in operations a minute, 0 where there are to be none; nothing in a closed loop and while a rate is
    /// searched.
    #[must_use]
    pub fn rate(&self, piece: u32) -> Option<f64> {
        let index = (piece % self.cycle()) as usize;
        let index = match (self.tenants.is_empty(), index) {
            (true, index) => index,
            (false, 0) => return Some(0.0),
            (false, index) => index - 1,
        };
        if let OperationsLoad::Open(rates) = &self.load { rates.get(index).copied() } else { None }
    }

    /// A fixed pace beside other work: how often the whole mix fits in a piece at the first rate, and nanoseconds between two
    /// operations that fill the piece so. Whole rounds, so that every operation comes as often as its share says.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is not negative")]
    pub fn pace(&self) -> Option<(u64, u64)> {
        let rate = self.rate(0)?;
        let total = u64::from(self.mix.values().sum::<u32>());
        let most = (rate * self.piece_ns as f64 / 60e9 + 1e-9) as u64;
        let rounds = most.checked_div(total).filter(|rounds| *rounds > 0)?;
        Some((rounds, self.piece_ns / (rounds * total)))
    }
}

/// Earlier plans had one way, by itself.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CloneKind>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Ways {
        One(CloneKind),
        Several(Vec<CloneKind>),
    }
    Ok(match Ways::deserialize(deserializer)? {
        Ways::One(way) => vec![way],
        Ways::Several(ways) => ways,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_with_one_way_to_clone_are_read_as_those_with_several() {
        let mut json = serde_json::json!({ "clones": ["full", "linked"] });
        #[derive(Deserialize)]
        struct Only {
            #[serde(alias = "clone", deserialize_with = "one_or_several")]
            clones: Vec<CloneKind>,
        }
        let only: Only = serde_json::from_value(json.take()).unwrap();
        assert_eq!(only.clones, [CloneKind::Full, CloneKind::Linked]);
        let only: Only = serde_json::from_str(r#"{"clone": "linked"}"#).unwrap();
        assert_eq!(only.clones, [CloneKind::Linked]);
    }
}
