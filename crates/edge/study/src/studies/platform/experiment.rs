//! The study of a platform as a user asks for it: a profile, the domains of it, and what is compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use virtbench_model::platform::reference_of;
use virtbench_record::{PlatformDomain, PlatformPlan, PlatformReference, PlatformRun};
use virtbench_runs::load_any_run;

use crate::environments::find_environments;
use crate::guests::WantedAccelerator;
use crate::study_error::StudyError;
use crate::user_files::read_user_file;

/// What stands for this host where only one environment is named.
const THIS_HOST: &str = "native:";

/// What a study of a platform is asked to do.
#[derive(Debug, Clone)]
pub struct PlatformOptions {
    /// How much is measured.
    pub profile: PlatformProfile,
    /// Only these domains; all of the profile where none is named.
    pub domains: Vec<String>,
    /// How often each domain is measured.
    pub repetitions: u32,
    /// A TOML file with how much each domain counts in the score, instead of once.
    pub weights: Option<PathBuf>,
    /// What is compared: two environments, the base first, one with this host, or none for VMs with this host.
    pub environments: Vec<String>,
    /// Another run, with whose figures VMs are compared.
    pub reference: Option<PathBuf>,
    /// What executes the VMs' instructions.
    pub accelerator: WantedAccelerator,
    /// Folder for test disks and data; else the run folder.
    pub target_dir: Option<PathBuf>,
    /// Seed of every random choice.
    pub seed: u64,
}

impl PlatformOptions {
    /// What is measured.
    ///
    /// # Errors
    /// A domain is named that the profile does not have, or environments, weights or the reference cannot be used.
    pub fn plan(&self) -> Result<PlatformPlan, StudyError> {
        let named = self.compared()?;
        let texts = named.as_ref().map(|[base, subject]| [base.0.as_str(), subject.0.as_str()]);
        let options = PartOptions {
            accelerator: self.accelerator.name(),
            target_dir: self.target_dir.as_deref(),
            environments: texts,
        };
        let mut all = domains(self.profile, &options);
        let known: Vec<String> = all.iter().map(|domain| domain.name.clone()).collect();
        if let Some(name) = self.domains.iter().find(|name| !known.contains(name)) {
            let profile = self.profile.name();
            let elsewhere = if names().contains(name) { "; --profile full has it" } else { "" };
            return Err(StudyError::input(format!(
                "--domains: {name} is none of the profile {profile}: {}{elsewhere}",
                known.join(", ")
            )));
        }
        all.retain(|domain| self.domains.is_empty() || self.domains.contains(&domain.name));
        let mut plan = PlatformPlan {
            profile: self.profile.name().into(),
            domains: all,
            repetitions: self.repetitions,
            weights: self.weights(&known)?,
            accelerator: self.accelerator.name().into(),
            environments: named.map_or_else(Vec::new, |named| named.map(|(_, name)| name).into()),
            reference: None,
            seed: self.seed,
        };
        plan.reference = self.reference(&plan)?;
        Ok(plan)
    }

    fn weights(&self, known: &[String]) -> Result<BTreeMap<String, f64>, StudyError> {
        let Some(path) = &self.weights else { return Ok(BTreeMap::new()) };
        let refused = |why: String| StudyError::input(format!("--weights {}: {why}", path.display()));
        let text = read_user_file(path).map_err(refused)?;
        let weights: BTreeMap<String, f64> =
            toml::from_str(&text).map_err(|error| refused(error.to_string()))?;
        if let Some(name) = weights.keys().find(|name| !known.contains(name)) {
            return Err(StudyError::input(format!("--weights: {name} is no domain: {}", known.join(", "))));
        }
        if weights.values().any(|weight| !weight.is_finite() || *weight < 0.0) {
            return Err(StudyError::input("--weights: a weight is zero or more"));
        }
        Ok(weights)
    }

    /// The figures of another run.
    fn reference(&self, plan: &PlatformPlan) -> Result<Option<PlatformReference>, StudyError> {
        let Some(run) = &self.reference else { return Ok(None) };
        let refused = |why: String| StudyError::input(format!("--reference {}: {why}", run.display()));
        let found = load_any_run(run).map_err(|error| refused(error.to_string()))?;
        let name = run.display().to_string();
        reference_of(&name, &found.provenance, found.records.samples(), plan).map(Some).map_err(refused)
    }

