//! What runs in an appliance, and how it is known to be ready.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::quantity;

/// How a service is known to be ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Probe {
    /// Something accepts connections on this port of the appliance's own loopback.
    Tcp(u16),
    /// This command ends with 0, run in the root as the service's user.
    Command(Vec<String>),
    /// This text stands in what the service has written.
    Output(String),
}

/// The signal that ends a service in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum StopSignal {
    /// Most services.
    #[default]
    #[serde(rename = "SIGTERM")]
    Term,
    /// PostgreSQL's fast shutdown.
    #[serde(rename = "SIGINT")]
    Interrupt,
    /// nginx's graceful shutdown.
    #[serde(rename = "SIGQUIT")]
    Quit,
}

/// Where a service runs that is not for every place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServicePlace {
    /// On a host itself.
    Native,
    /// In a VM.
    Vm,
}

/// A program that runs for as long as the appliance does. It stays in the foreground.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name, unique in the recipe.
    pub name: String,
    /// Program, absolute within the root, and arguments; none where it is a unit.
    #[serde(default)]
    pub command: Vec<String>,
    /// A unit of the root's own systemd, such as `redis-server.service`, where that is the init. It keeps its own command, user and
    /// way of stopping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Who runs it and its probe, by name in the root; of a unit the probe alone.
    #[serde(default = "root")]
    pub user: String,
    /// Its environment beside `PATH`, `HOME`, `USER` and `LANG`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Folders that are there before it starts and belong to its user, such as those in `/run`.
    #[serde(default)]
    pub folders: Vec<String>,
    /// How it is known to be ready.
    pub ready: Probe,
    /// How long it may take to get ready, under emulation too: nanoseconds, or `60s`.
    #[serde(default = "ready_within", with = "quantity::duration_ns")]
    pub ready_within: u64,
    /// How it is ended.
    #[serde(default)]
    pub stop: StopSignal,
    /// How long it may take to end before it is killed: nanoseconds, or `30s`.
    #[serde(default = "stop_within", with = "quantity::duration_ns")]
    pub stop_within: u64,
    /// TCP ports on which it serves clients.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// The only place where it runs; every place where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<ServicePlace>,
}

pub(crate) fn root() -> String {
    "root".into()
}

fn ready_within() -> u64 {
    120_000_000_000
}

fn stop_within() -> u64 {
    30_000_000_000
}
