//! The two sides of a prediction, from run folders.

use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_record::{GridPlan, HostFacts, Plan, PointRecord, Profile, Provenance};

use crate::folder::{FolderError, LoadedRun, load_run};

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
        let mut records = of(reference, &from, Self::REFERENCE);
        records.extend(of(subject, &to, Self::SUBJECT));
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
fn of(run: &LoadedRun, environment: &str, name: &str) -> Vec<PointRecord> {
    let records = run.records.iter().filter(|record| record.environment == environment);
    records.map(|record| PointRecord { environment: name.to_owned(), ..record.clone() }).collect()
}

fn others(runs: &[LoadedRun], taken: &[&str]) -> Vec<(String, Vec<PointRecord>)> {
    let adapters = runs.iter().filter(|run| matches!(run.provenance.plan, Plan::Adapters(_)));
    let named =
        adapters.flat_map(|run| run.provenance.plan.environments().iter().map(move |name| (run, name)));
    named
        .filter(|(_, name)| !taken.contains(&name.as_str()))
        .map(|(run, name)| (name.clone(), of(run, name, Sides::SUBJECT)))
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
    for run in runs {
        let Provenance { plan, guest, .. } = &run.provenance;
        let names = plan.environments();
        let found = match (plan, wanted) {
            (Plan::NativeVsVm(_), None) => names.iter().find(|name| *name == side),
            (Plan::NativeVsVm(_), Some(setup)) => {
                names.get(1).filter(|_| guest.as_ref().is_some_and(|guest| guest.adapter == setup))
            }
            (Plan::Adapters(_), None) => names.first().filter(|_| side == "vm" && names.len() == 1),
            (Plan::Adapters(_), Some(setup)) => names.iter().find(|name| *name == setup),
            // VMs side by side, and applications, have no surface.
            (Plan::Neighbours(_) | Plan::Deviation(_) | Plan::Predictions(_), _) => None,
        };
        if let Some(name) = found {
            return Ok((name.clone(), run));
        }
    }
    if let (Some(setup), true) = (wanted, allow_other)
        && let Some((run, name)) = runs.iter().find_map(|run| Some((run, vm_of(run)?)))
    {
        cautions
            .push(format!("No surface is that of {setup}: that of {} stands for it.", described(run, name)));
        return Ok((name.to_owned(), run));
    }
    let there: Vec<String> = runs
        .iter()
        .flat_map(|run| run.provenance.plan.environments().iter().map(move |name| described(run, name)))
        .collect();
    let hint = if wanted.is_some() { "; --allow-other takes another adapter's in its place" } else { "" };
    Err(SidesError::Surface(format!("no surface is that of {side}: there are {}{hint}", there.join(", "))))
}

/// The VM of a native-against-VM run.
fn vm_of(run: &LoadedRun) -> Option<&str> {
    let names = run.provenance.plan.environments();
    match run.provenance.plan {
        Plan::NativeVsVm(_) => names.get(1).map(String::as_str),
        Plan::Adapters(_) => names.first().map(String::as_str),
        Plan::Neighbours(_) | Plan::Deviation(_) | Plan::Predictions(_) => None,
    }
}

fn described(run: &LoadedRun, name: &str) -> String {
    match (&run.provenance.plan, &run.provenance.guest) {
        (Plan::NativeVsVm(_), Some(guest)) if name != "native" => format!("{name} (vm:{})", guest.adapter),
        (Plan::NativeVsVm(_), _) => name.to_owned(),
        (Plan::Adapters(_), _) => format!("vm:{name}"),
        (Plan::Neighbours(_) | Plan::Deviation(_), _) => format!("{name} (VMs side by side)"),
        (Plan::Predictions(_), _) => format!("{name} (applications)"),
    }
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
