//! Guests that appliances run in, QEMU's or User Mode Linux's, and how a user chooses them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use virtbench_lab::{
    Accelerator, DEFAULT_ADAPTER, DiskSettings, GuestImage, GuestPlace, LabError, NetworkNamespace, Place,
    Qemu, UmlImage, UmlKernel, UmlPlace, appliance_guest_facts, find_kernel,
};
use virtbench_record::{AcceleratorFacts, ApplianceFacts, CrossingCost, GuestFacts};

use super::options::{
    GuestsError, NO_KERNEL, UML_DISK, WantedAccelerator, accelerator, uml_in_place_of_emulation,
};
use crate::runner::event::Event;
use crate::runner::run::Run;
use crate::study_error::StudyError;

/// What guests with appliances need, found before anything is measured.
#[derive(Debug, Clone)]
pub struct ApplianceGuests {
    /// What they are made of.
    parts: ApplianceGuestParts,
    /// What executes their instructions, with the reason.
    accelerator_facts: AcceleratorFacts,
    /// What runs them, with its version.
    software: String,
    /// Release of their kernel.
    kernel: String,
}

#[derive(Debug, Clone)]
enum ApplianceGuestParts {
    Qemu { qemu: Qemu, image: GuestImage, accelerator: Accelerator },
    Uml(UmlImage),
}

impl ApplianceGuests {
    /// Looks for everything that they need, with `screen` a screen too, which those of User Mode Linux do without. `remark` is told what
    /// takes long.
    ///
    /// # Errors
    /// Something is missing, or no accelerator works.
    pub fn find(
        wanted: WantedAccelerator,
        kernel: Option<&Path>,
        screen: bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Self, GuestsError> {
        if wanted == WantedAccelerator::Uml {
            return Self::of_uml(kernel);
        }
        let qemu = Qemu::find().map_err(LabError::from)?;
        let kernel = find_kernel(kernel).map_err(LabError::from)?;
        let image = GuestImage::for_appliances(&kernel, &[], screen).map_err(LabError::from)?;
        let (accelerator, accelerator_facts) = accelerator(wanted, &qemu, &kernel, remark)?;
        let software = qemu.version.clone();
        let parts = ApplianceGuestParts::Qemu { qemu, image, accelerator };
        Ok(Self { parts, accelerator_facts, software, kernel: kernel.release })
    }

    /// The same for a study, whose clients reach them wherever they are: where no accelerator is named and there is no KVM, they
    /// are User Mode Linux's if those boot here and can have so many processors.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn find_for_study(
        wanted: WantedAccelerator,
        kernel: Option<&Path>,
        (vcpus, screen): (u32, bool),
        remark: &mut dyn FnMut(&str),
    ) -> Result<Self, GuestsError> {
        if wanted == WantedAccelerator::Uml {
            // Before anything is measured beside them.
            GuestsError::check_uml_processors(vcpus)?;
        }
        let is_free = wanted == WantedAccelerator::Auto && !screen;
        let instead = is_free.then(|| uml_in_place_of_emulation(kernel, vcpus, &[], remark)).flatten();
        if let Some((kernel, why)) = instead {
            match Self::with_uml(&kernel, why) {
                Ok(guests) => return Ok(guests),
                Err(error) => remark(&format!("no guest of User Mode Linux, so VMs are emulated: {error}")),
            }
        }
        Self::find(wanted, kernel, screen, remark)
    }

    fn of_uml(kernel: Option<&Path>) -> Result<Self, GuestsError> {
        if kernel.is_some() {
            return Err(GuestsError::no_uml(NO_KERNEL));
        }
        Self::with_uml(&UmlKernel::find().map_err(LabError::from)?, "named on the command line".into())
    }

    fn with_uml(kernel: &UmlKernel, why: String) -> Result<Self, GuestsError> {
        // Said before anything is built for them.
        NetworkNamespace::new().map_err(GuestsError::NoNetwork)?;
        let image = UmlImage::for_appliances(kernel, UML_DISK).map_err(LabError::from)?;
        let why = format!("{why}; {} runs as a process", kernel.program.display());
        Ok(Self {
            parts: ApplianceGuestParts::Uml(image),
            accelerator_facts: AcceleratorFacts { name: WantedAccelerator::Uml.name().to_owned(), why },
            software: format!("User Mode Linux {}", kernel.release),
            kernel: kernel.release.clone(),
        })
    }

    /// A place in a guest of these, which may take so long to boot.
    pub(crate) fn place(&self, boot_limit: Duration) -> Place {
        match self.parts.clone() {
            ApplianceGuestParts::Uml(image) => {
                Place::Uml(Box::new(UmlPlace { image, disk: UML_DISK, boot_limit }))
            }
            ApplianceGuestParts::Qemu { qemu, image, accelerator } => {
                let (adapter, settings) = (DEFAULT_ADAPTER, DiskSettings::default());
                Place::Guest(Box::new(GuestPlace { qemu, image, accelerator, adapter, settings, boot_limit }))
            }
        }
    }

    /// Whether they are QEMU's, with networks of QEMU's own.
    pub(crate) fn are_of_qemu(&self) -> bool {
        matches!(self.parts, ApplianceGuestParts::Qemu { .. })
    }

    /// What is known of one of them that runs.
    pub(crate) fn facts(&self, appliance: &ApplianceFacts) -> GuestFacts {
        let (accelerator, software) = (self.accelerator_facts.clone(), self.software.clone());
        appliance_guest_facts(appliance, accelerator, software, self.kernel.clone())
    }

    /// What is known of one that runs no appliance: its processors and memory in bytes, and what crossing into its kernel costs.
    pub(crate) fn facts_of(&self, (vcpus, memory_bytes): (u32, u64), crossing: CrossingCost) -> GuestFacts {
        GuestFacts {
            accelerator: self.accelerator_facts.clone(),
            qemu: self.software.clone(),
            kernel: self.kernel.clone(),
            vcpus,
            memory_bytes,
            adapter: "none".into(),
            command_line: Vec::new(),
            boot_ns: 0,
            crossing: Some(crossing),
        }
    }
}

/// What runs the VMs of a study of appliances.
#[derive(Debug, Clone, Default)]
pub struct GuestChoice {
    /// What executes their instructions.
    pub accelerator: WantedAccelerator,
    /// Their kernel, instead of the one that is found.
    pub kernel: Option<PathBuf>,
}

impl GuestChoice {
    /// What VMs with appliances need, that have up to so many processors and, where said so, a screen.
    ///
    /// # Errors
    /// Something is missing, or no accelerator works.
    pub(crate) fn find(&self, needs: (u32, bool), run: &mut Run<'_>) -> Result<ApplianceGuests, StudyError> {
        let remark = &mut |what: &str| run.observer.event(Event::Remark(what));
        Ok(ApplianceGuests::find_for_study(self.accelerator, self.kernel.as_deref(), needs, remark)?)
    }

    /// The accelerator as a plan names it.
    pub(crate) fn accelerator_name(&self) -> String {
        self.accelerator.name().to_owned()
    }
}
