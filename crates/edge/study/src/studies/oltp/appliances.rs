//! The sides of a study of a database: its appliance, natively and in guests, on a copy of the same data for each start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use virtbench_appliance::DataSet;
use virtbench_lab::{ApplianceError, ApplianceSpec, Network, Place, RunningAppliance, TierLinks};
use virtbench_oltp::{LoadEvent, OltpError, Population, run_from, settle};
use virtbench_record::{
    ApplianceSide, DatabaseKind, GuestFacts, HostUse, OltpEvent, OltpFailureDetail, OltpMeasured,
    OltpOutcome, OltpPlan, OltpStudyPlan, OltpTimeline, Quantity,
};

use super::observed::{Observed, events};
use super::prepared::{DatabaseAppliance, connect, port, recipe_name};
use super::schedule::{OltpBoot, OltpFailure, OltpLoad, OltpSides};
use crate::appliances::place::{network, place, processors_of};
use crate::disks::disk::StudyFolder;
use crate::guests::ApplianceGuests;
use crate::runner::event::Event;
use crate::runner::progress::{Progress, unix_ns};
use crate::study_error::StudyError;

/// How long a copy of the data may take.
const COPY_LIMIT: Duration = Duration::from_secs(600);
/// How long the appliance may take to tell the time.
const CLOCK_LIMIT: Duration = Duration::from_secs(10);
/// The copy that a start works on, in a folder of its own.
const COPY: &str = "database.ext4";

/// A database's appliance, natively and in guests.
pub struct ApplianceSides<'a> {
    database: &'a DatabaseAppliance,
    plan: &'a OltpStudyPlan,
    guests: Option<ApplianceGuests>,
    data: Option<DataSet>,
    /// Where the folder with the copy goes, held while there is a start.
    parent: PathBuf,
    name: String,
}

impl<'a> ApplianceSides<'a> {
    /// Sides whose copies of the data lie in a folder for the run `name` in `parent`: the storage under it is what both sides
    /// work on. Guests are needed where the plan has VMs.
    ///
    /// # Errors
    /// A side has more processors than this process may use.
    pub fn new(
        database: &'a DatabaseAppliance,
        plan: &'a OltpStudyPlan,
        guests: Option<ApplianceGuests>,
        parent: &Path,
        name: &str,
    ) -> Result<Self, StudyError> {
        plan.sides.iter().try_for_each(|side| processors_of(0, side.vcpus).map(drop))?;
        let (parent, name) = (parent.to_owned(), name.to_owned());
        Ok(Self { database, plan, guests, data: None, parent, name })
    }

    fn data(&mut self, progress: &mut Progress<'_>) -> Result<&DataSet, StudyError> {
        if self.data.is_none() {
            let population = Population { warehouses: self.plan.warehouses, seed: self.plan.population_seed };
            let most = self.plan.sides.iter().map(|side| side.vcpus).max().unwrap_or(1);
            self.data = Some(self.database.data(population, most, progress)?);
        }
        self.data.as_ref().ok_or_else(|| StudyError::input("there are no data: a defect"))
    }

    fn place(&self, side: &ApplianceSide) -> Result<Place, StudyError> {
        place(self.guests.as_ref(), side)
    }

    fn network(&self) -> Result<Network, OltpFailure> {
        network(&self.plan.network).map_err(side_failed)
    }
}

impl OltpSides for ApplianceSides<'_> {
    fn storage(&self) -> &Path {
        &self.parent
    }

    fn boot(
        &mut self,
        side: &ApplianceSide,
        progress: &mut Progress<'_>,
    ) -> Result<Box<dyn OltpBoot + '_>, OltpFailure> {
        let folder = StudyFolder::make(&self.parent, &self.name).map_err(StudyError::from)?;
        let copy = folder.path().join(COPY);
        let stop = progress.stop;
        self.data(progress)?.copy_to(&copy, COPY_LIMIT, stop).map_err(StudyError::from)?;
        progress.observer.event(Event::Starting(&side.name));
        let processors = processors_of(0, side.vcpus)?;
        let spec = ApplianceSpec {
            name: side.name.clone(),
            recipe: self.database.built.appliance.recipe.clone(),
            root: self.database.built.appliance.image(),
            data: Some(copy),
            vcpus: side.vcpus,
            memory_bytes: side.memory_bytes,
            network: self.network()?,
            tiers: TierLinks::default(),
            processors: processors.clone(),
            place: self.place(side)?,
        };
        let appliance = RunningAppliance::start(&spec).map_err(side_failed)?;
        let guests = self.guests.clone().filter(|_| side.vm);
        let (database, plan) = (self.database, self.plan);
        Ok(Box::new(Booted { appliance, processors, database, plan, guests, _folder: folder }))
    }
}

