//! The appliances of a study: the one that is measured, its tiers and its neighbours.

use std::path::{Path, PathBuf};
use std::time::Duration;

use virtbench_lab::{ApplianceSpec, Network, RunningAppliance, TierLinks};
use virtbench_record::{
    ApplianceSide, ApplicationFailureDetail, ApplicationMeasured, ApplicationPlan, GuestFacts,
    NeighbourMeasured, TierMeasured,
};

use super::client::{Client, Together, client_words, explained, run_together};
use super::file::Metrics;
use super::load::{ApplianceLoad, DataDisks, DataPlace};
use super::schedule::{ApplicationFailure, ApplicationSides};
use crate::appliances::joined::{Use, joined};
use crate::appliances::place::{network, place, processors_of};
use crate::disks::disk::StudyFolder;
use crate::fence::check_host_devices;
use crate::guests::ApplianceGuests;
use crate::runner::event::Event;
use crate::runner::progress::{Progress, nanoseconds};
use crate::study_error::StudyError;

/// Real appliances under real clients.
pub struct LoadedAppliances<'a> {
    plan: &'a ApplicationPlan,
    metrics: Metrics,
    measured: ApplianceLoad,
    neighbour: Option<ApplianceLoad>,
    /// Further tiers, in the plan's order.
    tiers: Vec<ApplianceLoad>,
    guests: Option<ApplianceGuests>,
    disk: DataPlace,
    /// Where copies of the data go: a folder in this one, held while there is a measurement.
    parent: PathBuf,
    name: String,
}

impl<'a> LoadedAppliances<'a> {
    /// Appliances whose copies of the data lie in a folder for the run `name` in `parent`: the storage under it is what both sides
    /// work on. Guests are needed where the plan has VMs.
    ///
    /// # Errors
    /// A metric or the disk is invalid, or this host has too few processors.
    pub fn new(
        plan: &'a ApplicationPlan,
        measured: ApplianceLoad,
        (neighbour, tiers): (Option<ApplianceLoad>, Vec<ApplianceLoad>),
        guests: Option<ApplianceGuests>,
        parent: &Path,
        name: &str,
    ) -> Result<Self, StudyError> {
        plan.sides.iter().try_for_each(|side| processors_of(0, side.vcpus).map(drop))?;
        let metrics = Metrics::parse(&plan.metrics).map_err(StudyError::input)?;
        let disk = DataPlace::parse(&plan.disk).map_err(StudyError::input)?;
        if disk.is_fence() {
            check_host_devices().map_err(|error| StudyError::Environment(error.into()))?;
        }
        let (parent, name) = (parent.to_owned(), name.to_owned());
        Ok(Self { plan, metrics, measured, neighbour, tiers, guests, disk, parent, name })
    }

    fn limit(&self) -> Duration {
        Duration::from_nanos(self.plan.limit_ns)
    }

    /// Copies of the data, one for the appliance and each of the plan's neighbours, so that alone it has what it has beside them.
    fn disks(&mut self, folder: &Path, progress: &mut Progress<'_>) -> Result<DataDisks, StudyError> {
        let most = self.plan.sides.iter().map(|side| side.vcpus).max().unwrap_or(1);
        let (limit, neighbours) = (self.limit(), self.plan.neighbours as usize);
        if let Some(other) = self.neighbour.as_mut().filter(|_| neighbours > 0) {
            other.data(most, limit, progress)?;
        }
        for tier in &mut self.tiers {
            tier.data(most, limit, progress)?;
        }
        let first = self.measured.data(most, limit, progress)?;
        let other = match &mut self.neighbour {
            Some(other) if neighbours > 0 => other.data(most, limit, progress)?,
            _ => first,
        };
        let mut sets: Vec<_> = std::iter::once(first).chain(std::iter::repeat_n(other, neighbours)).collect();
        for tier in &mut self.tiers {
            sets.push(tier.data(most, limit, progress)?);
        }
        DataDisks::make(&self.disk, folder, &sets, progress)
    }

