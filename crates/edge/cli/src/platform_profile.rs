//! What the profiles of `virtbench study platform` measure: for each domain the words of the study that does.

use std::path::Path;

use clap::ValueEnum;
use virtbench_record::{PlatformDomain, PlatformRun};

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

impl ProfileArg {
    /// Its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// What every part is told.
pub struct PartOptions<'a> {
    /// What executes the VMs' instructions.
    pub accelerator: &'a str,
    /// Folder for test disks.
    pub target_dir: Option<&'a Path>,
}

const SECOND_NS: u64 = 1_000_000_000;

/// How long and how much, by profile. A guest has one processor, so that natively one thread computes as well.
struct Amounts {
    storage: &'static [&'static str],
    network: &'static [&'static str],
    memory: &'static str,
    processor: &'static str,
    vms: &'static str,
    /// Seconds of storage, network, memory and processor.
    takes_s: [u64; 4],
    database: Option<&'static [&'static str]>,
}

const MINUTE: Amounts = Amounts {
    storage: &["--grid", "minute", "--size", "256MiB"],
    network: &["--paths", "native,tap", "--streams", "1", "--ramp", "100ms", "--time", "300ms"],
    memory: "memory:threads=1,array=16MiB,kernel=60ms,stores=regular",
    processor: "cpu:threads=1,kernels=aes+fft+compress,kernel=150ms",
    vms: "1",
    takes_s: [11, 9, 8, 8],
    database: None,
};

const QUICK: Amounts = Amounts {
    storage: &["--grid", "quick"],
    network: &["--paths", "native,tap", "--streams", "4"],
    memory: "memory:threads=1",
    processor: "cpu:threads=1,kernel=500ms",
    vms: "1,2",
    takes_s: [90, 30, 60, 60],
    database: Some(&["--time", "10s", "--search-time", "4s"]),
};

const FULL: Amounts = Amounts {
    storage: &["--grid", "paper"],
    network: &["--paths", "native,tap", "--streams", "8", "--time", "30s"],
    memory: "memory:threads=1",
    processor: "cpu:threads=1",
    vms: "1,2,4",
    takes_s: [36_000, 480, 120, 180],
    database: Some(&["--time", "120s"]),
};

/// The domains of a profile, in the order in which they are measured.
pub fn domains(profile: ProfileArg, options: &PartOptions<'_>) -> Vec<PlatformDomain> {
    let amounts = match profile {
        ProfileArg::Minute => &MINUTE,
        ProfileArg::Quick => &QUICK,
        ProfileArg::Full => &FULL,
    };
    let [storage, network, memory, processor] = amounts.takes_s;
    let mut all = vec![
        domain("storage", storage, vec![single(options, "native-vs-vm", amounts.storage, true)]),
        domain("network", network, vec![single(options, "network", amounts.network, false)]),
        domain("memory", memory, beside_native(options, amounts.memory, amounts.vms)),
        domain("processor", processor, beside_native(options, amounts.processor, amounts.vms)),
    ];
    all.extend(
        amounts.database.map(|words| domain("database", 300, vec![single(options, "oltp", words, true)])),
    );
    all
}

fn domain(name: &str, seconds: u64, runs: Vec<PlatformRun>) -> PlatformDomain {
    PlatformDomain { name: name.into(), runs, takes_ns: seconds * SECOND_NS }
}

/// A study that measures this host and VMs by itself. A repetition of the platform is one of the study.
fn single(options: &PartOptions<'_>, study: &str, own: &[&str], has_disk: bool) -> PlatformRun {
    let mut words = words(&["study", study]);
    words.extend(self::words(own));
    words.extend(self::words(&["--repetitions", "1", "--accelerator", options.accelerator]));
    if has_disk {
        words.extend(target(options));
    }
    PlatformRun { name: study.into(), words }
}

/// The same workload natively and in as many VMs.
fn beside_native(options: &PartOptions<'_>, workload: &str, vms: &str) -> Vec<PlatformRun> {
    let run = |name: &str, place: Vec<String>| {
        let mut words =
            words(&["study", "neighbours", "--workload", workload, "--vms", vms, "--repetitions", "1"]);
        words.extend(place);
        PlatformRun { name: name.into(), words }
    };
    let guests =
        ["--accelerator", options.accelerator, "--vcpus", "1", "--memory", "512MiB", "--size", "64MiB"];
    let mut in_vm = words(&guests);
    in_vm.extend(target(options));
    vec![run("native", words(&["--environment", "native:"])), run("vm", in_vm)]
}

fn target(options: &PartOptions<'_>) -> Vec<String> {
    let folder = options.target_dir.iter();
    folder.flat_map(|folder| ["--target-dir".to_owned(), folder.display().to_string()]).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
