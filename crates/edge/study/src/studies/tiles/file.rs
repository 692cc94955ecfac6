//! A tile as a user writes it, and the tiles that come with the project.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;
use virtbench_recipe::Recipe;
use virtbench_record::{TileClient, TileLevels, TileLoad, TileLoadKind, TileMemberPlan};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};

use super::uses;
use crate::appliances::built::{find_recipe, find_recipe_beside};
use crate::study_error::StudyError;
use crate::user_files::read_user_file;

/// The most members of a tile.
const MOST_MEMBERS: usize = 64;

/// Which percentiles of response times are kept.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// The percentile where nothing is said.
const PERCENTILE: f64 = 95.0;

/// What may fail where nothing is said, in percent.
const ERRORS_PERCENT: f64 = 1.0;

/// An invalid file.
#[derive(Debug, Error)]
pub enum TileFileError {
    /// It is no TOML, or has an unknown word, or lacks one.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// An invalid value.
    #[error("{0}")]
    Value(String),
}

/// A member of a tile, before its appliance is known.
#[derive(Debug, Clone, PartialEq)]
pub struct TileFileMember {
    /// The recipe, by name or file.
    pub appliance: String,
    /// Memory, in bytes; the least that the recipe needs where nothing is said.
    pub memory_bytes: Option<u64>,
    /// The rest, without recipe, root and memory.
    pub plan: TileMemberPlan,
}

/// A tile.
#[derive(Debug, Clone, PartialEq)]
pub struct TileFile {
    /// Its name.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// How VMs that a run starts are reached, `user` or `tap`, where the tile says it.
    pub network: Option<&'static str>,
    /// Its members.
    pub members: Vec<TileFileMember>,
}

impl TileFile {
    /// The tile of this name, or in the file of this name.
    ///
    /// # Errors
    /// There is none, or it is invalid.
    pub fn find(name: &str) -> Result<Self, StudyError> {
        let usage = |why: String| StudyError::input(format!("--tile {name}: {why}"));
        let text = match supplied(name) {
            Some(tile) => tile.text.to_owned(),
            None => read_user_file(Path::new(name)).map_err(|why| match Path::new(name).is_file() {
                true => usage(why),
                false => {
                    let names = SUPPLIED_TILES.map(|tile| tile.name).join(", ");
                    usage(format!("{why}; a tile is a file, or one of {names}"))
                }
            })?,
        };
        Self::parse(&text).map_err(|error| usage(error.to_string()))
    }

    /// The recipes of the members of the tile that was found by this name: those of a file are looked for beside it.
    ///
    /// # Errors
    /// One cannot be found.
    pub fn find_recipes(&self, name: &str) -> Result<Vec<Recipe>, StudyError> {
        let find = |member: &TileFileMember| match supplied(name) {
            Some(_) => find_recipe(&member.appliance),
            None => find_recipe_beside(Path::new(name), &member.appliance),
        };
        self.members.iter().map(|member| find(member).map(|found| found.recipe)).collect()
    }

    /// Reads it.
    ///
    /// # Errors
    /// The first line that cannot be read, or an invalid value, with the member that has it.
    pub fn parse(text: &str) -> Result<Self, TileFileError> {
        let table: FileTable = toml::from_str(text)?;
        let value = TileFileError::Value;
        if table.name.is_empty() || table.name.chars().any(char::is_control) {
            return Err(value("name: a tile needs one".into()));
        }
        if !(1..=MOST_MEMBERS).contains(&table.member.len()) {
            let why =
                format!("{} members: between 1 and {MOST_MEMBERS} [[member]] are needed", table.member.len());
            return Err(value(why));
        }
        let mut members: Vec<TileFileMember> = Vec::new();
        for table in table.member {
            let name = table.name.clone();
            let member = member(table).map_err(|why| value(format!("member {name}: {why}")))?;
            if members.iter().any(|other| other.plan.name == name) {
                return Err(value(format!("member {name}: it is there twice")));
            }
            members.push(member);
        }
        let plans: Vec<TileMemberPlan> = members.iter().map(|member| member.plan.clone()).collect();
        uses::check(&plans).map_err(value)?;
        if members.iter().all(|member| member.plan.load.kind == TileLoadKind::Idle) {
            return Err(value("load: all members are idle, so nothing would be scored".into()));
        }
        let network = table.network.map(|network| match network {
            NetworkWord::User => "user",
            NetworkWord::Tap => "tap",
        });
        Ok(Self { name: table.name, description: table.description, network, members })
    }
}

fn supplied(name: &str) -> Option<&'static SuppliedTile> {
    SUPPLIED_TILES.iter().find(|tile| tile.name == name)
}

