//! The words of a tile's file.

use std::collections::BTreeMap;

use serde::Deserialize;
use virtbench_record::TileLoadKind;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTable {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    pub(super) network: Option<NetworkWord>,
    #[serde(default)]
    pub(super) member: Vec<MemberTable>,
}

/// How VMs that a run starts are reached.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum NetworkWord {
    User,
    Tap,
}

/// A member.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemberTable {
    pub(super) name: String,
    pub(super) appliance: String,
    #[serde(default)]
    pub(super) at: Vec<String>,
    #[serde(default = "one")]
    pub(super) vcpus: u32,
    pub(super) memory: Option<String>,
    #[serde(default)]
    pub(super) prepare: Vec<Vec<String>>,
    pub(super) prepare_by: Option<String>,
    #[serde(default)]
    pub(super) uses: BTreeMap<String, String>,
    pub(super) load: LoadTable,
    pub(super) levels: Option<LevelsTable>,
    pub(super) reference: Option<f64>,
}

fn one() -> u32 {
    1
}

/// Its load. Which words may stand there depends on the kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadTable {
    pub(super) kind: TileLoadKind,
    pub(super) users: Option<u32>,
    pub(super) rate: Option<f64>,
    pub(super) think: Option<String>,
    pub(super) warehouses: Option<u32>,
    pub(super) options: Option<Vec<String>>,
    pub(super) command: Option<Vec<String>>,
    pub(super) per_second: Option<String>,
    pub(super) response_ms: Option<String>,
    pub(super) failed: Option<String>,
}

impl LoadTable {
    /// Which words stand there beside the kind.
    pub(super) fn words(&self) -> Vec<&'static str> {
        let all = [
            ("users", self.users.is_some()),
            ("rate", self.rate.is_some()),
            ("think", self.think.is_some()),
            ("warehouses", self.warehouses.is_some()),
            ("options", self.options.is_some()),
            ("command", self.command.is_some()),
            ("per_second", self.per_second.is_some()),
            ("response_ms", self.response_ms.is_some()),
            ("failed", self.failed.is_some()),
        ];
        all.into_iter().filter(|(_, stands)| *stands).map(|(word, _)| word).collect()
    }
}

/// Its service levels.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LevelsTable {
    pub(super) percentile: Option<f64>,
    pub(super) response: Option<String>,
    pub(super) least: Option<f64>,
    pub(super) errors: Option<f64>,
}
