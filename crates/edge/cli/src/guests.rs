//! What guests need, found from the options that say what they are made of.

use std::path::Path;

use virtbench_lab::{
    Accelerator, Adapter, Environment, GuestConfig, GuestDisk, GuestImage, GuestKernel, KVM_LIMIT, LabError,
    Qemu, Vm, choose_accelerator, find_adapter, find_kernel, known_accelerator,
};
use virtbench_record::AcceleratorFacts;

use crate::args::{AcceleratorArg, GuestArgs};
use crate::exit::{Failure, Kind};

/// What guests need, found before anything is measured.
pub struct Lab {
    qemu: Qemu,
    image: GuestImage,
    config: GuestConfig,
    accelerator: AcceleratorFacts,
    adapter: &'static Adapter,
}

impl Lab {
    /// Looks for everything a guest needs.
    pub fn find(args: &GuestArgs) -> Result<Self, Failure> {
        let missing = |error: LabError| Failure::new(Kind::Environment, error);
        let adapter = find_adapter(&args.adapter).map_err(|error| Failure::new(Kind::Usage, error))?;
        let qemu = Qemu::find().map_err(|error| missing(error.into()))?;
        let kernel = find_kernel(args.kernel.as_deref()).map_err(|error| missing(error.into()))?;
        let image = GuestImage::new(&kernel, &[adapter]).map_err(|error| missing(error.into()))?;
        let (accelerator, facts) = accelerator(args.accelerator, &qemu, &kernel)?;
        let mut config = GuestConfig::new(accelerator);
        config.vcpus = args.vcpus;
        config.memory_bytes = args.memory;
        Ok(Self { accelerator: facts, qemu, image, config, adapter })
    }

    /// The environment `name`: guests whose disk is `path`.
    pub fn vm(&self, name: &str, path: &Path) -> Box<dyn Environment> {
        let disk = GuestDisk::new(self.adapter, path.to_owned());
        Box::new(Vm::new(
            name,
            self.qemu.clone(),
            self.image.clone(),
            self.accelerator.clone(),
            self.config.clone(),
            disk,
        ))
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
        AcceleratorArg::Kvm => Ok(named(Accelerator::Kvm)),
        AcceleratorArg::Tcg => Ok(named(Accelerator::Tcg)),
        AcceleratorArg::Auto => {
            let known = known_accelerator(qemu, kernel).map_or_else(
                || {
                    eprintln!("finding out which accelerator works here (up to a minute, once)");
                    choose_accelerator(qemu, kernel, KVM_LIMIT)
                },
                Ok,
            );
            let choice = known.map_err(|error| Failure::new(Kind::Environment, error))?;
            Ok((choice.accelerator, choice.facts()))
        }
    }
}