fn member(table: MemberTable) -> Result<TileFileMember, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if table.name.is_empty() || !table.name.chars().all(is_plain) {
        return Err("name: letters, digits, -, _ and . make one".into());
    }
    if !(1..=1024).contains(&table.vcpus) {
        return Err("vcpus: a number from 1 to 1024".into());
    }
    if table.prepare.iter().any(|words| words.first().is_none_or(String::is_empty)) {
        return Err("prepare: a command needs a program".into());
    }
    let load = load(table.load)?;
    if load.kind == TileLoadKind::Oltp && !table.prepare.is_empty() {
        return Err("prepare: the data of oltp are made by virtbench itself".into());
    }
    if load.kind == TileLoadKind::Idle && (table.levels.is_some() || table.reference.is_some()) {
        return Err("levels and reference: an idle member has none".into());
    }
    let reference = table.reference.map(|value| positive("reference", value)).transpose()?;
    let memory = table.memory.as_deref().map(parse_bytes).transpose();
    let plan = TileMemberPlan {
        name: table.name,
        appliance: String::new(),
        root: String::new(),
        vcpus: table.vcpus,
        memory_bytes: 0,
        prepare: table.prepare,
        prepare_by: table.prepare_by,
        uses: table.uses,
        at: table.at,
        levels: levels(table.levels.unwrap_or_default(), &load)?,
        load,
        reference,
    };
    Ok(TileFileMember {
        appliance: table.appliance,
        memory_bytes: memory.map_err(|error| format!("memory: {error}"))?,
        plan,
    })
}

fn positive(name: &str, value: f64) -> Result<f64, String> {
    Some(value)
        .filter(|value| value.is_finite() && *value > 0.0)
        .ok_or_else(|| format!("{name}: a number above 0"))
}

fn duration(name: &str, text: Option<&str>) -> Result<Option<u64>, String> {
    text.map(parse_duration_ns).transpose().map_err(|error| format!("{name}: {error}"))
}

/// Which words a kind of load knows beside its kind.
fn known(kind: TileLoadKind) -> &'static [&'static str] {
    match kind {
        TileLoadKind::Oltp => &["users", "rate", "warehouses", "options"],
        TileLoadKind::Web | TileLoadKind::KeyValue | TileLoadKind::Mail => {
            &["users", "rate", "think", "options"]
        }
        TileLoadKind::Client => &["command", "per_second", "response_ms", "failed"],
        TileLoadKind::Idle => &[],
    }
}

fn load(table: LoadTable) -> Result<TileLoad, String> {
    let kind = table.kind;
    if let Some(word) = table.words().into_iter().find(|word| !known(kind).contains(word)) {
        return Err(format!("load: {} has no {word}", kind.name()));
    }
    if table.users.is_some_and(|users| !(1..=100_000).contains(&users)) {
        return Err("load: users: a number from 1 to 100000".into());
    }
    if table.warehouses.is_some_and(|warehouses| !(1..=100_000).contains(&warehouses)) {
        return Err("load: warehouses: a number from 1 to 100000".into());
    }
    let rate = table.rate.map(|rate| positive("load: rate", rate)).transpose()?;
    let think_ns = duration("load: think", table.think.as_deref())?;
    if rate.is_some() && think_ns.is_some() {
        return Err("load: rate and think: an open loop has no think times".into());
    }
    let client = match (kind, table.command, table.per_second) {
        (TileLoadKind::Client, Some(command), Some(per_second)) if !command.is_empty() => {
            let client =
                TileClient { command, per_second, response_ms: table.response_ms, failed: table.failed };
            super::outcome::client_patterns(&client)?;
            Some(client)
        }
        (TileLoadKind::Client, ..) => {
            return Err("load: a client needs its command and a pattern per_second".into());
        }
        _ => None,
    };
    Ok(TileLoad {
        kind,
        users: table.users,
        rate,
        think_ns,
        warehouses: table.warehouses.unwrap_or(1),
        options: table.options.unwrap_or_default(),
        client,
    })
}

fn levels(table: LevelsTable, load: &TileLoad) -> Result<TileLevels, String> {
    let percentile = table.percentile.unwrap_or(PERCENTILE);
    if !PERCENTILES.contains(&percentile) {
        return Err(format!("levels: percentile {percentile}: one of {PERCENTILES:?}"));
    }
    let response = table.response.as_deref().map(parse_positive_duration_ns).transpose();
    let response_ns = response.map_err(|error| format!("levels: response: {error}"))?;
    if let Some(client) = load.client.as_ref().filter(|_| response_ns.is_some())
        && client.response_ms.is_none()
    {
        return Err("levels: response: the client needs a pattern response_ms".into());
    }
    let errors_percent = table.errors.unwrap_or(ERRORS_PERCENT);
    if !(0.0..=100.0).contains(&errors_percent) {
        return Err("levels: errors: a share in percent, from 0 to 100".into());
    }
    let least_per_second = table.least.map(|least| positive("levels: least", least)).transpose()?;
    if let (Some(least), Some(rate)) = (least_per_second, load.rate)
        && least > rate
    {
        return Err(format!("levels: least {least}: more than the load's rate of {rate} a second"));
    }
    Ok(TileLevels { percentile, response_ns, least_per_second, errors_percent })
}

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

/// A tile that comes with the project.
#[derive(Debug, Clone, Copy)]
pub struct SuppliedTile {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

/// All of them, by name.
pub const SUPPLIED_TILES: [SuppliedTile; 2] = [
    SuppliedTile { name: "tile-paper", text: include_str!("../../../tiles/tile-paper.toml") },
    SuppliedTile { name: "tile-small", text: include_str!("../../../tiles/tile-small.toml") },
];

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
