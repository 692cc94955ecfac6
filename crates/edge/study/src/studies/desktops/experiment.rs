//! The study of desktops as a user asks for it: a day, and where desktops are.

use std::path::Path;

use virtbench_desktops::{Day, Group, Link, VncAddress, supplied};
use virtbench_recipe::ServicePlace;
use virtbench_record::{
    DesktopGroup, DesktopLink, DesktopNumbers, DesktopOperation, DesktopsPlan, PicturePart,
};
use virtbench_units::format_duration_ns;

use super::run::DesktopsStudy;
use super::source::{DesktopAppliance, DesktopSource, ExistingDesktops};
use crate::appliances::place::check_native;
use crate::guests::{GuestChoice, WantedAccelerator};
use crate::runner::event::Estimate;
use crate::runner::progress::Progress;
use crate::runner::run::{Experiment, Run, RunEnd};
use crate::study_error::StudyError;
use crate::user_files::read_user_file;

/// The share of operations that are to be within their limit ([Platform 2014], section III.D).
const SHARE: f64 = 0.95;

/// The day of this name, or in the file of this name, with its text.
///
/// # Errors
/// There is none, or it is invalid.
pub fn find_day(name: &str) -> Result<(String, Day), StudyError> {
    let usage = |why: String| StudyError::input(format!("--day {name}: {why}"));
    let text = match supplied::find(name) {
        Some(found) => found.text.to_owned(),
        None => read_user_file(Path::new(name)).map_err(|error| {
            let names = supplied::ALL.map(|supplied| supplied.name).join(", ");
            usage(format!("{error}; a day is a file, or one of {names}"))
        })?,
    };
    let day = Day::parse(&text).map_err(|error| usage(error.to_string()))?;
    Ok((text, day))
}

/// Where desktops are.
#[derive(Debug, Clone)]
pub enum DesktopsPlace {
    /// On this host, in namespaces of their own.
    Native,
    /// In a VM each.
    Vm,
    /// They are there already.
    Existing(ExistingDesktops),
}

/// What a study of desktops is asked to do.
#[derive(Debug, Clone)]
pub struct DesktopsOptions {
    /// The day's file, for the record.
    pub day_file: String,
    /// What users do, with the limits that hold.
    pub day: Day,
    /// Where desktops are.
    pub place: DesktopsPlace,
    /// The recipe of those that are started here, instead of the day's.
    pub recipe: Option<String>,
    /// Parts of the picture whose changes do not count.
    pub masks: Vec<PicturePart>,
    /// The link to the desktops, if it is to be slow.
    pub link: Option<Link>,
    /// How many desktops are tried.
    pub desktops: DesktopNumbers,
    /// The share of operations that may fail, from 0 to 1.
    pub errors: f64,
    /// How often each number is measured.
    pub repetitions: u32,
    /// How long users work, in nanoseconds.
    pub time_ns: u64,
    /// Processors of each desktop.
    pub vcpus: u32,
    /// Memory of each, in bytes; else the least that the recipe needs.
    pub memory_bytes: Option<u64>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What runs the VMs.
    pub guests: GuestChoice,
}

