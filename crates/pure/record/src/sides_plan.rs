//! What studies of sides have in common.

use serde::{Deserialize, Serialize};

/// What a study of sides is about, of any plan of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SidesPlan {
    /// The heading of its page.
    pub title: &'static str,
    /// Names of the sides, that one first which others are compared with.
    pub sides: Vec<String>,
    /// How often each is measured.
    pub repetitions: u32,
    /// About how long measuring one of them once takes, in nanoseconds.
    pub takes_ns: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Names of samples that sum up a side.
    pub headlines: &'static [&'static str],
}

/// Beside what passes: machines that start, connections, datagrams on their way. In nanoseconds.
const BESIDE_NS: u64 = 4_000_000_000;

/// What lies between the two ends of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NetworkPathKind {
    /// A pair of virtual Ethernet devices between two networks of the host: no guest.
    Native,
    /// QEMU's user-mode network, from the host to a guest.
    User,
    /// A bridge and a tap device, from the host to a guest.
    Tap,
    /// The same, with frames carried by the host's kernel.
    TapVhost,
    /// A bridge and two tap devices, from one guest to another.
    Guests,
    /// The same, with frames carried by the host's kernel.
    GuestsVhost,
    /// Between two machines that are there.
    Machines,
}

impl NetworkPathKind {
    /// Every kind on one host, in the order in which they are measured.
    pub const ALL: [Self; 6] =
        [Self::Native, Self::User, Self::Tap, Self::TapVhost, Self::Guests, Self::GuestsVhost];

    /// Its name on the command line and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::User => "user",
            Self::Tap => "tap",
            Self::TapVhost => "tap-vhost",
            Self::Guests => "guests",
            Self::GuestsVhost => "guests-vhost",
            Self::Machines => "machines",
        }
    }

    /// Whether a guest is at one of its ends.
    #[must_use]
    pub fn has_guest(self) -> bool {
        !matches!(self, Self::Native | Self::Machines)
    }
}

/// What a study of the network set out to measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkPlan {
    /// The paths, that one first which others are compared with.
    pub paths: Vec<NetworkPathKind>,
    /// The machines of the path between machines that are there: the one that sends requests, and the one that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<[String; 2]>,
    /// The largest packets, in bytes: each path is measured with each.
    pub mtus: Vec<u32>,
    /// Connections at once where there are several.
    pub streams: u32,
    /// Bytes of a datagram, without headers.
    pub datagram_bytes: u32,
    /// How long each kind of traffic passes before it counts, in nanoseconds.
    pub ramp_ns: u64,
    /// How long it counts, in nanoseconds.
    pub time_ns: u64,
    /// How often each path is measured, each time between machines that were started for it.
    pub repetitions: u32,
    /// Processors of a guest.
    pub vcpus: u32,
    /// Memory of a guest, in bytes.
    pub memory_bytes: u64,
    /// Whether each end is held to processors of its own.
    pub pinned: bool,
    /// What executes guests' instructions: `auto`, `kvm`, `tcg` or `uml`.
    pub accelerator: String,
    /// Seed of the resampling.
    pub seed: u64,
}

impl NetworkPlan {
    /// Kinds of traffic that are measured on each side.
    const KINDS: u64 = 7;

    /// Each side: its name, its path and the size of its packets in bytes. QEMU's user-mode network has one size, and so have
    /// networks that are there.
    #[must_use]
    pub fn sides(&self) -> Vec<(String, NetworkPathKind, u32)> {
        let of_mtu = |(index, mtu): (usize, &u32)| {
            let mtu = *mtu;
            let has_own =
                |path: &NetworkPathKind| matches!(path, NetworkPathKind::User | NetworkPathKind::Machines);
            let paths = self.paths.iter().filter(move |path| index == 0 || !has_own(path));
            let name = move |path: &NetworkPathKind| match self.mtus.len() {
                1 => path.name().to_owned(),
                _ => format!("{}-{mtu}", path.name()),
            };
            paths.map(move |path| (name(path), *path, mtu))
        };
        self.mtus.iter().enumerate().flat_map(of_mtu).collect()
    }

    /// As a study of sides.
    pub(crate) fn sides_plan(&self) -> SidesPlan {
        SidesPlan {
            title: "What virtualization costs the network",
            sides: self.sides().into_iter().map(|(name, ..)| name).collect(),
            repetitions: self.repetitions,
            takes_ns: Self::KINDS * (self.ramp_ns + self.time_ns) + BESIDE_NS,
            seed: self.seed,
            headlines: &["TCP to, 1 stream", "TCP from, 1 stream", "requests", "request time, median"],
        }
    }
}
