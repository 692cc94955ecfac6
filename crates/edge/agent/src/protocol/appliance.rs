//! What host and agent say of an appliance.
//!
//! The part of the conversation by which a machine of the user's runs appliances natively.
//!
//! ```text
//! host                agent that keeps files, for all      agent of each appliance, which works in a folder of its own
//! CheckBridge ------> Checked
//! Store ------------> Stored, for each piece
//! Enclose -----------------------------------------------> Enclosed; what is said from then on is between the host and an agent
//!                                                          that is alone in namespaces
//! ```

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use virtbench_recipe::{Init, Service};
use virtbench_record::{CommandEnd, PathCost};

/// Where a disk is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskPlace {
    /// This block device.
    Node(String),
    /// One of the guest's disks, in the order of their names.
    Disk {
        /// The beginning of its name under `/sys/block`.
        name_prefix: String,
        /// How many disks with that beginning come before it.
        index: usize,
    },
}

/// The disk of an appliance's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataOrder {
    /// Where it is.
    pub disk: DiskPlace,
    /// Where it is mounted, absolute within the root.
    pub folder: String,
    /// Who owns the folder, by name in the root.
    pub user: String,
}

/// Which IPv4 address an interface gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressOrder {
    /// An address that the host has chosen.
    Fixed {
        /// The address.
        address: [u8; 4],
        /// How many of its bits name the network.
        prefix: u8,
    },
    /// The one that a DHCP server of its network grants.
    Granted,
}

/// A network interface and its address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceOrder {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Its address.
    pub address: AddressOrder,
}

/// A name by which an appliance reaches another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostName {
    /// The name.
    pub name: String,
    /// The IPv4 address behind it.
    pub address: [u8; 4],
}

/// What an appliance stands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountOrder {
    /// What the machine is called.
    pub host_name: String,
    /// Who starts the services.
    pub init: Init,
    /// The read-only root, ext4. What is written to it goes to memory.
    pub root: DiskPlace,
    /// The data, ext4.
    pub data: Option<DataOrder>,
    /// The interface by which clients come, beside the loopback.
    pub interface: Option<InterfaceOrder>,
    /// Interfaces that lead to other tiers of the same application.
    pub links: Vec<InterfaceOrder>,
    /// Other tiers, which its programs find by name.
    pub hosts: Vec<HostName>,
    /// Whether its programs get the machine's graphics adapter, keyboard, pointer and first terminal: those of a VM, never of a host.
    pub screen: bool,
}

/// A command that is run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOrder {
    /// Program, absolute within the root, and arguments.
    pub words: Vec<String>,
    /// Who runs it, by name in the root.
    pub user: String,
    /// How long it may take, in nanoseconds; then it is killed with all it has started.
    pub limit_ns: u64,
}

/// What the host asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplianceRequest {
    /// Puts the root together. First of all; once.
    Mount(Box<MountOrder>),
    /// Runs a command.
    Run(CommandOrder),
    /// Starts services in this order, each once the one before is ready.
    Start(Vec<Service>),
    /// Asks how it is.
    State,
    /// Asks for the end of what a service has written.
    Log {
        /// Its name.
        service: String,
    },
    /// Answers measurements of the path to here, on this TCP port.
    ServePath {
        /// The port.
        port: u16,
    },
    /// Measures what the path from here to another agent costs.
    MeasurePath {
        /// The other's IPv4 address.
        address: [u8; 4],
        /// The port on which it answers.
        port: u16,
    },
    /// Stops the services in reverse order and unmounts everything.
    Stop,
}

/// A service that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceFailure {
    /// Its name.
    pub service: String,
    /// What happened, and what to do where something can be done.
    pub why: String,
    /// The last lines that it has written.
    pub log: Vec<String>,
}

/// How a service ended when it was told to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceEnd {
    /// Its name.
    pub service: String,
    /// Its exit code, if it has one.
    pub exit_code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// Whether it had to be killed because its time was over.
    pub killed: bool,
    /// How long it took, in nanoseconds.
    pub took_ns: u64,
}

