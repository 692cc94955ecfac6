//! `virtbench study adapters`

use std::path::Path;

use virtbench_lab::{
    Adapter, Environment, GuestDisk, LoopDevice, check_io_limits, find_qemu_img, find_storage_daemon,
};
use virtbench_record::{Provenance, RunKind, SetupFacts};
use virtbench_report::takeaway;
use virtbench_study::{
    Backing, Contents, Course, Event, FenceError, Grid, Images, ImagesError, RunFolder, Setup,
    check_host_devices, measure_points, setups,
};

use super::watch::Watch;
use super::{common, numbers};
use crate::args::AdaptersArgs;
use crate::commands::{grid, report};
use crate::exit::{Failure, Kind, Outcome};
use crate::guests::Lab;
use crate::say::tell;
use crate::{interrupt, progress};

/// What is compared when nothing is named: three paravirtual or modern ones, and [ESX Adapters 2006]'s LSI Logic.
const DEFAULT_ADAPTERS: [&str; 4] = ["virtio-blk", "virtio-scsi", "nvme", "mptsas1068"];
/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &AdaptersArgs) -> Outcome {
    let out = common::folder_path(args.run.out.as_deref(), "adapters");
    let setups = named(args)?;
    let named = || grid::read_named(&args.grid, Grid::adapters_quick, Grid::adapters_paper);
    let grid = common::grid(&args.run, named)?;
    let names = setups.iter().map(ToString::to_string).collect();
    let provenance = common::provenance(RunKind::Adapters, &args.run, grid, names, &out)?;
    check_tools(&setups)?;
    let mut adapters: Vec<&'static Adapter> = setups.iter().map(|setup| setup.adapter).collect();
    adapters.sort_by_key(|adapter| adapter.name);
    adapters.dedup();
    let lab = Lab::find(&args.guest, &adapters)?;
    let mut folder = common::open_folder(args.run.resume, &out, provenance)?;
    let measured = measure(args, &setups, &out, &lab, &mut folder);
    let measured = common::keep_or_abandon(folder, measured)?;
    let (run, files) = report::write(&out, None, None)?;
    for setup in &run.provenance.setups {
        for one in &setup.not_honoured {
            tell!("{}: {} was to be {} and is {}", setup.name, one.setting, one.asked, one.found);
        }
    }
    let conclusion = numbers::conclusion(&out, &files, &takeaway(&run.provenance, &run.records));
    common::print(args.run.json, &conclusion, || {
        serde_json::to_value(numbers::adapters(conclusion.clone(), &run.provenance, &run.records))
    })?;
    measured
}

fn named(args: &AdaptersArgs) -> Result<Vec<Setup>, Failure> {
    let by_default = DEFAULT_ADAPTERS.map(str::to_owned);
    let adapters =
        if args.adapters.is_empty() && args.setup.is_empty() { &by_default[..] } else { &args.adapters[..] };
    setups(adapters, &args.backings, &args.setup).map_err(|error| Failure::new(Kind::Usage, error))
}

/// Looks for what the configurations need beside QEMU, before anything is made.
pub fn check_tools(setups: &[Setup]) -> Outcome {
    let missing = |error: anyhow::Error| Failure::new(Kind::Environment, error);
    if setups.iter().any(Setup::is_served) {
        find_storage_daemon().map_err(|error| missing(error.into()))?;
    }
    if setups.iter().any(Setup::is_qcow2) {
        find_qemu_img().map_err(|error| missing(error.into()))?;
    }
    if setups.iter().any(|setup| setup.backing == Backing::Loop) {
        LoopDevice::check().map_err(|error| missing(error.into()))?;
    }
    if setups.iter().any(Setup::is_on_host) {
        check_host_devices().map_err(|error| missing(error.into()))?;
    }
    if setups.iter().any(Setup::is_limited_by_host) {
        check_io_limits().map_err(|error| missing(error.into()))?;
    }
    Ok(())
}

/// Prepares the disks and measures what is missing.
fn measure(args: &AdaptersArgs, setups: &[Setup], out: &Path, lab: &Lab, folder: &mut RunFolder) -> Outcome {
    let bar = progress::bar(0, "writing the test disk");
    let (target_dir, stop) = (common::target_dir(&args.run, out), interrupt::flag());
    let images = Images::prepare(
        target_dir,
        &common::run_name(out),
        setups,
        args.run.size,
        Contents::Written,
        stop,
        &mut |what, done, total| {
            bar.set_message(what.to_owned());
            bar.set_length(total);
            bar.set_position(done);
        },
    );
    bar.finish_and_clear();
    let images = images.map_err(images_failure)?;
    let asked: Vec<(GuestDisk, SetupFacts)> = setups
        .iter()
        .zip(images.disks())
        .map(|(setup, (disk, allocated_bytes))| (disk.clone(), setup.facts(*allocated_bytes)))
        .collect();
    let course = Course { quiesce: true, booted: booted(args, lab, setups.len()) };
    folder
        .amend(|provenance| describe(provenance, &images, &asked, course))
        .map_err(common::folder_failure)?;
    let mut environments: Vec<Box<dyn Environment>> = asked
        .into_iter()
        .map(|(disk, facts)| lab.vm(&facts.name.clone(), disk, Some(facts)))
        .collect::<Result<_, _>>()?;
    let mut watch = Watch::new(common::steps_bar(&folder.provenance().plan));
    let mut show = |event: Event<'_>| watch.show(&event);
    let measured = measure_points(folder, &mut environments, course, stop, &mut show);
    watch.finish(folder)?;
    measured.map_err(common::study_failure)
}

/// How many guests stay booted: as many as were asked for, or as fit four fifths of the free memory.
fn booted(args: &AdaptersArgs, lab: &Lab, setups: usize) -> usize {
    if let Some(booted) = args.booted {
        return usize::try_from(booted).unwrap_or(usize::MAX);
    }
    let Some(free_bytes) = virtbench_lab::available_memory_bytes() else { return setups };
    let each = lab.memory_bytes() + common::QEMU_BYTES;
    usize::try_from(free_bytes / 5 * 4 / each).unwrap_or(usize::MAX).max(1)
}

fn describe(provenance: &mut Provenance, images: &Images, asked: &[(GuestDisk, SetupFacts)], course: Course) {
    if provenance.setups.is_empty() {
        provenance.setups = asked.iter().map(|(_, facts)| facts.clone()).collect();
    }
    let mut notes = images.notes().to_vec();
    if course.booted < asked.len() {
        notes.push(format!(
            "only {} of {} guests were kept booted at once: the others were booted in turns",
            course.booted,
            asked.len()
        ));
    }
    provenance.add_notes(notes);
}

pub fn images_failure(error: ImagesError) -> Failure {
    match error {
        ImagesError::Disk(error) => common::disk_failure(error),
        ImagesError::Image(virtbench_lab::ImageMakingError::Stopped { .. }) => {
            Failure::new(Kind::Interrupted, error)
        }
        ImagesError::Loop(_) | ImagesError::Fence(FenceError::HostDevice(_)) => {
            Failure::new(Kind::Environment, error)
        }
        ImagesError::Fence(FenceError::Target(virtbench_engine::TargetError::Interrupted(_))) => {
            Failure::new(Kind::Interrupted, error)
        }
        ImagesError::Fence(_) | ImagesError::Image(_) | ImagesError::NoRoom { .. } => {
            Failure::new(Kind::Target, error)
        }
    }
}
