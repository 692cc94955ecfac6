//! What an appliance is made of, and how it ran: what it stood on, how long it took, what the path to it costs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The root file system of an appliance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplianceRoot {
    /// The recipe's name.
    pub name: String,
    /// SHA-256 of recipe, packages, release and builder, in hexadecimal digits.
    pub digest: String,
    /// SHA-256 of its image, in hexadecimal digits.
    pub image_digest: String,
    /// The distribution's release, by code name.
    pub suite: String,
    /// Every package in it, by name, with its version.
    pub packages: BTreeMap<String, String>,
}

/// How long a service took to get ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceReady {
    /// Its name.
    pub service: String,
    /// From its start until its probe said so, in nanoseconds of its machine's clock.
    pub ready_ns: u64,
}

/// What the path from the client to an appliance costs by itself: small messages that are echoed, and bytes that nobody looks at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathCost {
    /// Messages that were echoed.
    pub round_trips: u64,
    /// The shortest round trip, in nanoseconds.
    pub round_trip_min_ns: u64,
    /// Half of them took no longer, in nanoseconds.
    pub round_trip_median_ns: u64,
    /// 99 % of them took no longer, in nanoseconds.
    pub round_trip_p99_ns: u64,
    /// Bytes a second from the client to the appliance.
    pub to_bytes_per_s: f64,
    /// Bytes a second from the appliance to the client.
    pub from_bytes_per_s: f64,
}

/// An appliance as it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplianceFacts {
    /// The recipe's name.
    pub recipe: String,
    /// Processors that it has.
    pub vcpus: u32,
    /// Memory that it has, in bytes.
    pub memory_bytes: u64,
    /// How clients reach it: `user`, `tap`, or `loopback` natively.
    pub network: String,
    /// From the start of its machine to the agent's greeting, in nanoseconds.
    pub boot_ns: u64,
    /// What its programs pay for crossing into its kernel, measured when it had booted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossing: Option<CrossingCost>,
    /// From the start of its machine until all its services were ready, in nanoseconds.
    pub ready_ns: u64,
    /// Its services, in the order of starting.
    pub services: Vec<ServiceReady>,
    /// What the path to it costs; nothing before that was measured.
    pub path: Option<PathCost>,
    /// QEMU's command line; empty natively.
    pub command_line: Vec<String>,
    /// What a reader should know: a boot that was repeated, a limit that could not be had.
    pub notes: Vec<String>,
}

/// What it costs to cross into a kernel, as a program there sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CrossingCost {
    /// A system call that does nothing, in nanoseconds.
    pub system_call_ns: u64,
    /// The first write to a page of memory, in nanoseconds.
    pub page_fault_ns: u64,
}
