//! Guests that loads and workloads run in: QEMU's, or User Mode Linux's.

use std::collections::BTreeMap;

use virtbench_lab::{
    Adapter, BOOT_LIMIT, CarriedFile, Environment, Filesystem, GuestConfig, GuestDisk, GuestImage, LabError,
    Qemu, Uml, UmlConfig, UmlDisk, UmlDiskKind, UmlImage, UmlKernel, Vm, find_kernel, served_adapter,
    uml_processor,
};
use virtbench_record::{AcceleratorFacts, SetupFacts};

use super::options::{
    GuestOptions, GuestsError, NO_KERNEL, UML_DISK, WantedAccelerator, accelerator, may_take_uml,
    uml_in_place_of_emulation,
};
use crate::setup::Setup;

/// What guests also have beside their adapters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// File systems that they can mount.
    pub filesystems: &'a [Filesystem],
    /// Files that are carried into them.
    pub carried: &'a [CarriedFile],
}

/// The name of guests where there is one kind.
pub(crate) const ONLY_GUEST: &str = "vm";

/// What guests need, found before anything is measured.
pub struct Guests {
    platform: Platform,
}

enum Platform {
    Qemu {
        qemu: Qemu,
        images: BTreeMap<&'static str, GuestImage>,
        config: Box<GuestConfig>,
        accelerator: AcceleratorFacts,
    },
    Uml {
        image: UmlImage,
        /// Memory of each guest, in bytes.
        memory_bytes: u64,
        /// How they were chosen.
        why: String,
    },
}

