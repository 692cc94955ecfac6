//! `virtbench study native-vs-vm`

use std::path::Path;

use virtbench_lab::{Environment, GuestDisk, Native, find_adapter};
use virtbench_record::RunKind;
use virtbench_report::takeaway;
use virtbench_study::{Course, RunFolder, StudyDisk, measure_points};

use super::watch::Watch;
use super::{common, numbers};
use crate::args::NativeVsVmArgs;
use crate::commands::report;
use crate::exit::{Failure, Kind, Outcome};
use crate::guests::Lab;
use crate::{interrupt, progress};

/// Names of the environments, the reference first.
const ENVIRONMENTS: [&str; 2] = ["native", "vm"];

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &NativeVsVmArgs) -> Outcome {
    let out = common::folder_path(args.run.out.as_deref(), "native-vs-vm");
    let adapter = find_adapter(&args.adapter).map_err(|error| Failure::new(Kind::Usage, error))?;
    let lab = Lab::find(&args.guest, &[adapter])?;
    let grid = common::grid(&args.run, || crate::commands::grid::read(&args.grid))?;
    let environments = ENVIRONMENTS.map(str::to_owned).to_vec();
    let provenance = common::provenance(RunKind::NativeVsVm, &args.run, grid, environments, &out)?;
    let mut folder = common::open_folder(args.run.resume, &out, provenance)?;
    let measured = measure(args, &out, &lab, &mut folder);
    let measured = common::keep_or_abandon(folder, measured)?;
    let (run, files) = report::write(&out, None, None)?;
    let conclusion = numbers::conclusion(&out, &files, &takeaway(&run.provenance, &run.records));
    common::print(args.run.json, &conclusion, || {
        serde_json::to_value(numbers::native_vs_vm(conclusion.clone(), &run.provenance, &run.records))
    })?;
    measured
}

/// Prepares the disk and measures what is missing.
fn measure(args: &NativeVsVmArgs, out: &Path, lab: &Lab, folder: &mut RunFolder) -> Outcome {
    let adapter = find_adapter(&args.adapter).map_err(|error| Failure::new(Kind::Usage, error))?;
    let bar = progress::bar(0, "writing the test disk");
    let target_dir = common::target_dir(&args.run, out);
    let disk = StudyDisk::prepare(target_dir, &common::run_name(out), args.run.size, |written, total| {
        bar.set_length(total);
        bar.set_position(written);
        !interrupt::requested()
    });
    bar.finish_and_clear();
    let disk = disk.map_err(common::disk_failure)?;
    let notes = disk.notes().to_vec();
    folder.amend(|provenance| provenance.add_notes(notes)).map_err(common::folder_failure)?;
    let mut watch = Watch::new(common::steps_bar(&folder.provenance().plan));
    let [native, vm] = ENVIRONMENTS;
    let guest_disk = GuestDisk::new(adapter, disk.path().to_owned());
    let mut environments: [Box<dyn Environment>; 2] =
        [Box::new(Native::new(native, disk.path().to_owned())), lab.vm(vm, guest_disk, None)?];
    let mut show = |event: virtbench_study::Event<'_>| watch.show(&event);
    let measured =
        measure_points(folder, &mut environments, Course::SIDE_BY_SIDE, interrupt::flag(), &mut show);
    watch.finish(folder)?;
    measured.map_err(common::study_failure)
}