fn side_failed(error: ApplianceError) -> OltpFailure {
    OltpFailure::failed(error.to_string())
}

/// Why an outcome is no result.
fn no_result(outcome: &OltpOutcome) -> Option<String> {
    let broken = (!outcome.conditions_broken.is_empty())
        .then(|| OltpError::Inconsistent(outcome.conditions_broken.clone()).to_string());
    let unchecked = || {
        let why = outcome.conditions_unchecked.as_ref()?;
        Some(format!("the conditions of consistency were not checked: {why}"))
    };
    outcome.ended_by.clone().or(broken).or_else(unchecked)
}

/// A side that runs. Its appliance ends before its data go.
struct Booted<'a> {
    appliance: RunningAppliance,
    processors: Vec<usize>,
    database: &'a DatabaseAppliance,
    plan: &'a OltpStudyPlan,
    /// What booted it; nothing natively.
    guests: Option<ApplianceGuests>,
    _folder: StudyFolder,
}

impl OltpBoot for Booted<'_> {
    fn measure(&mut self, load: OltpLoad, progress: &mut Progress<'_>) -> Result<OltpMeasured, OltpFailure> {
        let failed = |why: &str| OltpFailure::failed(why);
        let kind = self.database.kind;
        let address =
            self.appliance.address(port(kind)).ok_or_else(|| failed("the database has no address"))?;
        let connect = connect(kind, address);
        let plan = OltpPlan {
            users: load.users,
            ramp_up_ns: load.ramp_up_ns,
            time_ns: load.time_ns,
            mix: self.plan.mix,
            think_factor: self.plan.think_factor,
            seed: load.seed,
            ..OltpPlan::default()
        };
        let stop = progress.stop;
        let is_of_qemu = self.guests.as_ref().is_some_and(ApplianceGuests::are_of_qemu);
        let qemu = self.appliance.processes().first().copied().filter(|_| is_of_qemu);
        let mut observed = Observed::new(&self.processors, qemu);
        let (reach, appliance) = (self.appliance.reach(), &mut self.appliance);
        let applied = reach.within(|| {
            run_from(&connect, &plan, None, stop, &mut |event| {
                if let LoadEvent::Second(second) = event {
                    observed.second(second.start_ns + second.length_ns, appliance.data_operations().ok());
                }
            })
        });
        let mut outcome = match applied.map_err(|error| failed(&error.to_string()))? {
            Ok(outcome) => outcome,
            Err(OltpError::Stopped) => return Err(StudyError::Stopped.into()),
            Err(error) => return Err(self.crashed().unwrap_or_else(|| failed(&error.to_string()))),
        };
        if outcome.interrupted && outcome.ended_by.is_none() {
            return Err(StudyError::Stopped.into());
        }
        let settled = reach.within(|| settle(&connect, &mut outcome, stop, &mut |_| {}));
        settled.map_err(|error| failed(&error.to_string()))?;
        if stop.load(Ordering::Relaxed) && outcome.conditions_unchecked.is_some() {
            return Err(StudyError::Stopped.into());
        }
        if let Some(why) = no_result(&outcome) {
            let why = self.appliance.crashed().map_or(why, |crashed| crashed.to_string());
            return Err(OltpFailure::Failed {
                why,
                detail: OltpFailureDetail { outcome: Some(Box::new(outcome)) },
            });
        }
        self.measured(outcome, &observed)
    }

    fn guest(&self) -> Option<GuestFacts> {
        Some(self.guests.as_ref()?.facts(self.appliance.facts()))
    }
}

