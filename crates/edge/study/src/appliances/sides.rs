//! The two sides of a prediction, from run folders.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_record::{GridPlan, HostFacts, PointRecord, Profile, Provenance};

use virtbench_runs::{FolderError, LoadedRun, load_run};

/// The most folders.
const MOST_FOLDERS: usize = 2;

/// Which sides are to be found, and where.
#[derive(Debug, Clone, Copy)]
pub struct SidesRequest<'a> {
    /// One run folder, or two.
    pub folders: &'a [PathBuf],
    /// The reference: `native`, `vm`, or `vm:SETUP`.
    pub from: &'a str,
    /// The subject, likewise.
    pub to: &'a str,
    /// Whether a surface of another host or adapter may stand for the one that is missing.
    pub allow_other: bool,
}

/// Why there are no two sides.
#[derive(Debug, Error)]
pub enum SidesError {
    /// What is asked for is impossible.
    #[error("{0}")]
    Request(String),
    /// The folders do not hold it, or it is of another host.
    #[error("{0}")]
    Surface(String),
    /// A folder cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// Both sides.
#[derive(Debug)]
pub struct Sides {
    /// Records of both, under the names above.
    pub records: Vec<PointRecord>,
    /// I/Os outstanding at each point.
    pub outstanding: u32,
    /// Virtual processors of the subject.
    pub vcpus: Option<u32>,
    /// What is to be said of them.
    pub cautions: Vec<String>,
    /// Every environment of the folders but the two, with its records under its own name.
    others: Vec<(String, Vec<PointRecord>)>,
}

impl Sides {
    /// What the reference's records are called here.
    pub const REFERENCE: &'static str = "reference";
    /// What the subject's are.
    pub const SUBJECT: &'static str = "subject";

    /// Reads the folders and finds both sides in them.
    ///
    /// # Errors
    /// A folder is no run, a side is in none of them, or they are of another host or adapter.
    pub fn open(args: &SidesRequest<'_>, profile: &Profile) -> Result<Self, SidesError> {
        if args.folders.len() > MOST_FOLDERS {
            return Err(SidesError::Request("--surface: at most twice, one folder for each side".into()));
        }
        let runs: Vec<LoadedRun> =
            args.folders.iter().map(|path| load_run(path)).collect::<Result<_, _>>()?;
        let mut cautions = Vec::new();
        check_hosts(args, profile, &runs, &mut cautions)?;
        let (from, reference) = find(args.from, &runs, args.allow_other, &mut cautions)?;
        let (to, subject) = find(args.to, &runs, args.allow_other, &mut cautions)?;
        if from == to && std::ptr::eq(reference, subject) {
            return Err(SidesError::Request(format!("--to: {to} is what --from names already")));
        }
        let mut records = records_of(reference, &from, Self::REFERENCE);
        records.extend(records_of(subject, &to, Self::SUBJECT));
        let accelerator = subject.provenance.guest.as_ref().map(|guest| guest.accelerator.name.as_str());
        if accelerator == Some("tcg") && to != "native" {
            cautions.push(
                "The VM's surface was measured under TCG, software emulation: this predicts TCG, not virtualization."
                    .into(),
            );
        }
        if !std::ptr::eq(reference, subject) {
            cautions.push("The two sides were measured in different runs, not in turn.".into());
        }
        check_devices(profile, &reference.provenance, &mut cautions);
        let parallel = |plan: &GridPlan| plan.outstanding.saturating_mul(plan.workers);
        let others = others(&runs, &[&from, &to]);
        Ok(Self {
            records,
            outstanding: reference.provenance.plan.grid().map_or(0, parallel),
            vcpus: subject.provenance.guest.as_ref().map(|guest| guest.vcpus),
            cautions,
            others,
        })
    }

    /// The same with every other VM of the folders as the subject.
    #[must_use]
    pub fn other_subjects(&self) -> Vec<(String, Self)> {
        let reference =
            || self.records.iter().filter(|record| record.environment == Self::REFERENCE).cloned();
        let with = |records: &[PointRecord]| Self {
            records: reference().chain(records.iter().cloned()).collect(),
            cautions: Vec::new(),
            others: Vec::new(),
            ..*self
        };
        self.others.iter().map(|(name, records)| (name.clone(), with(records))).collect()
    }
}

/// An environment's records, under another name.
fn records_of(run: &LoadedRun, environment: &str, name: &str) -> Vec<PointRecord> {
    let records = run.records.iter().filter(|record| record.environment == environment);
    records.map(|record| PointRecord { environment: name.to_owned(), ..record.clone() }).collect()
}

/// An environment whose surface a run measured. Runs without a grid have none.
#[derive(Clone, Copy)]
struct Surface<'r> {
    run: &'r LoadedRun,
    environment: &'r str,
    /// The VM's disk: an adapter, or a configuration; nothing for the host itself.
    setup: Option<&'r str>,
}

impl<'r> Surface<'r> {
    fn all_of(run: &'r LoadedRun) -> Vec<Self> {
        let adapter = run.provenance.guest.as_ref().map(|guest| guest.adapter.as_str());
        let surface = |environment: &'r String| {
            let setup = match environment.as_str() {
                "native" => None,
                "vm" => adapter.or(Some("vm")),
                setup => Some(setup),
            };
            Self { run, environment, setup }
        };
        run.provenance.plan.environments().iter().map(surface).collect()
    }
}

