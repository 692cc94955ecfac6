//! `virtbench study platform`, and `virtbench study network`, which is one of its domains.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use virtbench_record::{NetworkPathKind, NetworkPlan};
use virtbench_study::{PlatformOptions, PlatformProfile, network_machine};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};

use super::study::{AcceleratorArg, FolderArgs, PinArg, QemuArgs};
use crate::exit::{Failure, Kind};

/// `virtbench study platform`
#[derive(Debug, Args)]
#[command(after_help = "\
Each domain is measured by a study that is there by itself, natively and in VMs: storage by native-vs-vm, the network by network, \
memory, the processor and storage beside neighbours by neighbours, a database by oltp, Redis by application. Disk adapters, management \
operations (where libvirt is), tiles and desktops have no native counterpart: they are figures by themselves. Their run folders lie in \
that of the platform, each can be opened and gone on with alone, and the report card links to their pages. What this host or this \
build does not have is left out, and said.

A domain's figure is the geometric mean of its ratios to this host, each turned so that more is better. The score is the weighted \
geometric mean over the domains; it says of how many it is, and is not comparable with one of others.

  minute  storage, network, memory, processor: under two minutes
  quick   the same with more points and VMs, neighbours, adapters, database, application and operations: under half an hour; the first \
run builds the appliances besides
  full    the same for as long as the papers measured, tiles and desktops: hours, and how many is said before

With --environment twice, the second is compared with the first, in place of VMs with this host; with one, it is compared with this host. \
Only storage, memory, processor and neighbours can be measured so. With --reference the figures of VMs are compared with those of \
another run of study platform, which has to have measured the same; then domains without a native counterpart have a part in the score, too.

Weights are a TOML file: a line such as `storage = 2` for each domain that does not count once; 0 leaves one out of the score.

Examples:
  virtbench study platform
  virtbench study platform --profile quick --accelerator kvm --out host-a
  virtbench study platform --domains storage,network --repetitions 5
  virtbench compare host-a host-b
  virtbench study platform --reference host-a --out host-b
  virtbench study platform --environment native: --environment ssh://root@metal/srv
  virtbench study platform --resume --out host-a")]
pub struct PlatformStudyArgs {
    /// How much is measured
    #[arg(long, value_enum, default_value = "minute")]
    pub profile: ProfileArg,
    /// Only these domains [default: all of the profile]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub domains: Vec<String>,
    /// How often each domain is measured, each time between machines that are started for it
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repetitions: u32,
    /// How much each domain counts in the score: a TOML file
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// What is compared: two environments, the base first, or one with this host: [NAME=]URI or a name from virtbench.toml
    #[arg(long, value_name = "URI|NAME", num_args = 1, conflicts_with = "reference")]
    pub environment: Vec<String>,
    /// Another run of study platform, with whose figures VMs are compared
    #[arg(long, value_name = "RUN")]
    pub reference: Option<PathBuf>,
    /// What executes the VMs' instructions
    #[arg(long, value_enum, default_value = "auto")]
    pub accelerator: AcceleratorArg,
    /// Folder for test disks and data; the storage under it is what is measured [default: the run folder]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
}

impl PlatformStudyArgs {
    /// The same as the study takes it.
    pub fn options(&self) -> PlatformOptions {
        PlatformOptions {
            profile: match self.profile {
                ProfileArg::Minute => PlatformProfile::Minute,
                ProfileArg::Quick => PlatformProfile::Quick,
                ProfileArg::Full => PlatformProfile::Full,
            },
            domains: self.domains.clone(),
            repetitions: self.repetitions,
            weights: self.weights.clone(),
            environments: self.environment.clone(),
            reference: self.reference.clone(),
            accelerator: self.accelerator.wanted(),
            target_dir: self.target_dir.clone(),
            seed: self.seed,
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileArg {
    /// Under two minutes
    Minute,
    /// Under half an hour
    Quick,
    /// Hours
    Full,
}

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
