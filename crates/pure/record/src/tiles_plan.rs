//! How many tiles fit ([Platform 2014], sections III.B and IV.B): the plan of the study.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::operations::OperationsPlan;

/// What loads a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TileLoadKind {
    /// TPC-C's transactions on a database: `virtbench oltp run`.
    Oltp,
    /// Pages of a web server: `virtbench users web`.
    Web,
    /// Keys and values of a store: `virtbench users key-value`.
    KeyValue,
    /// Mail that is sent and read: `virtbench users mail`.
    Mail,
    /// A command of the user's, which prints its figures.
    Client,
    /// Nothing: the member is there, and has to stay up.
    Idle,
}

impl TileLoadKind {
    /// Its name in a tile's file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Oltp => "oltp",
            Self::Web => "web",
            Self::KeyValue => "key-value",
            Self::Mail => "mail",
            Self::Client => "client",
            Self::Idle => "idle",
        }
    }
}

/// What a client of the user's prints, each a regular expression whose one group is the number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileClient {
    /// The command, a program and its arguments; `{host}`, `{port}` and `{seconds}` stand for address and measuring time.
    pub command: Vec<String>,
    /// Finds operations a second.
    pub per_second: String,
    /// Finds a response time, in milliseconds, at the percentile of the service level.
    pub response_ms: Option<String>,
    /// Finds how many operations failed.
    pub failed: Option<String>,
}

/// The load of a member, throttled to less than it can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileLoad {
    /// What loads it.
    pub kind: TileLoadKind,
    /// Users; each has a connection.
    pub users: Option<u32>,
    /// Open loop: operations a second of all users together.
    pub rate: Option<f64>,
    /// Mean think time, in nanoseconds.
    pub think_ns: Option<u64>,
    /// Warehouses of a database.
    pub warehouses: u32,
    /// Further words of the generator's command.
    pub options: Vec<String>,
    /// The command of a client.
    pub client: Option<TileClient>,
}

/// What a member has to do for the tile to count.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileLevels {
    /// Which percentile of response times is limited: 50, 90, 95, 99 or 99.9.
    pub percentile: f64,
    /// That percentile at most, in nanoseconds.
    pub response_ns: Option<u64>,
    /// Operations a second at least.
    pub least_per_second: Option<f64>,
    /// Operations that may fail, in percent of all.
    pub errors_percent: f64,
}

/// A member of a tile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TileMemberPlan {
    /// Its name.
    pub name: String,
    /// The recipe's name.
    pub appliance: String,
    /// Digest of the appliance's root, in hexadecimal digits.
    pub root: String,
    /// Processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Commands that filled the data once, each a program and its arguments: of this host, or of `prepare_by`.
    pub prepare: Vec<Vec<String>>,
    /// The member whose root the commands of `prepare` ran in; null where they are commands of this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare_by: Option<String>,
    /// Other members of its tile that it reaches: the host's name inside, and the member behind it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uses: BTreeMap<String, String>,
    /// Where it is already, for each tile: `HOST` or `HOST:PORT`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// Its load.
    pub load: TileLoad,
    /// Its service levels.
    pub levels: TileLevels,
    /// What the reference system does, in operations a second; what is done with one tile where nothing is said.
    pub reference: Option<f64>,
}

/// How many tiles there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TileNumbers {
    /// Raised until a service level breaks.
    Auto {
        /// The most that are tried.
        most: u32,
    },
    /// These, one after the other.
    Given(Vec<u32>),
}

/// Who is under load where it is not everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TileAlone {
    /// Nobody: what the members take that only stand there.
    Nobody,
    /// The member at this place of the plan, from 0.
    Member(u32),
}

/// A machine of the user's that runs members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilesHost {
    /// Its address: `libvirt+URI?pool=NAME`, or `ssh://HOST/FOLDER` where members run natively.
    pub address: String,
    /// What members are on there: `network NAME` or `bridge NAME`.
    pub network: String,
    /// Whether it is on another machine than this host.
    pub elsewhere: bool,
}

/// What a study of tiles set out to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TilesPlan {
    /// The tile's name.
    pub tile: String,
    /// Its members.
    pub members: Vec<TileMemberPlan>,
    /// Whether each member is a VM; else it runs in namespaces.
    pub vm: bool,
    /// Whether members are there already, wherever their addresses lead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub existing: bool,
    /// The machine of the user's that runs members; null where this host does.
    #[serde(default, alias = "hypervisor", skip_serializing_if = "Option::is_none")]
    pub host: Option<TilesHost>,
    /// How VMs that this run starts are reached: `user` or `tap`.
    #[serde(default = "user_network")]
    pub network: String,
    /// How many tiles.
    pub tiles: TileNumbers,
    /// Repetitions of each number, each with boots of its own.
    pub repetitions: u32,
    /// Under load before measuring, in nanoseconds.
    pub ramp_up_ns: u64,
    /// Of measuring, in nanoseconds.
    pub time_ns: u64,
    /// Where energy is read: `rapl`, `file:PATH`, `command:WORDS`; found where nothing is said.
    pub energy: Option<String>,
    /// Seed of the loads and of the resampling.
    pub seed: u64,
    /// What executes the VMs' instructions: `auto`, `kvm` or `tcg`.
    pub accelerator: String,
    /// Management operations beside the tiles, at a fixed pace; null where the score covers applications only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure: Option<OperationsPlan>,
    /// Whether each member is measured by itself first, and tiles are predicted from that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub predict: bool,
}

fn user_network() -> String {
    "user".into()
}

impl TilesPlan {
    /// What is measured, as configurations are named: `existing`, `libvirt`, `ssh`, `native` or `vm`.
    #[must_use]
    pub fn configuration(&self) -> &'static str {
        match (self.existing, &self.host, self.vm) {
            (true, ..) => "existing",
            (false, Some(_), true) => "libvirt",
            (false, Some(_), false) => "ssh",
            (false, None, true) => "vm",
            (false, None, false) => "native",
        }
    }

    /// Whether members run on other machines than this host, which has the generators alone then.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.existing || self.host.as_ref().is_some_and(|host| host.elsewhere)
    }

    /// Memory of one tile's members on this host, in bytes.
    #[must_use]
    pub fn memory_of_a_tile(&self) -> u64 {
        self.members.iter().map(|member| member.memory_bytes).fold(0, u64::saturating_add)
    }

    /// Places of the members that are under load, from 0.
    #[must_use]
    pub fn loaded(&self) -> Vec<u32> {
        let members = (0..).zip(&self.members);
        members.filter(|(_, member)| member.load.kind != TileLoadKind::Idle).map(|(place, _)| place).collect()
    }

    /// Who is measured by itself first, in this order: nobody, then each member that is under load. Empty where tiles are not predicted.
    #[must_use]
    pub fn measured_alone(&self) -> Vec<TileAlone> {
        let members = self.loaded().into_iter().map(TileAlone::Member);
        [TileAlone::Nobody].into_iter().chain(members).filter(|_| self.predict).collect()
    }

    /// The member of this name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&TileMemberPlan> {
        self.members.iter().find(|member| member.name == name)
    }
}
