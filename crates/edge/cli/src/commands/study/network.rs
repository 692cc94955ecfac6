//! `virtbench study network`: paths natively, to guests and between guests.

use virtbench_study::{Estimate, Event, NetworkStudy, StudyError, has_vhost};

use super::common;
use crate::args::network_study::NetworkStudyArgs;
use crate::exit::{Failure, Outcome};

/// Measures what is missing, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &NetworkStudyArgs) -> Outcome {
    let out = std::path::absolute(common::folder_path(args.folder.out.as_deref(), "network"))?;
    let plan = args.plan(has_vhost())?;
    let measured = common::run(&out, args.folder.resume, |run| {
        let remark = &mut |what: &str| run.observer.event(Event::Remark(what));
        let find = || args.qemu.appliance_guests_of_study((plan.vcpus, false), remark);
        let needs_guests = plan.paths.iter().any(|path| path.has_guest());
        let guests = needs_guests.then(find).transpose().map_err(StudyError::from)?;
        NetworkStudy::new(plan.clone(), guests).run(run)
    })?;
    let run = common::show(&out, args.folder.json)?;
    measured?;
    common::check_answer(&run)
}

/// What is measured, and about how long that takes.
///
/// # Errors
/// It is impossible.
pub fn estimate(args: &NetworkStudyArgs) -> Result<Estimate, Failure> {
    Ok(NetworkStudy::estimate(&args.plan(has_vhost())?))
}
