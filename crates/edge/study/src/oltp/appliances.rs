//! The sides of a study of a database: its appliance, natively and in guests, on a copy of the same data for each start.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use virtbench_appliance::DataSet;
use virtbench_lab::{
    ApplianceError, ApplianceSpec, CpuSample, DEFAULT_ADAPTER, DiskSettings, GuestPlace, Network,
    NetworkNamespace, Place, RunningAppliance, usable_processors,
};
use virtbench_oltp::{Event as LoadEvent, OltpError, Population, run as apply};
use virtbench_record::{GuestFacts, HostUse, OltpMeasured, OltpPlan, OltpSide, OltpStudyPlan, Quantity};

use super::database::{connect, port};
use super::prepared::DatabaseAppliance;
use super::sides::{OltpBoot, OltpFailure, OltpLoad, OltpSides};
use crate::applications::Progress;
use crate::event::Event;
use crate::guests::ApplianceGuests;
use crate::study_error::StudyError;

/// How long a guest may take to boot.
const BOOT_LIMIT: Duration = Duration::from_secs(60);
/// How long a copy of the data may take.
const COPY_LIMIT: Duration = Duration::from_secs(600);
/// The copy that a start works on. There is one at a time.
const COPY: &str = "database.ext4";

/// A database's appliance, natively and in guests.
pub struct ApplianceSides<'a> {
    database: &'a DatabaseAppliance,
    plan: &'a OltpStudyPlan,
    guests: Option<ApplianceGuests>,
    data: Option<DataSet>,
    folder: PathBuf,
}

impl<'a> ApplianceSides<'a> {
    /// Sides whose copies of the data lie in `folder`: the storage under it is what both sides work on. Guests are needed where
    /// the plan has VMs.
    ///
    /// # Errors
    /// A side has more processors than this process may use.
    pub fn new(
        database: &'a DatabaseAppliance,
        plan: &'a OltpStudyPlan,
        guests: Option<ApplianceGuests>,
        folder: &Path,
    ) -> Result<Self, StudyError> {
        plan.sides.iter().try_for_each(|side| first_processors(side.vcpus).map(drop))?;
        Ok(Self { database, plan, guests, data: None, folder: folder.to_owned() })
    }

    fn data(&mut self, progress: &mut Progress<'_>) -> Result<&DataSet, StudyError> {
        if self.data.is_none() {
            let population = Population { warehouses: self.plan.warehouses, seed: self.plan.population_seed };
            let most = self.plan.sides.iter().map(|side| side.vcpus).max().unwrap_or(1);
            self.data = Some(self.database.data(population, most, progress)?);
        }
        self.data.as_ref().ok_or_else(|| StudyError::input("there are no data: a defect"))
    }

    fn place(&self, side: &OltpSide) -> Result<Place, StudyError> {
        if !side.vm {
            return Ok(Place::Native);
        }
        let missing = || StudyError::input(format!("nothing was found to boot {}: a defect", side.name));
        let guests = self.guests.as_ref().ok_or_else(missing)?;
        Ok(Place::Guest(Box::new(GuestPlace {
            qemu: guests.qemu.clone(),
            image: guests.image.clone(),
            accelerator: guests.accelerator,
            adapter: DEFAULT_ADAPTER,
            settings: DiskSettings::default(),
            boot_limit: BOOT_LIMIT,
        })))
    }

    fn network(&self) -> Result<Network, OltpFailure> {
        match self.plan.network.as_str() {
            "tap" => Ok(Network::Namespace(NetworkNamespace::new().map_err(side_failed)?)),
            _ => Ok(Network::User),
        }
    }
}

impl OltpSides for ApplianceSides<'_> {
    fn boot(
        &mut self,
        side: &OltpSide,
        progress: &mut Progress<'_>,
    ) -> Result<Box<dyn OltpBoot + '_>, OltpFailure> {
        let copy = Copy(self.folder.join(COPY));
        let stop = progress.stop;
        self.data(progress)?.copy_to(&copy.0, COPY_LIMIT, stop).map_err(StudyError::from)?;
        progress.observer.event(Event::Starting(&side.name));
        let processors = first_processors(side.vcpus)?;
        let spec = ApplianceSpec {
            name: side.name.clone(),
            recipe: self.database.appliance.recipe.clone(),
            root: self.database.appliance.image(),
            data: Some(copy.0.clone()),
            vcpus: side.vcpus,
            memory_bytes: side.memory_bytes,
            network: self.network()?,
            processors: processors.clone(),
            place: self.place(side)?,
        };
        let appliance = RunningAppliance::start(&spec).map_err(side_failed)?;
        let guests = self.guests.clone().filter(|_| side.vm);
        let (database, plan) = (self.database, self.plan);
        Ok(Box::new(Booted { appliance, processors, database, plan, guests, _copy: copy }))
    }
}