impl Booted<'_> {
    /// The reason behind a load that ended, where the appliance knows it.
    fn crashed(&mut self) -> Option<OltpFailure> {
        self.appliance.crashed().map(side_failed)
    }

    /// The outcome with everything that was counted meanwhile.
    fn measured(&mut self, outcome: OltpOutcome, observed: &Observed) -> Result<OltpMeasured, OltpFailure> {
        let short = "the processors' accounts cannot be read, or the load was shorter than two seconds";
        let host = observed.watch.host().ok_or_else(|| OltpFailure::failed(short))?;
        let (mut known, mut unavailable) = self.idle(&host);
        if let Some(iops) = observed.watch.iops() {
            known.insert(Quantity::Iops, iops);
        } else {
            unavailable.insert(Quantity::Iops, "the disk's accounts cannot be read".to_owned());
        }
        let counted: u64 = outcome.series.iter().skip(1).map(|second| second.transactions).sum();
        match observed.cycles(counted) {
            Ok(cycles) => known.extend(cycles),
            Err(why) => {
                unavailable.insert(Quantity::CyclesPerTransaction, why);
            }
        }
        let (kvm_exits, no_kvm_exits) = observed.exits(counted);
        let (events, unknown) = self.events(observed.measuring_unix_ns);
        let seconds = observed.watch.seconds();
        let timeline = Some(OltpTimeline { seconds, events, unavailable: unknown });
        let appliance = self.appliance.facts().clone();
        Ok(OltpMeasured { outcome, appliance, host, known, unavailable, timeline, kvm_exits, no_kvm_exits })
    }

    /// What the database says that it did, in nanoseconds since measuring began at this moment; and what is not known.
    fn events(&mut self, measuring_unix_ns: Option<u64>) -> (Vec<OltpEvent>, Vec<String>) {
        let nothing = |why: &str| (Vec::new(), vec![format!("checkpoints and autovacuum: {why}")]);
        if self.database.kind != DatabaseKind::PostgreSql {
            return nothing("MariaDB's log does not tell of them");
        }
        let Some(begun) = measuring_unix_ns else { return nothing("the load was too short") };
        let Some(ahead) = self.clock_ahead_ns() else {
            return nothing("the appliance's clock cannot be read");
        };
        match self.appliance.log(recipe_name(self.database.kind)) {
            Ok(log) => {
                let offset = ahead.saturating_add(i64::try_from(begun).unwrap_or(i64::MAX));
                (events(&log, offset.saturating_neg()), Vec::new())
            }
            Err(error) => nothing(&error.to_string()),
        }
    }

    /// How far the appliance's clock is ahead of this host's, in nanoseconds, as exactly as a command takes.
    fn clock_ahead_ns(&mut self) -> Option<i64> {
        let words = ["date", "+%s%N"].map(str::to_owned);
        let before = unix_ns();
        let said = self.appliance.run(&words, "root", CLOCK_LIMIT).ok()?;
        let here = before / 2 + unix_ns() / 2;
        let there: i64 = said.output.trim().parse().ok()?;
        Some(there.saturating_sub(i64::try_from(here).ok()?))
    }

    /// Idle time of the side's processors, from the second second of measuring to its end; or why it is not known.
    fn idle(&self, host: &HostUse) -> (BTreeMap<Quantity, f64>, BTreeMap<Quantity, String>) {
        let mut known = BTreeMap::new();
        let mut unavailable = BTreeMap::new();
        let used: Option<f64> =
            self.processors.iter().map(|number| host.each_percent.get(*number).copied()).sum();
        match used {
            Some(used) => {
                let idle = 100.0 - used / self.processors.len() as f64;
                known.insert(Quantity::IdlePercent, idle.clamp(0.0, 100.0));
            }
            None => {
                let why = "the accounts of single processors cannot be read";
                unavailable.insert(Quantity::IdlePercent, why.to_owned());
            }
        }
        (known, unavailable)
    }
}
