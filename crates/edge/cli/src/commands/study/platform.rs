//! `virtbench study platform`, and `network`, which is one of its domains.

use virtbench_report::takeaway;
use virtbench_study::{NetworkOptions, PlatformStudy, has_vhost};

use crate::args::platform_study::{NetworkStudyArgs, PlatformStudyArgs};
use crate::commands::study_runs::study_failure;
use crate::exit::Failure;

/// The other studies, and a score over them.
pub fn platform(args: &PlatformStudyArgs) -> Result<PlatformStudy, Failure> {
    let sentence = |provenance: &_, records: &_| takeaway(provenance, records).headline;
    let plan = args.options().plan().map_err(study_failure)?;
    Ok(PlatformStudy::new(plan, std::env::current_exe()?, sentence))
}

/// Paths natively, to guests and between guests.
pub fn network(args: &NetworkStudyArgs) -> Result<NetworkOptions, Failure> {
    Ok(NetworkOptions { plan: args.plan(has_vhost())?, guests: args.qemu.choice() })
}