    fn boot(
        &self,
        number: usize,
        side: &ApplianceSide,
        disks: &DataDisks,
        (network, tiers): (Network, TierLinks),
        progress: &mut Progress<'_>,
    ) -> Result<RunningAppliance, ApplicationFailure> {
        progress.check().map_err(StudyError::from)?;
        let load = self.load(number);
        let recipe = load.built.appliance.recipe.clone();
        let name = match (number, self.plan.tiers.get(number.wrapping_sub(1))) {
            (0, _) => side.name.clone(),
            (_, Some(tier)) => format!("tier {} of {}", tier.name, side.name),
            (_, None) => format!("neighbour {number} of {}", side.name),
        };
        progress.observer.event(Event::Starting(&name));
        let failed = |error: virtbench_lab::ApplianceError| ApplicationFailure::failed(error.to_string());
        let spec = ApplianceSpec {
            root: load.built.appliance.image(),
            data: disks.paths.get(number).cloned().flatten(),
            vcpus: side.vcpus,
            memory_bytes: side.memory_bytes.max(recipe.memory),
            recipe,
            network,
            tiers,
            processors: processors_of(number, side.vcpus)?,
            place: place(self.guests.as_ref(), side)?,
            name,
        };
        if number == 0 {
            return RunningAppliance::start(&spec).map_err(failed);
        }
        // The path is measured before there are neighbours, and once.
        RunningAppliance::start_unmeasured(&spec).map_err(failed)
    }

    fn load(&self, number: usize) -> &ApplianceLoad {
        let tier = self.tiers.get(number.wrapping_sub(1));
        tier.or_else(|| self.neighbour.as_ref().filter(|_| number > 0)).unwrap_or(&self.measured)
    }

    /// The appliance and its neighbours, each in a network of its own; the first with its further tiers instead, which boot before
    /// it, because its services may look for them.
    fn boot_all(
        &self,
        neighbours: u32,
        side: &ApplianceSide,
        disks: &DataDisks,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<RunningAppliance>, ApplicationFailure> {
        let network = || {
            let made = network(&self.plan.network);
            made.map_err(|error| ApplicationFailure::failed(error.to_string()))
        };
        if self.tiers.is_empty() {
            let one = |number| self.boot(number, side, disks, (network()?, TierLinks::default()), progress);
            return (0..=neighbours as usize).map(one).collect();
        }
        let names = self.tier_names();
        let failed = |error: virtbench_lab::ApplianceError| ApplicationFailure::failed(error.to_string());
        // Guests on tap devices share a network.
        let shared =
            if side.vm { Some(network()?).filter(|it| matches!(it, Network::Namespace(_))) } else { None };
        let mut ways = match &shared {
            Some(_) => Vec::new(),
            None => joined(names.len() + 1, &uses(&names), side.vm).map_err(failed)?,
        };
        let mut booted: Vec<RunningAppliance> = Vec::new();
        for number in (0..=names.len()).rev() {
            let (network, own) = match &shared {
                None => ways.pop().unwrap_or((Network::User, TierLinks::default())),
                Some(shared) => {
                    let following = names[number..].iter().cloned().zip(&booted).collect::<Vec<_>>();
                    (shared.clone(), self::names(&following))
                }
            };
            booted.insert(0, self.boot(number, side, disks, (network, own), progress)?);
        }
        Ok(booted)
    }

    fn tier_names(&self) -> Vec<String> {
        self.plan.tiers.iter().map(|tier| tier.name.clone()).collect()
    }

    fn client(&self, number: usize, appliance: &RunningAppliance) -> Result<Client, StudyError> {
        let words = client_words(&self.load(number).load.client, appliance);
        Ok(Client { words: words.map_err(StudyError::input)?, reach: appliance.reach(), limit: self.limit() })
    }

    /// What came of clients that ran together.
    fn judged(
        &self,
        together: Together,
        tiers: Vec<TierMeasured>,
        appliances: &[RunningAppliance],
    ) -> Result<ApplicationMeasured, ApplicationFailure> {
        let Together { end, host, runs } = together;
        let failed = |why: String| ApplicationFailure::Failed {
            why,
            detail: ApplicationFailureDetail { output: Some(end.output.clone()) },
        };
        if let Err(error) = &end.result {
            return Err(failed(explained(error)));
        }
        let values = self.metrics.read(&end.output).map_err(failed)?;
        let host =
            host.ok_or_else(|| failed("the accounts of the host's processors cannot be read".into()))?;
        let mut facts = appliances.iter().map(|appliance| appliance.facts().clone());
        let appliance = facts.next().ok_or_else(|| failed("there is no appliance: a defect".into()))?;
        let neighbours =
            runs.into_iter().zip(facts).map(|(runs, appliance)| NeighbourMeasured { runs, appliance });
        Ok(ApplicationMeasured {
            values,
            elapsed_ns: nanoseconds(end.elapsed),
            output: end.output.clone(),
            appliance,
            host,
            tiers,
            beside: neighbours.collect(),
        })
    }
}

impl ApplicationSides for LoadedAppliances<'_> {
    fn storage(&self) -> &Path {
        &self.parent
    }

