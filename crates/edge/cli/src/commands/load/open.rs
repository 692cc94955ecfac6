//! Opening, and if need be making, a load's target.

use std::fs;

use virtbench_engine::{Target, TargetError, TargetName, TargetRequest};
use virtbench_record::TargetKind;

use super::job::Job;
use crate::args::ShapeArgs;
use crate::exit::{Failure, Kind};
use crate::{interrupt, progress};

/// Size of a file that is made because nothing else was said, in bytes.
const DEFAULT_SIZE_BYTES: u64 = 1 << 30;

/// What a target is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be loaded.
    Load,
    /// To be checked, which writes nothing.
    Check,
}

/// Opens the target of a job.
pub fn open(args: &ShapeArgs, job: &Job, purpose: Purpose) -> Result<Target, Failure> {
    let target = open_request(TargetRequest {
        path: job.target.clone(),
        size_bytes: job.wanted_bytes(),
        direct: job.load.direct,
        reads: job.load.access.reads(),
        writes: job.load.access.writes() && purpose == Purpose::Load,
        allow_overwrite: args.common.allow_overwrite,
    })?;
    let beside = || {
        let mut name = job.target.file_name()?.to_owned();
        name.push(".virtbench-ledger");
        (target.facts().kind == TargetKind::File).then(|| job.target.with_file_name(name))
    };
    let target = match args.options.ledger.clone().or_else(beside) {
        Some(path) => target.with_ledger(path),
        None => target,
    };
    Ok(match &args.fault {
        Some(faults) => target.with_faults(faults.clone()),
        None => target,
    })
}

/// Opens a target, which is made, with a size nobody chose if need be, where there is none.
pub fn open_request(mut request: TargetRequest) -> Result<Target, Failure> {
    let name = TargetName::parse(&request.path).map_err(|error| Failure::new(Kind::Usage, error))?;
    if name.is_made() && fs::symlink_metadata(&request.path).is_err() {
        request.size_bytes.get_or_insert(DEFAULT_SIZE_BYTES);
    }
    let bar = progress::bar(0, "writing the test file");
    let target = Target::open(&request, |written, total| {
        bar.set_length(total);
        bar.set_position(written);
        !interrupt::requested()
    });
    bar.finish_and_clear();
    target.map_err(|error| match error {
        TargetError::Interrupted(_) => Failure::new(Kind::Interrupted, error),
        error => Failure::new(Kind::Target, error),
    })
}