impl DesktopsOptions {
    /// Looks whether the options go together, before anything is made.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), StudyError> {
        let limits = &self.day.limits;
        if limits.a.max(limits.b) > limits.give_up {
            return Err(StudyError::input(format!(
                "--limit-a, --limit-b: users of the day {} give an operation up after {}",
                self.day.name,
                format_duration_ns(limits.give_up)
            )));
        }
        if self.are_in_uml() && self.vcpus > 1 {
            let why = format!("--vcpus {}: a guest of User Mode Linux has one processor here", self.vcpus);
            return Err(StudyError::input(why));
        }
        self.check_existing()
    }

    /// Whether existing desktops can be used as the day and the numbers ask for.
    fn check_existing(&self) -> Result<(), StudyError> {
        let DesktopsPlace::Existing(existing) = &self.place else { return Ok(()) };
        if let Some((application, operation)) = self.day.needs_help() {
            return Err(StudyError::input(format!(
                "--day {}: {} {} is done by a program inside the session, and nobody is inside existing desktops: name a day of keys and \
                 text, such as typing",
                self.day.name, application.name, operation.name
            )));
        }
        if self.recipe.is_some() {
            return Err(StudyError::input(
                "--recipe is for desktops that the study starts, not for existing ones",
            ));
        }
        let named = named(existing);
        let DesktopNumbers::Given(numbers) = &self.desktops else { return Ok(()) };
        numbers.iter().find(|number| **number > named).map_or(Ok(()), |number| {
            Err(StudyError::input(format!(
                "--desktops {number}: --environment names {named}, and each user needs one: name more"
            )))
        })
    }

    /// Whether desktops are in guests of User Mode Linux, which are named for it.
    fn are_in_uml(&self) -> bool {
        matches!(self.place, DesktopsPlace::Vm) && self.guests.accelerator == WantedAccelerator::Uml
    }

    /// How many there are to be: of existing ones no more than are named.
    fn numbers(&self) -> DesktopNumbers {
        match (&self.desktops, &self.place) {
            (DesktopNumbers::Auto { most }, DesktopsPlace::Existing(existing)) => {
                DesktopNumbers::Auto { most: named(existing).min(*most) }
            }
            (numbers, _) => numbers.clone(),
        }
    }

    /// What is measured; without a desktop, that of existing ones or of those whose root has not been looked for.
    fn plan(&self, desktop: Option<&DesktopAppliance>) -> DesktopsPlan {
        let operations = self.day.operations().map(|(application, operation)| DesktopOperation {
            application: application.name.clone(),
            operation: operation.name.clone(),
            group: match operation.group {
                Group::A => DesktopGroup::A,
                Group::B => DesktopGroup::B,
            },
        });
        let addresses = match &self.place {
            DesktopsPlace::Existing(existing) => {
                existing.addresses.iter().map(VncAddress::to_string).collect()
            }
            DesktopsPlace::Native | DesktopsPlace::Vm => Vec::new(),
        };
        DesktopsPlan {
            recipe: desktop.map_or_else(String::new, |desktop| desktop.name().to_owned()),
            root: desktop.map_or_else(String::new, |desktop| desktop.root_digest().to_owned()),
            addresses,
            masks: self.masks.clone(),
            link: self.link.map(|Link { delay_ns, rate, loss_ppm }| DesktopLink { delay_ns, rate, loss_ppm }),
            day: self.day.name.clone(),
            operations: operations.collect(),
            day_file: self.day_file.clone(),
            limit_a_ns: self.day.limits.a,
            limit_b_ns: self.day.limits.b,
            share: SHARE,
            errors: self.errors,
            vm: matches!(self.place, DesktopsPlace::Vm),
            desktops: self.numbers(),
            repetitions: self.repetitions,
            time_ns: self.time_ns,
            vcpus: self.vcpus,
            memory_bytes: self
                .memory_bytes
                .unwrap_or_else(|| desktop.map_or(0, DesktopAppliance::least_memory)),
            seed: self.seed,
            accelerator: self.guests.accelerator_name(),
        }
    }

    /// Desktops that the study starts: their root, and what VMs need.
    fn started(&self, run: &mut Run<'_>) -> Result<DesktopSource, StudyError> {
        let is_vm = matches!(self.place, DesktopsPlace::Vm);
        if !is_vm {
            check_native()?;
        }
        // Guests of User Mode Linux have no screen: there the desktop itself serves VNC.
        let place = if is_vm && !self.are_in_uml() { ServicePlace::Vm } else { ServicePlace::Native };
        let recipe = self.recipe.as_deref().unwrap_or(&self.day.recipe);
        let progress = &mut Progress { stop: run.stop, observer: &mut *run.observer };
        let desktop = DesktopAppliance::find(recipe, place, progress)?;
        let guests = is_vm.then(|| self.guests.find((self.vcpus, desktop.has_screen()), run)).transpose()?;
        Ok(DesktopSource::Started { desktop: Box::new(desktop), guests: guests.map(Box::new) })
    }
}

/// How many existing desktops are named.
fn named(existing: &ExistingDesktops) -> u32 {
    u32::try_from(existing.addresses.len()).unwrap_or(u32::MAX)
}

impl Experiment for DesktopsOptions {
    const NAME: &'static str = "desktops";

    fn estimate(&self) -> Estimate {
        DesktopsStudy::estimate(&self.plan(None))
    }

    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        self.check()?;
        let source = match &self.place {
            DesktopsPlace::Existing(existing) => DesktopSource::Existing(existing.clone()),
            DesktopsPlace::Native | DesktopsPlace::Vm => self.started(run)?,
        };
        let plan = self.plan(source.started());
        DesktopsStudy { plan, day: self.day.clone() }.run(&source, run)
    }
}