/// As a user asks for it: `native`, `vm:SETUP`, or `vm (vm:SETUP)` where the run calls it `vm`.
impl fmt::Display for Surface<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.setup {
            None => f.write_str(self.environment),
            Some(setup) if setup == self.environment => write!(f, "vm:{setup}"),
            Some(setup) => write!(f, "{} (vm:{setup})", self.environment),
        }
    }
}

/// Every VM of runs that compare VMs, but those that are taken.
fn others(runs: &[LoadedRun], taken: &[&str]) -> Vec<(String, Vec<PointRecord>)> {
    let of_vms = runs.iter().map(Surface::all_of).filter(|all| all.iter().all(|one| one.setup.is_some()));
    of_vms
        .flatten()
        .filter(|surface| !taken.contains(&surface.environment))
        .map(|Surface { run, environment, .. }| {
            (environment.to_owned(), records_of(run, environment, Sides::SUBJECT))
        })
        .collect()
}

/// The run that holds a side, and the name of its environment there.
fn find<'r>(
    side: &str,
    runs: &'r [LoadedRun],
    allow_other: bool,
    cautions: &mut Vec<String>,
) -> Result<(String, &'r LoadedRun), SidesError> {
    let wanted = side.strip_prefix("vm:");
    let surfaces: Vec<Vec<Surface<'_>>> = runs.iter().map(Surface::all_of).collect();
    let found = surfaces.iter().find_map(|surfaces| {
        let mut vms = surfaces.iter().filter(|surface| surface.setup.is_some());
        match (side, wanted) {
            (_, Some(_)) => vms.find(|surface| surface.setup == wanted),
            // There is no choice where there is only one.
            ("vm", None) => vms.next().filter(|_| vms.next().is_none()),
            _ => surfaces.iter().find(|surface| surface.environment == side),
        }
    });
    let mut flat = surfaces.iter().flatten();
    let instead = || wanted.filter(|_| allow_other).and(flat.find(|surface| surface.setup.is_some()));
    if let Some(surface) = found.or_else(instead) {
        if let (None, Some(setup)) = (found, wanted) {
            cautions.push(format!("No surface is that of {setup}: that of {surface} stands for it."));
        }
        return Ok((surface.environment.to_owned(), surface.run));
    }
    let known: Vec<String> = surfaces.iter().flatten().map(ToString::to_string).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let hint = if wanted.is_some() { "; --allow-other takes another adapter's in its place" } else { "" };
    Err(SidesError::Surface(format!("no surface is that of {side}: there are {known}{hint}")))
}

/// Which facts tell two hosts apart, the first of them in words.
#[must_use]
pub fn host_difference(a: &HostFacts, b: &HostFacts) -> Option<String> {
    let apart = |what: &str, a: &str, b: &str| (a != b).then(|| format!("{what}: {a} against {b}"));
    apart("processor", &a.cpu, &b.cpu)
        .or_else(|| apart("processors", &a.processors.to_string(), &b.processors.to_string()))
        .or_else(|| apart("memory", &a.memory_bytes.to_string(), &b.memory_bytes.to_string()))
        .or_else(|| {
            let of = |host: &HostFacts| host.hypervisor.clone().unwrap_or_else(|| "none".into());
            apart("hypervisor", &of(a), &of(b))
        })
}

fn check_hosts(
    args: &SidesRequest<'_>,
    profile: &Profile,
    runs: &[LoadedRun],
    cautions: &mut Vec<String>,
) -> Result<(), SidesError> {
    let mut refuse = |what: String| {
        if args.allow_other {
            cautions.push(format!("{what}; it is used all the same."));
            return Ok(());
        }
        Err(SidesError::Surface(format!("{what}: measure one there, or give --allow-other")))
    };
    let shown = |path: &Path| path.display().to_string();
    for (run, path) in runs.iter().zip(args.folders) {
        if let Some(why) = profile.host.as_ref().and_then(|host| host_difference(host, &run.provenance.host))
        {
            refuse(format!("the surface {} is of another host than the profile ({why})", shown(path)))?;
        }
    }
    if let [first, second] = runs
        && let Some(why) = host_difference(&first.provenance.host, &second.provenance.host)
    {
        refuse(format!("the surfaces are of two hosts ({why})"))?;
    }
    if profile.host.is_none() {
        cautions.push("The profile does not say on which host it was made; the surface's is assumed.".into());
    }
    Ok(())
}

/// Whether the application used the disk that was measured, as far as that can be told.
fn check_devices(profile: &Profile, reference: &Provenance, cautions: &mut Vec<String>) {
    let Some(device) = reference.host.disk.device.as_deref() else { return };
    let name = device.trim_start_matches("/dev/");
    if !profile.devices.is_empty() && !profile.devices.iter().any(|used| name.starts_with(used.as_str())) {
        cautions.push(format!(
            "The surface is that of {name}, the application used {}.",
            profile.devices.join(", ")
        ));
    }
}
