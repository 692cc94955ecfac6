//! `virtbench study network`

use clap::{Args, ValueEnum};
use virtbench_record::{NetworkPathKind, NetworkPlan};
use virtbench_study::network_machine;
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};

use super::folder::FolderArgs;
use super::qemu::QemuArgs;
use super::sets::PinArg;
use crate::exit::{Failure, Kind};

/// `virtbench study network`
#[derive(Debug, Args)]
#[command(after_help = "\
Throughput of one and of several streams in both directions, one-byte requests and connections a second with how long they take, \
and small datagrams with how many are lost; each with what it costs this host's processors. Natively: a pair of virtual Ethernet \
devices between two networks of this host. Each path is measured between machines that are started for it, the paths in turn.

Networks are namespaces of the run's own: this host's network is left alone, nothing is sent outside. They need root, or a host \
that lets users make namespaces.

Examples:
  virtbench study network
  virtbench study network --accelerator uml --paths native,tap,guests
  virtbench study network --paths native,tap --mtu 1500,9000 --streams 8 --repetitions 5
  virtbench study network --between native:,ssh://root@metal/srv
  virtbench study network --resume --out network")]
pub struct NetworkStudyArgs {
    /// What lies between the two ends; the others are compared with the first [default: native, user, tap and guests; with vhost
    /// where this host has it]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    pub paths: Vec<PathArg>,
    /// Between two machines that are there too: native: for this host or ssh://HOST/FOLDER, the one that answers second, which does
    /// so on port 47500, or one that is free, of its own network meanwhile. What its processors do is not seen
    #[arg(long, value_name = "NEAR,FAR", value_delimiter = ',', value_parser = machine)]
    pub between: Vec<String>,
    /// The largest packets, in bytes; each path is measured with each
    #[arg(long, value_name = "LIST", default_value = "1500", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(576..=65_535))]
    pub mtu: Vec<u32>,
    /// Connections at once where there are several
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub streams: u32,
    /// Bytes of a datagram, without headers
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(8..=1400))]
    pub datagram: u32,
    /// How often each path is measured
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Measuring time of each kind of traffic
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_positive_duration_ns)]
    pub time: u64,
    /// Before each measurement
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration_ns)]
    pub ramp: u64,
    /// Processors of a guest
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub vcpus: u32,
    /// Memory of a guest
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_bytes)]
    pub memory: u64,
    /// Whether each end is held to processors of this host that the other has not, natively as in guests
    #[arg(long, value_enum, default_value = "auto")]
    pub pin: PinArg,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// What runs the guests
    #[command(flatten)]
    pub qemu: QemuArgs,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
}

impl NetworkStudyArgs {
    /// What is measured. `has_vhost` says whether this host's kernel can carry frames of guests.
    ///
    /// # Errors
    /// Machines are named that are not two, or of which this host is to answer.
    pub fn plan(&self, has_vhost: bool) -> Result<NetworkPlan, Failure> {
        let between = match self.between.as_slice() {
            [] => None,
            [near, far] if far.starts_with("ssh:") => Some([near.clone(), far.clone()]),
            _ => {
                let why =
                    "--between takes two machines, such as native:,ssh://root@metal/srv: the second answers";
                return Err(Failure::message(Kind::Usage, why));
            }
        };
        let is_vhost = |kind: NetworkPathKind| kind.name().ends_with("-vhost");
        let usual = NetworkPathKind::ALL.into_iter().filter(|kind| has_vhost || !is_vhost(*kind));
        let usual = usual.filter(|kind| !self.qemu.is_uml() || *kind != NetworkPathKind::User);
        let named = self.paths.iter().map(|path| path.kind());
        let mut paths: Vec<NetworkPathKind> = match (self.paths.is_empty(), &between) {
            (false, _) => named.collect(),
            (true, None) => usual.collect(),
            (true, Some(_)) => vec![NetworkPathKind::Native],
        };
        paths.extend(between.iter().map(|_| NetworkPathKind::Machines));
        let mut mtus = self.mtu.clone();
        dedup(&mut paths);
        dedup(&mut mtus);
        Ok(NetworkPlan {
            paths,
            between,
            mtus,
            streams: self.streams,
            datagram_bytes: self.datagram,
            ramp_ns: self.ramp,
            time_ns: self.time,
            repetitions: self.repetitions,
            vcpus: self.vcpus,
            memory_bytes: self.memory,
            pinned: self.pin == PinArg::Auto,
            accelerator: self.qemu.accelerator_name(),
            seed: self.seed,
        })
    }
}

fn machine(text: &str) -> Result<String, String> {
    network_machine(text).map(|_| text.to_owned())
}

/// Each once, where it stands first.
fn dedup<T: PartialEq + Copy>(items: &mut Vec<T>) {
    let mut seen: Vec<T> = Vec::new();
    items.retain(|item| {
        let is_new = !seen.contains(item);
        seen.push(*item);
        is_new
    });
}

/// What lies between two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PathArg {
    /// Two networks of this host, no guest
    Native,
    /// QEMU's user-mode network, from this host to a guest
    User,
    /// A bridge and a tap device, from this host to a guest
    Tap,
    /// The same, with frames carried by this host's kernel
    TapVhost,
    /// A bridge and two tap devices, from one guest to another
    Guests,
    /// The same, with frames carried by this host's kernel
    GuestsVhost,
}

impl PathArg {
    fn kind(self) -> NetworkPathKind {
        match self {
            Self::Native => NetworkPathKind::Native,
            Self::User => NetworkPathKind::User,
            Self::Tap => NetworkPathKind::Tap,
            Self::TapVhost => NetworkPathKind::TapVhost,
            Self::Guests => NetworkPathKind::Guests,
            Self::GuestsVhost => NetworkPathKind::GuestsVhost,
        }
    }
}
