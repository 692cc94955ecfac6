//! What guests need, found from what they are to be made of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use virtbench_lab::{
    Accelerator, Adapter, ApplianceError, BOOT_LIMIT, CarriedFile, DEFAULT_ADAPTER, DiskSettings,
    Environment, Filesystem, GuestConfig, GuestDisk, GuestImage, GuestKernel, GuestPlace, KVM_LIMIT, KvmCpu,
    LabError, NetworkNamespace, Place, Qemu, UmlDiskKind, UmlImage, UmlKernel, UmlPlace, Vm,
    appliance_guest_facts, choose_accelerator, find_kernel, force_kvm, known_accelerator,
};
use virtbench_record::{AcceleratorFacts, ApplianceFacts, GuestFacts, SetupFacts};

/// What appliances in guests of User Mode Linux see their disks through: as QEMU's, past the host's page cache.
const UML_DISK: UmlDiskKind = UmlDiskKind::VirtioBlk;

/// What is to execute a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WantedAccelerator {
    /// KVM if a guest really boots under it, else TCG.
    #[default]
    Auto,
    /// Hardware virtualization.
    Kvm,
    /// Software emulation.
    Tcg,
    /// Nothing: guests of User Mode Linux, whose kernel is a process. For appliances.
    Uml,
}

impl WantedAccelerator {
    /// QEMU's accelerator that is named, if one is.
    ///
    /// # Errors
    /// What is named is none of QEMU's.
    pub fn of_qemu(self) -> Result<Option<Accelerator>, GuestsError> {
        match self {
            Self::Auto => Ok(None),
            Self::Kvm => Ok(Some(Accelerator::Kvm(KvmCpu::Host))),
            Self::Tcg => Ok(Some(Accelerator::Tcg)),
            Self::Uml => Err(GuestsError::NoUml("these are VMs of QEMU's")),
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Uml => "uml",
        }
    }
}

/// What guests are to be made of.
#[derive(Debug, Clone)]
pub struct GuestOptions {
    /// Virtual processors of each.
    pub vcpus: u32,
    /// Memory of each, in bytes.
    pub memory_bytes: u64,
    /// Their kernel, with its modules in `../lib/modules`; the one that doctor finds where there is none.
    pub kernel: Option<PathBuf>,
    /// What executes their instructions.
    pub accelerator: WantedAccelerator,
}

impl Default for GuestOptions {
    /// One processor, 256 MiB.
    fn default() -> Self {
        Self { vcpus: 1, memory_bytes: 256 << 20, kernel: None, accelerator: WantedAccelerator::Auto }
    }
}

/// What guests also have beside their adapters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// File systems that they can mount.
    pub filesystems: &'a [Filesystem],
    /// Files that are carried into them.
    pub carried: &'a [CarriedFile],
}

