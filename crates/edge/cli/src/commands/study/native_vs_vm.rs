//! `virtbench study native-vs-vm`

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use indicatif::ProgressBar;
use serde::Serialize;
use virtbench_lab::{
    Aio, Environment, GuestConfig, GuestDisk, GuestImage, GuestKernel, Native, Qemu, Vm, find_adapter,
    find_kernel, host_facts,
};
use virtbench_record::{AcceleratorFacts, FORMAT, Plan, PointRecord, PointStatus, Provenance, RunKind};
use virtbench_report::{Takeaway, takeaway};
use virtbench_study::native_vs_vm::{Event, StudyError, run};
use virtbench_study::{DiskError, FolderError, Grid, RunFolder, StudyDisk, schedule};
use virtbench_units::format_duration_ns;

use crate::args::{AcceleratorArg, GuestArgs, NativeVsVmArgs};
use crate::commands::report;
use crate::exit::{Failure, Kind, Outcome};
use crate::{interrupt, progress};

/// Names of the environments, the reference first.
const ENVIRONMENTS: [&str; 2] = ["native", "vm"];
/// What a step takes beyond its ramp-up and measuring time, in nanoseconds: for the first estimate.
const STEP_OVERHEAD_NS: u64 = 120_000_000;

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &NativeVsVmArgs) -> Outcome {
    let out = args.out.clone().unwrap_or_else(default_folder);
    let lab = Lab::find(&args.guest)?;
    let provenance = provenance(args, &out)?;
    let opened = if args.resume {
        RunFolder::resume(&out, &provenance)
    } else {
        RunFolder::create(&out, provenance)
    };
    let mut folder = opened.map_err(folder_failure)?;
    let measured = measure(args, &out, &lab, &mut folder);
    drop(folder);
    let (run, files) = report::write(&out, None, None)?;
    let conclusion = takeaway(&run.provenance, &run.records);
    print(args.json, &out, &files, &run.records, &conclusion)?;
    measured
}

/// What guests need, found before anything is written.
struct Lab {
    qemu: Qemu,
    image: GuestImage,
    config: GuestConfig,
    accelerator: AcceleratorFacts,
    adapter: &'static virtbench_lab::Adapter,
}

impl Lab {
    fn find(args: &GuestArgs) -> Result<Self, Failure> {
        let missing = |error: virtbench_lab::LabError| Failure::new(Kind::Environment, error);
        let adapter = find_adapter(&args.adapter).map_err(|error| Failure::new(Kind::Usage, error))?;
        let qemu = Qemu::find().map_err(|error| missing(error.into()))?;
        let kernel = find_kernel(args.kernel.as_deref()).map_err(|error| missing(error.into()))?;
        let image = GuestImage::new(&kernel, &[adapter]).map_err(|error| missing(error.into()))?;
        let choice = choose(args.accelerator, &qemu, &kernel)?;
        let mut config = GuestConfig::new(choice.accelerator);
        config.vcpus = args.vcpus;
        config.memory_bytes = args.memory;
        Ok(Self { accelerator: choice.facts(), qemu, image, config, adapter })
    }

    fn environments(&self, disk: &Path) -> Vec<Box<dyn Environment>> {
        let guest_disk = GuestDisk { adapter: self.adapter, path: disk.to_owned(), aio: Aio::IoUring };
        let [native, vm] = ENVIRONMENTS;
        vec![
            Box::new(Native::new(native, disk.to_owned())),
            Box::new(Vm::new(
                vm,
                self.qemu.clone(),
                self.image.clone(),
                self.accelerator.clone(),
                self.config.clone(),
                guest_disk,
            )),
        ]
    }
}
