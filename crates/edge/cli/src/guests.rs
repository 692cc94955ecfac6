//! What guests need, found from the options that say what they are made of.

use std::collections::BTreeMap;

use virtbench_lab::{
    Accelerator, Adapter, CarriedFile, Environment, Filesystem, GuestConfig, GuestDisk, GuestImage,
    GuestKernel, KVM_LIMIT, LabError, Qemu, Vm, choose_accelerator, find_kernel, known_accelerator,
    kvm_refusal,
};
use virtbench_record::{AcceleratorFacts, SetupFacts};

use crate::args::{AcceleratorArg, GuestArgs};
use crate::exit::{Failure, Kind};
use crate::say::tell;

/// What guests need, found before anything is measured.
pub struct Lab {
    qemu: Qemu,
    images: BTreeMap<&'static str, GuestImage>,
    config: GuestConfig,
    accelerator: AcceleratorFacts,
}

impl Lab {
    /// Looks for everything that guests with these adapters need.
    pub fn find(args: &GuestArgs, adapters: &[&'static Adapter]) -> Result<Self, Failure> {
        Self::with_filesystems(args, adapters, &[])
    }

    /// The same for guests that also mount any of these file systems.
    pub fn with_filesystems(
        args: &GuestArgs,
        adapters: &[&'static Adapter],
        filesystems: &[Filesystem],
    ) -> Result<Self, Failure> {
        Self::carrying(args, adapters, filesystems, &[])
    }

    /// The same for guests that have these files as well.
    pub fn carrying(
        args: &GuestArgs,
        adapters: &[&'static Adapter],
        filesystems: &[Filesystem],
        carried: &[CarriedFile],
    ) -> Result<Self, Failure> {
        let missing = |error: LabError| Failure::new(Kind::Environment, error);
        let qemu = Qemu::find().map_err(|error| missing(error.into()))?;
        let kernel = find_kernel(args.kernel.as_deref()).map_err(|error| missing(error.into()))?;
        let mut images = BTreeMap::new();
        for adapter in adapters {
            qemu.check_adapter(adapter).map_err(|error| missing(error.into()))?;
            // Each guest gets the drivers of its own adapter, and no others.
            let image = GuestImage::carrying(&kernel, &[adapter], filesystems, carried);
            let image = image.map_err(|error| missing(error.into()))?;
            images.insert(adapter.name, image);
        }
        let (accelerator, facts) = accelerator(args.accelerator, &qemu, &kernel)?;
        let mut config = GuestConfig::new(accelerator);
        config.vcpus = args.vcpus;
        config.memory_bytes = args.memory;
        Ok(Self { accelerator: facts, qemu, images, config })
    }

    /// Memory of each guest, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.config.memory_bytes
    }

    /// The environment `name`: guests with this disk, as one configuration of several if `setup` is given.
    pub fn vm(
        &self,
        name: &str,
        disk: GuestDisk,
        setup: Option<SetupFacts>,
    ) -> Result<Box<dyn Environment>, Failure> {
        self.pinned_vm(name, disk, setup, Vec::new())
    }

    /// The same, its guests held to these processors of the host unless there are none.
    pub fn pinned_vm(
        &self,
        name: &str,
        disk: GuestDisk,
        setup: Option<SetupFacts>,
        processors: Vec<usize>,
    ) -> Result<Box<dyn Environment>, Failure> {
        let image = self.images.get(disk.adapter.name).cloned().ok_or_else(|| {
            Failure::message(Kind::Other, format!("no image was made for {}", disk.adapter.name))
        })?;
        let (accelerator, config) = (self.accelerator.clone(), self.config.clone());
        let vm =
            Vm::new(name, self.qemu.clone(), image, accelerator, config, disk).with_processors(processors);
        Ok(Box::new(match setup {
            Some(setup) => vm.with_setup(setup),
            None => vm,
        }))
    }
}

/// The accelerator that was asked for, or the one that works.
fn accelerator(
    wanted: AcceleratorArg,
    qemu: &Qemu,
    kernel: &GuestKernel,
) -> Result<(Accelerator, AcceleratorFacts), Failure> {
    let named = |accelerator: Accelerator| {
        let why = "named on the command line".to_owned();
        (accelerator, AcceleratorFacts { name: accelerator.name().to_owned(), why })
    };
    match wanted {
        AcceleratorArg::Kvm => match kvm_refusal(qemu, kernel) {
            Some(why) => Err(Failure::message(
                Kind::Environment,
                format!(
                    "--accelerator kvm: {why}; virtbench doctor --probe looks again, --accelerator tcg emulates"
                ),
            )),
            None => Ok(named(Accelerator::Kvm)),
        },
        AcceleratorArg::Tcg => Ok(named(Accelerator::Tcg)),
        AcceleratorArg::Auto => {
            let known = known_accelerator(qemu, kernel).map_or_else(
                || {
                    tell!("finding out which accelerator works here (up to a minute, once)");
                    choose_accelerator(qemu, kernel, KVM_LIMIT)
                },
                Ok,
            );
            let choice = known.map_err(|error| Failure::new(Kind::Environment, error))?;
            Ok((choice.accelerator, choice.facts()))
        }
    }
}