/// Why there can be no guests.
#[derive(Debug, Error)]
pub enum GuestsError {
    /// Something is missing.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// KVM was asked for.
    #[error("--accelerator kvm: {0}; --accelerator tcg emulates")]
    NoKvm(String),
    /// A guest of User Mode Linux was asked for where only QEMU's do.
    #[error("--accelerator uml: {0}")]
    NoUml(&'static str),
    /// Guests of User Mode Linux that clients are to reach need a network namespace.
    #[error("--accelerator uml: {0}")]
    NoNetwork(ApplianceError),
    /// A guest has an adapter that was not asked for: a defect.
    #[error("no image was made for {0}: a defect of virtbench")]
    NoImage(&'static str),
}

/// What guests need, found before anything is measured.
pub struct Guests {
    qemu: Qemu,
    images: BTreeMap<&'static str, GuestImage>,
    config: GuestConfig,
    accelerator: AcceleratorFacts,
}

impl Guests {
    /// Looks for everything that guests with these adapters need. `remark` is told what takes long.
    ///
    /// # Errors
    /// Something is missing, or no accelerator works.
    pub fn find(
        options: &GuestOptions,
        adapters: &[&'static Adapter],
        extras: Extras<'_>,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Self, GuestsError> {
        if options.accelerator == WantedAccelerator::Uml {
            return Err(GuestsError::NoUml(
                "these VMs have QEMU's adapters, which User Mode Linux has not; the environment uml: of `virtbench study compare` \
                 measures its own disks",
            ));
        }
        let qemu = Qemu::find().map_err(LabError::from)?;
        let kernel = find_kernel(options.kernel.as_deref()).map_err(LabError::from)?;
        let mut images = BTreeMap::new();
        for adapter in adapters {
            qemu.check_adapter(adapter).map_err(LabError::from)?;
            // Each guest gets the drivers of its own adapter, and no others.
            let image = GuestImage::carrying(&kernel, &[adapter], extras.filesystems, extras.carried);
            images.insert(adapter.name, image.map_err(LabError::from)?);
        }
        let (accelerator, facts) = accelerator(options.accelerator, &qemu, &kernel, remark)?;
        let mut config = GuestConfig::new(accelerator);
        config.vcpus = options.vcpus;
        config.memory_bytes = options.memory_bytes;
        Ok(Self { accelerator: facts, qemu, images, config })
    }

    /// Memory of each guest, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.config.memory_bytes
    }

    /// The environment `name`: guests with this disk, as one configuration of several if `setup` is given,
    /// held to these processors of the host unless there are none.
    ///
    /// # Errors
    /// The disk's adapter was not among those looked for.
    pub fn vm(
        &self,
        name: &str,
        disk: GuestDisk,
        setup: Option<SetupFacts>,
        processors: Vec<usize>,
    ) -> Result<Box<dyn Environment>, GuestsError> {
        let adapter = disk.adapter.name;
        let image = self.images.get(adapter).cloned().ok_or(GuestsError::NoImage(adapter))?;
        let (accelerator, config) = (self.accelerator.clone(), self.config.clone());
        let vm =
            Vm::new(name, self.qemu.clone(), image, accelerator, config, disk).with_processors(processors);
        Ok(Box::new(match setup {
            Some(setup) => vm.with_setup(setup),
            None => vm,
        }))
    }
}

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
    /// Looks for everything that they need, with `screen` a screen too. `remark` is told what takes long.
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
            return Self::of_uml(kernel, screen);
        }
        let qemu = Qemu::find().map_err(LabError::from)?;
        let kernel = find_kernel(kernel).map_err(LabError::from)?;
        let image = GuestImage::for_appliances(&kernel, &[], screen).map_err(LabError::from)?;
        let (accelerator, accelerator_facts) = accelerator(wanted, &qemu, &kernel, remark)?;
        let software = qemu.version.clone();
        let parts = ApplianceGuestParts::Qemu { qemu, image, accelerator };
        Ok(Self { parts, accelerator_facts, software, kernel: kernel.release })
    }

    fn of_uml(kernel: Option<&Path>, screen: bool) -> Result<Self, GuestsError> {
        if screen {
            return Err(GuestsError::NoUml("User Mode Linux has no screen"));
        }
        if kernel.is_some() {
            return Err(GuestsError::NoUml(
                "--kernel names a kernel that QEMU boots; VIRTBENCH_UML names one of User Mode Linux",
            ));
        }
        // Said before anything is built for them: User Mode Linux has no network that needs no rights.
        NetworkNamespace::new().map_err(GuestsError::NoNetwork)?;
        let kernel = UmlKernel::find().map_err(LabError::from)?;
        let image = UmlImage::for_appliances(&kernel, UML_DISK).map_err(LabError::from)?;
        let why = format!("named on the command line; {} runs as a process", kernel.program.display());
        Ok(Self {
            parts: ApplianceGuestParts::Uml(image),
            accelerator_facts: AcceleratorFacts { name: WantedAccelerator::Uml.name().to_owned(), why },
            software: format!("User Mode Linux {}", kernel.release),
            kernel: kernel.release,
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
}

/// The accelerator that was asked for, or the one that works.
fn accelerator(
    wanted: WantedAccelerator,
    qemu: &Qemu,
    kernel: &GuestKernel,
    remark: &mut dyn FnMut(&str),
) -> Result<(Accelerator, AcceleratorFacts), GuestsError> {
    let named = |accelerator: Accelerator, found: &str| {
        let why = format!("named on the command line{found}");
        (accelerator, AcceleratorFacts { name: accelerator.name().to_owned(), why })
    };
    match wanted {
        WantedAccelerator::Kvm => {
            if !known_accelerator(qemu, kernel).is_some_and(|known| known.accelerator.is_kvm()) {
                let limit = BOOT_LIMIT.as_secs();
                remark(&format!("booting a guest under KVM, which was asked for (up to {limit} s)"));
            }
            let choice = force_kvm(qemu, kernel, BOOT_LIMIT)?.map_err(GuestsError::NoKvm)?;
            Ok(named(choice.accelerator, &format!("; {}", choice.why)))
        }
        WantedAccelerator::Tcg => Ok(named(Accelerator::Tcg, "")),
        WantedAccelerator::Uml => Err(GuestsError::NoUml("User Mode Linux is no accelerator of QEMU's")),
        WantedAccelerator::Auto => {
            let known = known_accelerator(qemu, kernel).map_or_else(
                || {
                    remark("finding out which accelerator works here (up to a minute, once)");
                    choose_accelerator(qemu, kernel, KVM_LIMIT)
                },
                Ok,
            );
            let choice = known?;
            Ok((choice.accelerator, choice.facts()))
        }
    }
}
