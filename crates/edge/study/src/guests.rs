//! What guests need, found from what they are to be made of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_lab::{
    Accelerator, Adapter, BOOT_LIMIT, CarriedFile, Environment, Filesystem, GuestConfig, GuestDisk,
    GuestImage, GuestKernel, KVM_LIMIT, KvmCpu, LabError, Qemu, Vm, appliance_guest_facts,
    choose_accelerator, find_kernel, force_kvm, known_accelerator,
};
use virtbench_record::{AcceleratorFacts, ApplianceFacts, GuestFacts, SetupFacts};

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
}

impl WantedAccelerator {
    /// The accelerator that is named, if one is.
    #[must_use]
    pub fn named(self) -> Option<Accelerator> {
        match self {
            Self::Auto => None,
            Self::Kvm => Some(Accelerator::Kvm(KvmCpu::Host)),
            Self::Tcg => Some(Accelerator::Tcg),
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
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
    /// What emulates them.
    pub qemu: Qemu,
    /// What they boot.
    pub image: GuestImage,
    /// What executes their instructions.
    pub accelerator: Accelerator,
    /// The same, with the reason.
    pub accelerator_facts: AcceleratorFacts,
    /// Release of their kernel.
    pub kernel: String,
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
        let qemu = Qemu::find().map_err(LabError::from)?;
        let kernel = find_kernel(kernel).map_err(LabError::from)?;
        let image = GuestImage::for_appliances(&kernel, &[], screen).map_err(LabError::from)?;
        let (accelerator, accelerator_facts) = accelerator(wanted, &qemu, &kernel, remark)?;
        Ok(Self { qemu, image, accelerator, accelerator_facts, kernel: kernel.release })
    }

    /// What is known of one of them that runs.
    pub(crate) fn facts(&self, appliance: &ApplianceFacts) -> GuestFacts {
        let (accelerator, qemu) = (self.accelerator_facts.clone(), self.qemu.version.clone());
        appliance_guest_facts(appliance, accelerator, qemu, self.kernel.clone())
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