    fn measure(
        &mut self,
        side: &ApplianceSide,
        neighbours: u32,
        progress: &mut Progress<'_>,
    ) -> Result<(ApplicationMeasured, Option<GuestFacts>), ApplicationFailure> {
        let folder = StudyFolder::make(&self.parent, &self.name).map_err(StudyError::from)?;
        // Appliances end before their data go.
        let disks = self.disks(folder.path(), progress)?;
        let mut appliances = self.boot_all(neighbours, side, &disks, progress)?;
        let tiers = self::measured(&self.tier_names(), &mut appliances)?;
        let clients: Vec<Client> = appliances
            .iter()
            .enumerate()
            .take(1 + neighbours as usize)
            .map(|(number, appliance)| self.client(number, appliance))
            .collect::<Result<_, _>>()?;
        let together = run_together(&clients, &mut appliances, progress.stop)?;
        let measured = self.judged(together, tiers, &appliances)?;
        let guests = self.guests.as_ref().filter(|_| side.vm);
        let guest = guests.map(|guests| guests.facts(&measured.appliance));
        drop(appliances);
        Ok((measured, guest))
    }
}

/// Who reaches whom, the first being what the client loads: each reaches those that follow.
pub(super) fn uses(names: &[String]) -> Vec<Use> {
    let of = |from: usize| {
        let following = names.iter().enumerate().skip(from);
        following.map(move |(number, name)| Use { from, to: number + 1, name: name.clone() })
    };
    (0..names.len()).flat_map(of).collect()
}

/// The links of one that shares a network with those that follow it, which run already.
pub(super) fn names(following: &[(String, &RunningAppliance)]) -> TierLinks {
    let mut links = TierLinks::default();
    for (name, appliance) in following {
        if let Some(address) = appliance.shared_address() {
            links.name(name, address);
        }
    }
    links
}

/// What the path from the first to each of the others costs.
///
/// # Errors
/// One is not reached.
pub(super) fn measured(
    names: &[String],
    appliances: &mut [RunningAppliance],
) -> Result<Vec<TierMeasured>, ApplicationFailure> {
    let Some((first, others)) = appliances.split_first_mut() else { return Ok(Vec::new()) };
    let one = |(name, other): (&String, &mut RunningAppliance)| {
        let path = first.measure_path_to(name, other);
        let path = path.map_err(|error| ApplicationFailure::failed(error.to_string()))?;
        Ok(TierMeasured { name: name.clone(), path, appliance: other.facts().clone() })
    };
    names.iter().zip(others).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tier_reaches_those_that_follow() {
        let names = ["app", "db"].map(str::to_owned);
        let said: Vec<String> =
            uses(&names).iter().map(|one| format!("{} {} {}", one.from, one.to, one.name)).collect();
        assert_eq!(said, ["0 1 app", "0 2 db", "1 2 db"]);
    }
}