/// How an appliance is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplianceState {
    /// Services that run.
    pub running: Vec<String>,
    /// Processes that the kernel has killed for want of memory since the root was put together.
    pub oom_kills: u64,
    /// The size of the data's file system, in bytes; nothing where there is none.
    pub data_bytes: Option<u64>,
    /// What of it is free, in bytes.
    pub data_free_bytes: Option<u64>,
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplianceReply {
    /// The root is there.
    Mounted {
        /// The IPv4 address at which clients come; nothing where that is the loopback.
        address: Option<[u8; 4]>,
    },
    /// The command has ended.
    Ran(CommandEnd),
    /// A service is ready; the next one is started.
    Ready {
        /// Its name.
        service: String,
        /// How long it took from its start, in nanoseconds.
        took_ns: u64,
    },
    /// All services are ready.
    Started,
    /// A service did not start. Those before it still run.
    NotStarted(ServiceFailure),
    /// How it is.
    State(ApplianceState),
    /// The end of what a service has written.
    Log {
        /// As it stands there.
        text: String,
    },
    /// The path can be measured.
    PathServed,
    /// What the path costs.
    PathMeasured(PathCost),
    /// Everything has ended.
    Stopped {
        /// The services, in the order in which they were stopped.
        services: Vec<ServiceEnd>,
        /// What could not be done in good order.
        notes: Vec<String>,
    },
    /// A service ended by itself. This comes unasked, at any time.
    Crashed(ServiceFailure),
}

/// The most bytes of a file that go into one message.
pub const PIECE_BYTES: usize = 1 << 20;

/// What the host says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnclosingRequest {
    /// Whether appliances can be enclosed, and be on this bridge of the machine's.
    CheckBridge {
        /// Its name.
        bridge: String,
    },
    /// Keep a piece of a file.
    Store(Piece),
    /// Enclose an appliance. For an agent that was started for it.
    Enclose(EncloseOrder),
}

/// A piece of a file that the agent keeps in its folder. What no piece has is zeros.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The file's name.
    pub name: String,
    /// Bytes of the whole file.
    pub file_bytes: u64,
    /// Where in it the piece begins.
    pub offset: u64,
    /// What it has.
    #[serde(serialize_with = "write_base64", deserialize_with = "read_base64")]
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {} of {}", self.bytes.len(), self.offset, self.name)
    }
}

/// What an appliance gets of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncloseOrder {
    /// The name of the agent that keeps the files, in the same folder.
    pub kept_by: String,
    /// The file that is its root, which is only read.
    pub root: String,
    /// The file of whose copy it has its data.
    pub data: Option<String>,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Processors.
    pub vcpus: u32,
    /// Its number: appliances are dealt to processors in turn.
    pub number: usize,
    /// Whether it has an init of its own, which needs a control group.
    pub has_init: bool,
    /// The bridge that it is on.
    pub bridge: String,
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnclosingReply {
    /// It can be done.
    Checked,
    /// The piece is kept.
    Stored,
    /// The appliance has what it was to get.
    Enclosed(Enclosed),
}

/// What an appliance has got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enclosed {
    /// The block device of its root.
    pub root: String,
    /// That of its data.
    pub data: Option<String>,
    /// Its interface on the bridge.
    pub interface: String,
    /// What could not be had, with the reason.
    pub notes: Vec<String>,
}

fn write_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}

fn read_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    BASE64.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{MAX_FRAME_BYTES, Request, receive, send};

    #[test]
    fn the_largest_piece_travels_in_one_frame() {
        let bytes = (0..=250).cycle().take(PIECE_BYTES).collect();
        let piece = Piece { name: "0".into(), file_bytes: 1 << 40, offset: 1 << 39, bytes };
        let request = Request::Enclosing(EnclosingRequest::Store(piece));
        let mut wire = Vec::new();
        send(&mut wire, &request).unwrap();
        assert!(wire.len() < MAX_FRAME_BYTES as usize / 2);
        assert_eq!(receive::<Request>(&mut wire.as_slice()).unwrap(), request);
    }
}
