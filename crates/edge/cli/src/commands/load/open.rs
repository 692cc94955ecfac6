//! Opening, and if need be making, a load's target.

use std::fs;

use virtbench_engine::{Target, TargetError, TargetName, TargetRequest};
use virtbench_record::TargetKind;
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

use super::job::Job;
use crate::args::ShapeArgs;
use crate::exit::{Failure, Kind};
use crate::{interrupt, progress};

/// Size of a file that is made because nothing else was said, in bytes.
pub const DEFAULT_SIZE_BYTES: u64 = 1 << 30;

/// What a target is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be loaded.
    Load,
    /// To be checked, which writes nothing.
    Check,
}

impl Job {
    /// Opens the target; what depends on it becomes part of the load.
    pub fn open(&self, args: &ShapeArgs, purpose: Purpose) -> Result<(Target, LoadSpec), Failure> {
        let target = open_for(args, &[self], purpose)?;
        let spec = self.on(&target);
        Ok((target, spec))
    }
}

/// Opens the target that these jobs share, of which there is one at least.
pub fn open_for(args: &ShapeArgs, jobs: &[&Job], purpose: Purpose) -> Result<Target, Failure> {
    let Some(job) = jobs.first() else {
        return Err(Failure::message(Kind::Other, "no job to open a target for"));
    };
    if let Some(job) = jobs.iter().find(|job| job.schedule.must_exist && !job.target.exists()) {
        let message =
            format!("{} does not exist, and its job says allow_file_create=0", job.target.display());
        return Err(Failure::message(Kind::Target, message));
    }
    let request = TargetRequest {
        path: job.target.clone(),
        size_bytes: jobs.iter().filter_map(|job| job.made_bytes()).max(),
        direct: job.load.direct,
        reads: jobs.iter().any(|job| job.load.access.reads()),
        writes: jobs.iter().any(|job| job.load.access.writes()) && purpose == Purpose::Load,
        allow_overwrite: args.common.allow_overwrite,
    };
    let target = open_request(request, args.common.grow && purpose == Purpose::Load)?;
    let beside = || {
        let mut name = job.target.file_name()?.to_owned();
        name.push(".virtbench-ledger");
        (target.facts().kind == TargetKind::File).then(|| job.target.with_file_name(name))
    };
    let target = match args.options.ledger.clone().or_else(beside) {
        Some(path) => target.with_ledger(path),
        None => target,
    };
    if job.schedule.drop_cache && !target.facts().direct {
        target.drop_cache()?;
    }
    Ok(match &args.fault {
        Some(faults) => target.with_faults(faults.clone()),
        None => target,
    })
}

/// Opens a target, which is made, with a size nobody chose if need be, where there is none. One that is
/// smaller than asked for is made larger only with `grow`.
pub fn open_request(mut request: TargetRequest, grow: bool) -> Result<Target, Failure> {
    let name = TargetName::parse(&request.path).map_err(|error| Failure::new(Kind::Usage, error))?;
    if name.is_made() && fs::symlink_metadata(&request.path).is_err() {
        request.size_bytes.get_or_insert(DEFAULT_SIZE_BYTES);
    } else if name.is_made() && !grow {
        refuse_to_grow(&request)?;
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

/// Refuses a file that would have to be made larger: nobody expects the disk to fill, and the file's
/// contents to change, for a size that was meant for another target.
fn refuse_to_grow(TargetRequest { path, size_bytes, .. }: &TargetRequest) -> Result<(), Failure> {
    let has_bytes = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len());
    match (has_bytes, size_bytes) {
        (Some(has_bytes), Some(wanted_bytes)) if has_bytes < *wanted_bytes => Err(Failure::message(
            Kind::Target,
            format!(
                "{} has {}, less than the {} asked for: give --size {has_bytes} to use it as it is, --grow to have \
                 it made larger, or name another target",
                path.display(),
                format_bytes(has_bytes),
                format_bytes(*wanted_bytes)
            ),
        )),
        _ => Ok(()),
    }
}
