//! `virtbench study network`: paths natively, to guests and between guests.

use virtbench_study::{Estimate, Experiment, NetworkOptions, has_vhost};

use super::common;
use crate::args::network_study::NetworkStudyArgs;
use crate::exit::{Failure, Outcome};

/// Measures what is missing, then writes the report.
pub fn execute(args: &NetworkStudyArgs) -> Outcome {
    common::execute(&options(args)?, &args.folder)
}

/// What is measured, and about how long that takes.
///
/// # Errors
/// It is impossible.
pub fn estimate(args: &NetworkStudyArgs) -> Result<Estimate, Failure> {
    Ok(options(args)?.estimate())
}

fn options(args: &NetworkStudyArgs) -> Result<NetworkOptions, Failure> {
    Ok(NetworkOptions { plan: args.plan(has_vhost())?, guests: args.qemu.choice() })
}