impl Guests {
    /// Looks for everything that guests with these adapters need. Where no accelerator is named and there is no KVM, they are
    /// User Mode Linux's if those can have what is asked for. `remark` is told what takes long.
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
            return Self::of_uml(options, adapters, extras);
        }
        let is_free = options.accelerator == WantedAccelerator::Auto && no_adapters(adapters).is_none();
        let instead = is_free
            .then(|| {
                uml_in_place_of_emulation(
                    options.kernel.as_deref(),
                    options.vcpus,
                    extras.filesystems,
                    remark,
                )
            })
            .flatten();
        match instead {
            Some((kernel, why)) => Self::with_kernel(&kernel, why, options, extras),
            None => Self::of_qemu(options, adapters, extras, remark),
        }
    }

    /// Each platform that says something here, with its name: where none is named and there is no KVM, User Mode Linux and
    /// emulation, which say different things, if guests of both boot and can have what is asked for. Else one, `vm`.
    ///
    /// # Errors
    /// As for [`find`](Self::find).
    pub fn platforms(
        options: &GuestOptions,
        adapters: &[&'static Adapter],
        extras: Extras<'_>,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Vec<(&'static str, Self)>, GuestsError> {
        let found = Self::find(options, adapters, extras, remark)?;
        if options.accelerator != WantedAccelerator::Auto || !found.are_of_uml() {
            return Ok(vec![(ONLY_GUEST, found)]);
        }
        match Self::of_qemu(options, adapters, extras, remark) {
            Ok(emulated) => Ok(vec![("uml", found), ("tcg", emulated)]),
            Err(error) => {
                remark(&format!("no guest of QEMU's beside: {error}"));
                Ok(vec![(ONLY_GUEST, found)])
            }
        }
    }

    /// How many platforms [`platforms`](Self::platforms) will find, as far as can be said without booting anything.
    #[must_use]
    pub fn platforms_expected(options: &GuestOptions) -> usize {
        let is_free = options.accelerator == WantedAccelerator::Auto;
        1 + usize::from(is_free && may_take_uml(options.kernel.as_deref(), options.vcpus))
    }

    /// The same for guests of QEMU's alone.
    ///
    /// # Errors
    /// As for [`find`](Self::find), or User Mode Linux was asked for.
    pub fn of_qemu(
        options: &GuestOptions,
        adapters: &[&'static Adapter],
        extras: Extras<'_>,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Self, GuestsError> {
        if options.accelerator == WantedAccelerator::Uml {
            return Err(GuestsError::no_uml(
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
        Ok(Self { platform: Platform::Qemu { qemu, images, config: Box::new(config), accelerator: facts } })
    }

    /// The same for guests of User Mode Linux alone.
    ///
    /// # Errors
    /// Its kernel is missing, or its guests cannot have what is asked for.
    pub fn of_uml(
        options: &GuestOptions,
        adapters: &[&'static Adapter],
        extras: Extras<'_>,
    ) -> Result<Self, GuestsError> {
        if options.kernel.is_some() {
            return Err(GuestsError::no_uml(NO_KERNEL));
        }
        GuestsError::check_uml_processors(options.vcpus)?;
        if let Some(why) = no_adapters(adapters) {
            return Err(GuestsError::NoUml(why.into()));
        }
        let kernel = UmlKernel::find_for(extras.filesystems).map_err(LabError::from)?;
        Self::with_kernel(&kernel, "named on the command line".into(), options, extras)
    }

    fn with_kernel(
        kernel: &UmlKernel,
        why: String,
        options: &GuestOptions,
        extras: Extras<'_>,
    ) -> Result<Self, GuestsError> {
        let image = UmlImage::carrying(kernel, UML_DISK, extras.filesystems, extras.carried);
        let (image, memory_bytes) = (image.map_err(LabError::from)?, options.memory_bytes);
        Ok(Self { platform: Platform::Uml { image, memory_bytes, why } })
    }

    /// Whether they are User Mode Linux's.
    #[must_use]
    pub fn are_of_uml(&self) -> bool {
        matches!(self.platform, Platform::Uml { .. })
    }

    /// Whether their instructions are translated by QEMU.
    #[must_use]
    pub fn are_emulated(&self) -> bool {
        matches!(&self.platform, Platform::Qemu { config, .. } if config.accelerator == virtbench_lab::Accelerator::Tcg)
    }

    /// Memory of each guest, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        match &self.platform {
            Platform::Qemu { config, .. } => config.memory_bytes,
            Platform::Uml { memory_bytes, .. } => *memory_bytes,
        }
    }

    /// The configuration that these guests have where `asked` is asked for: a virtio disk of User Mode Linux is a server's, over
    /// vhost-user.
    #[must_use]
    pub fn setup(&self, asked: &Setup) -> Setup {
        match self.platform {
            Platform::Qemu { .. } => asked.clone(),
            Platform::Uml { .. } => Setup { adapter: served_adapter(), ..asked.clone() },
        }
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
        match &self.platform {
            Platform::Qemu { qemu, images, config, accelerator } => {
                let adapter = disk.adapter.name;
                let image = images.get(adapter).cloned().ok_or(GuestsError::NoImage(adapter))?;
                let config = GuestConfig::clone(config);
                let vm = Vm::new(name, qemu.clone(), image, accelerator.clone(), config, disk)
                    .with_processors(processors);
                Ok(Box::new(match setup {
                    Some(setup) => vm.with_setup(setup),
                    None => vm,
                }))
            }
            Platform::Uml { image, memory_bytes, why } => {
                let config = UmlConfig {
                    memory_bytes: *memory_bytes,
                    disks: vec![UmlDisk::of(UML_DISK, disk)],
                    boot_limit: BOOT_LIMIT,
                    ..UmlConfig::new(uml_processor(&processors))
                };
                Ok(Box::new(Uml::new(name, image.clone(), why, config)))
            }
        }
    }
}

/// Why guests of User Mode Linux cannot have one of these adapters; nothing if they can.
fn no_adapters(adapters: &[&'static Adapter]) -> Option<String> {
    let other = adapters.iter().find(|adapter| !UmlDiskKind::stands_for(adapter))?;
    Some(format!("its guests have no {}: choose virtio-blk", other.name))
}
