//! `virtbench study native-vs-vm`

use virtbench_study::{Compare, Estimate, NamedEnvironment, NativeVsVm, Run, RunEnd, StudyError};

use super::{common, grid_options};
use crate::args::NativeVsVmArgs;
use crate::commands::{environments, grid};
use crate::exit::{Failure, Outcome};

/// What stands for this host where no machine is named.
const THIS_HOST: &str = "native:";

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &NativeVsVmArgs) -> Outcome {
    let out = common::folder_path(args.run.folder.out.as_deref(), "native-vs-vm");
    let study = study(args)?;
    let measured = common::run(&out, args.run.folder.resume, |run| study.run(run))?;
    common::show(&out, args.run.folder.json)?;
    measured
}

/// Where both sides are.
pub enum Study {
    /// On one disk of this host, with a VM that is booted for it.
    Here(NativeVsVm),
    /// On machines that are named.
    Named(Compare),
}

impl Study {
    /// What is to be measured, and about how long that takes.
    ///
    /// # Errors
    /// The study is impossible.
    pub fn estimate(&self) -> Result<Estimate, StudyError> {
        match self {
            Self::Here(study) => study.estimate(),
            Self::Named(study) => study.estimate(),
        }
    }

    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        match self {
            Self::Here(study) => study.run(run),
            Self::Named(study) => study.run(run),
        }
    }
}

/// The study that is asked for.
pub fn study(args: &NativeVsVmArgs) -> Result<Study, Failure> {
    let options = grid_options::options(&args.run, &args.guest, || grid::read(&args.grid))?;
    let Some(vm) = &args.vm else {
        return Ok(Study::Here(NativeVsVm { options, adapter: args.adapter.clone() }));
    };
    let native = args.native.as_deref().unwrap_or(THIS_HOST);
    let sides = environments::named(&[native.to_owned(), vm.clone()])?;
    let names = ["native", "vm"].map(str::to_owned);
    let environments =
        names.into_iter().zip(sides).map(|(name, side)| NamedEnvironment { name, ..side }).collect();
    Ok(Study::Named(Compare { options, environments }))
}