/// The first processors of those that this process may use: both sides are held to the same ones.
fn first_processors(vcpus: u32) -> Result<Vec<usize>, StudyError> {
    let mut first = usable_processors().map_err(|error| {
        StudyError::input(format!("this process's processors cannot be asked for: {error}"))
    })?;
    first.truncate(vcpus as usize);
    if first.len() < vcpus as usize {
        return Err(StudyError::input(format!(
            "a side of {vcpus} processors: this process may use {}, and both sides are held to the same ones",
            first.len()
        )));
    }
    Ok(first)
}

fn side_failed(error: ApplianceError) -> OltpFailure {
    OltpFailure::Side(error.to_string())
}

/// The data of one start, which go with it.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        // Not there is as good as gone.
        let _ = fs::remove_file(&self.0);
    }
}

/// A side that runs. Its appliance ends before its data go.
struct Booted<'a> {
    appliance: RunningAppliance,
    processors: Vec<usize>,
    database: &'a DatabaseAppliance,
    plan: &'a OltpStudyPlan,
    /// What booted it; nothing natively.
    guests: Option<ApplianceGuests>,
    _copy: Copy,
}

impl OltpBoot for Booted<'_> {
    fn measure(&mut self, load: OltpLoad, progress: &mut Progress<'_>) -> Result<OltpMeasured, OltpFailure> {
        let failed = |why: &str| OltpFailure::Side(why.to_owned());
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
        let mut samples: Vec<CpuSample> = Vec::new();
        let stop = progress.stop;
        let applied = self.appliance.reach().within(|| {
            apply(&connect, &plan, stop, &mut |event| {
                if let (LoadEvent::Second(_), Ok(sample)) = (event, CpuSample::take()) {
                    samples.truncate(1);
                    samples.push(sample);
                }
            })
        });
        let outcome = match applied.map_err(|error| OltpFailure::Side(error.to_string()))? {
            Ok(outcome) => outcome,
            Err(OltpError::Stopped) => return Err(StudyError::Stopped.into()),
            Err(error) => return Err(self.crashed().unwrap_or_else(|| OltpFailure::Side(error.to_string()))),
        };
        if outcome.interrupted {
            return Err(StudyError::Stopped.into());
        }
        if let Some(why) = &outcome.ended_by {
            return Err(self.crashed().unwrap_or_else(|| OltpFailure::Side(why.clone())));
        }
        let [first, last] = samples.as_slice() else {
            return Err(failed(
                "the processors' accounts cannot be read, or the load was shorter than two seconds",
            ));
        };
        let host = first.until(last);
        let (known, unavailable) = self.known(&host);
        Ok(OltpMeasured { outcome, appliance: self.appliance.facts().clone(), host, known, unavailable })
    }

    fn guest(&self) -> Option<GuestFacts> {
        let (guests, facts) = (self.guests.as_ref()?, self.appliance.facts());
        Some(GuestFacts {
            accelerator: guests.accelerator_facts.clone(),
            qemu: guests.qemu.version.clone(),
            kernel: guests.kernel.clone(),
            vcpus: facts.vcpus,
            memory_bytes: facts.memory_bytes,
            adapter: DEFAULT_ADAPTER.name.to_owned(),
            command_line: facts.command_line.clone(),
            boot_ns: facts.boot_ns,
        })
    }
}

impl Booted<'_> {
    /// The reason behind a load that ended, where the appliance knows it.
    fn crashed(&mut self) -> Option<OltpFailure> {
        self.appliance.crashed().map(side_failed)
    }

    /// What is known beside the load's own figures, from the second second of measuring to its end; and why the rest is not.
    fn known(&self, host: &HostUse) -> (BTreeMap<Quantity, f64>, BTreeMap<Quantity, String>) {
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
        for quantity in [Quantity::Iops, Quantity::CyclesPerTransaction] {
            unavailable.insert(quantity, "this study does not count them yet".to_owned());
        }
        (known, unavailable)
    }
}