    /// The environments that are compared, the base first: each as it was written, and its name.
    fn compared(&self) -> Result<Option<[(String, String); 2]>, StudyError> {
        let texts: Vec<String> = match self.environments.as_slice() {
            [] => return Ok(None),
            [subject] => vec![THIS_HOST.into(), subject.clone()],
            both @ [_, _] => both.into(),
            more => {
                let why = format!("--environment: two are compared, and {} are named", more.len());
                return Err(StudyError::input(why));
            }
        };
        let named = find_environments(&texts).map_err(StudyError::input)?;
        let mut both = texts.into_iter().zip(named.into_iter().map(|one| one.name));
        Ok(both.next().zip(both.next()).map(|(base, subject)| [base, subject]))
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlatformProfile {
    /// Under two minutes.
    Minute,
    /// Under half an hour.
    Quick,
    /// Hours.
    Full,
}

impl PlatformProfile {
    /// Its name on the command line and in records.
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
pub(super) struct PartOptions<'a> {
    /// What executes the VMs' instructions.
    pub(super) accelerator: &'a str,
    /// Folder for test disks.
    pub(super) target_dir: Option<&'a Path>,
    /// The two environments that are compared, as the user wrote them; none for this host and VMs.
    pub(super) environments: Option<[&'a str; 2]>,
}

const SECOND_NS: u64 = 1_000_000_000;

/// Why a study takes no part between environments.
const NO_ENVIRONMENTS: &str = "is measured on this host alone, not in environments that are named";

/// The control plane that is measured where there is one.
const HYPERVISOR: &str = "libvirt+qemu:///system";

/// Where it answers.
const SOCKETS: [&str; 2] = ["/var/run/libvirt/libvirt-sock", "/var/run/libvirt/virtqemud-sock"];

const NO_LIBVIRT: &str =
    "libvirt does not run on this host: install and start libvirtd (Debian: libvirt-daemon-system)";

/// The words of a study, and about how many seconds it takes.
type Part = (&'static [&'static str], u64);

/// What is measured of each domain. A guest has one processor, so that natively one thread computes as well.
struct Amounts {
    storage: Part,
    network: Part,
    memory: Part,
    processor: Part,
    /// So many VMs compute beside each other.
    vms: &'static str,
    neighbours: Option<Part>,
    adapters: Option<Part>,
    database: Option<Part>,
    application: Option<Part>,
    operations: Option<Part>,
    tiles: Option<Part>,
    desktops: Option<Part>,
}

const MINUTE: Amounts = Amounts {
    storage: (&["--grid", "minute", "--size", "256MiB"], 11),
    network: (&["--paths", "native,tap", "--streams", "1", "--ramp", "100ms", "--time", "300ms"], 9),
    memory: (&["memory:threads=1,array=16MiB,kernel=60ms,stores=regular"], 8),
    processor: (&["cpu:threads=1,kernels=monte-carlo+sor+sparse,kernel=150ms"], 8),
    vms: "1",
    neighbours: None,
    adapters: None,
    database: None,
    application: None,
    operations: None,
    tiles: None,
    desktops: None,
};

const QUICK: Amounts = Amounts {
    storage: (&["--grid", "quick", "--ramp", "200ms", "--time", "600ms"], 70),
    network: (&["--paths", "native,tap", "--streams", "4"], 30),
    memory: (&["memory:threads=1,kernel=200ms"], 40),
    processor: (&["cpu:threads=1,kernel=250ms"], 40),
    vms: "1,2",
    neighbours: Some((&["load:size=4k,read=67,random=100,outstanding=16,ramp=500ms,time=2s"], 25)),
    adapters: Some((SHORT_ADAPTERS, 60)),
    database: Some((&["--users", "1,4,16", "--time", "6s", "--search-time", "3s", "--ramp", "1s"], 180)),
    application: Some((&["redis", "--neighbours", "0"], 60)),
    operations: Some((&["--vms", "4", "--rate", "60/min", "--time", "30s", "--piece", "30s"], 60)),
    tiles: None,
    desktops: None,
};

const FULL: Amounts = Amounts {
    storage: (&["--grid", "paper"], 36_000),
    network: (&["--paths", "native,tap", "--streams", "8", "--time", "30s"], 480),
    memory: (&["memory:threads=1"], 120),
    processor: (&["cpu:threads=1"], 180),
    vms: "1,2,4",
    neighbours: Some((&["load:size=4k,read=67,random=100,outstanding=16,time=30s"], 240)),
    adapters: Some((&["--grid", "quick", "--adapters", ADAPTERS, "--setup", WRITE_THROUGH], 600)),
    database: Some((&["--time", "120s"], 1200)),
    application: Some((&["redis", "--neighbours", "1"], 180)),
    operations: Some((&["--rate", "60/min", "--vms", "10"], 360)),
    tiles: Some((&[], 1800)),
    desktops: Some((&["--environment", "vm"], 1800)),
};

const SHORT_ADAPTERS: &[&str] = &[
    "--grid",
    "quick",
    "--ramp",
    "100ms",
    "--time",
    "200ms",
    "--size",
    "256MiB",
    "--adapters",
    ADAPTERS,
    "--setup",
    WRITE_THROUGH,
];

/// The usual adapter first.
const ADAPTERS: &str = "virtio-blk,virtio-scsi,nvme,mptsas1068";

/// Beside the usual adapter, so that what a write costs is measured.
const WRITE_THROUGH: &str = "virtio-blk,cache=writethrough";

/// The domains of a profile, in the order in which they are measured.
pub(super) fn domains(profile: PlatformProfile, options: &PartOptions<'_>) -> Vec<PlatformDomain> {
    let amounts = match profile {
        PlatformProfile::Minute => &MINUTE,
        PlatformProfile::Quick => &QUICK,
        PlatformProfile::Full => &FULL,
    };
    let mut all = vec![
        storage(options, amounts.storage),
        here("network", "network", amounts.network, options, false),
        side_by_side("memory", options, amounts.memory, amounts.vms),
        side_by_side("processor", options, amounts.processor, amounts.vms),
    ];
    all.extend(amounts.neighbours.map(|part| side_by_side("neighbours", options, part, "2")));
    all.extend(amounts.adapters.map(|part| absolute(here("adapters", "adapters", part, options, true))));
    all.extend(amounts.database.map(|part| here("database", "oltp", part, options, true)));
    all.extend(amounts.application.map(|part| here("application", "application", part, options, true)));
    let operations = |part| {
        let on = ["--platform", HYPERVISOR, "--leave-out"];
        let operations = absolute(with(here("operations", "operations", part, options, false), &on));
        match SOCKETS.iter().any(|socket| Path::new(socket).exists()) {
            true => operations,
            false => PlatformDomain { runs: Vec::new(), left_out: Some(NO_LIBVIRT.into()), ..operations },
        }
    };
    all.extend(amounts.operations.map(operations));
    all.extend(amounts.tiles.map(|part| absolute(here("tiles", "tiles", part, options, true))));
    all.extend(amounts.desktops.map(|part| absolute(here("desktops", "desktops", part, options, false))));
    all
}

/// Names of the domains of every profile.
pub(super) fn names() -> Vec<String> {
    let options = PartOptions { accelerator: "auto", target_dir: None, environments: None };
    domains(PlatformProfile::Full, &options).into_iter().map(|domain| domain.name).collect()
}

fn domain(name: &str, seconds: u64, runs: Vec<PlatformRun>) -> PlatformDomain {
    PlatformDomain { name: name.into(), runs, takes_ns: seconds * SECOND_NS, absolute: false, left_out: None }
}

/// Without a counterpart natively.
fn absolute(domain: PlatformDomain) -> PlatformDomain {
    PlatformDomain { absolute: true, ..domain }
}

/// With more words.
fn with(mut domain: PlatformDomain, more: &[&str]) -> PlatformDomain {
    for run in &mut domain.runs {
        run.words.extend(words(more));
    }
    domain
}

/// This host and VMs, or two environments, point by point in turn.
fn storage(options: &PartOptions<'_>, part: Part) -> PlatformDomain {
    let Some([base, subject]) = options.environments else {
        return here("storage", "native-vs-vm", part, options, true);
    };
    let mut run = single(options, "compare", part.0, true);
    run.place.extend(words(&["--environment", base, "--environment", subject]));
    domain("storage", part.1, vec![run])
}

/// A study that measures this host and VMs by itself. A repetition of the platform is one of the study.
fn here(name: &str, study: &str, part: Part, options: &PartOptions<'_>, has_disk: bool) -> PlatformDomain {
    if options.environments.is_some() {
        let left_out = Some(format!("{name} {NO_ENVIRONMENTS}"));
        return PlatformDomain { left_out, ..domain(name, 0, Vec::new()) };
    }
    domain(name, part.1, vec![single(options, study, part.0, has_disk)])
}

fn single(options: &PartOptions<'_>, study: &str, own: &[&str], has_disk: bool) -> PlatformRun {
    let mut what = words(&["study", study]);
    what.extend(words(own));
    // Operations take pieces, and not repetitions.
    if study != "operations" {
        what.extend(words(&["--repetitions", "1"]));
    }
    let mut place = words(&["--accelerator", options.accelerator]);
    if has_disk {
        place.extend(target(options));
    }
    PlatformRun { name: study.into(), words: what, place }
}

/// The same workload natively and in as many VMs, or in two environments.
fn side_by_side(name: &str, options: &PartOptions<'_>, part: Part, vms: &str) -> PlatformDomain {
    let workload = part.0.first().copied().unwrap_or_default();
    let run = |name: &str, place: Vec<String>| {
        let what = ["study", "neighbours", "--workload", workload, "--vms", vms, "--repetitions", "1"];
        let guest = ["--vcpus", "1", "--memory", "512MiB", "--size", "64MiB"];
        PlatformRun { name: name.into(), words: words(&[&what[..], &guest].concat()), place }
    };
    let in_one = |environment: &str| words(&["--environment", environment]);
    let mut in_vm = words(&["--accelerator", options.accelerator]);
    in_vm.extend(target(options));
    let runs = match options.environments {
        Some([base, subject]) => vec![run("a", in_one(base)), run("b", in_one(subject))],
        None => vec![run("native", in_one("native:")), run("vm", in_vm)],
    };
    domain(name, part.1, runs)
}

fn target(options: &PartOptions<'_>) -> Vec<String> {
    let folder = options.target_dir.iter();
    folder.flat_map(|folder| ["--target-dir".to_owned(), folder.display().to_string()]).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
