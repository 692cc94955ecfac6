//! Whether a run has measured enough to answer what its study asks. Which exit code that is, the command says.

use virtbench_record::{
    ApplicationPlan, ApplicationRecord, DesktopNumbers, DesktopsPlan, DesktopsRecord, OltpRecord, OltpStep,
    OltpStudyPlan, Plan, Records, SamplesRecord, SidesPlan, TilesRecord,
};

use crate::desktops::{analyse_desktops, are_usable};

/// Why there is no answer, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// Something that was to be measured has no result.
    Missing(String),
    /// What was measured cannot be judged.
    Undecided(String),
    /// The host has nothing of what was to be measured.
    Unavailable(String),
}

/// Whether a run of a database, an application, desktops, tiles or sides has an answer. Of other studies this says nothing.
///
/// # Errors
/// Why it has none.
pub fn answered(plan: &Plan, records: &Records) -> Result<(), Unanswered> {
    match records {
        Records::Oltp(records) => plan.oltp().map_or(Ok(()), |plan| oltp(plan, records)),
        Records::Application(records) => plan.application().map_or(Ok(()), |plan| application(plan, records)),
        Records::Desktops(records) => plan.desktops().map_or(Ok(()), |plan| desktops(plan, records)),
        Records::Tiles(records) => tiles(records),
        Records::Samples(records) => plan.sides().map_or(Ok(()), |plan| sides(&plan, records)),
        Records::Points(_) | Records::Sets(_) | Records::Trials(_) | Records::Operations(_) => Ok(()),
    }
}

/// Fails with all that is missing.
fn nothing_missing(missing: &[String]) -> Result<(), Unanswered> {
    if missing.is_empty() { Ok(()) } else { Err(Unanswered::Missing(missing.join("\n"))) }
}

/// Each side has to be measured at its saturation.
fn oltp(plan: &OltpStudyPlan, records: &[OltpRecord]) -> Result<(), Unanswered> {
    let missing = plan.sides.iter().filter_map(|side| {
        let of_side = || records.iter().filter(|record| record.key.side == side.name);
        let is_there =
            |record: &OltpRecord| record.key.step == OltpStep::Saturation && record.measured().is_some();
        let why = of_side().rev().find_map(OltpRecord::failure).unwrap_or("it was not tried");
        (!of_side().any(is_there))
            .then(|| format!("nothing was measured of {} at its saturation: {why}", side.name))
    });
    nothing_missing(&missing.collect::<Vec<_>>())
}

/// Each side has to be measured alone and beside its neighbours.
fn application(plan: &ApplicationPlan, records: &[ApplicationRecord]) -> Result<(), Unanswered> {
    let all = plan.sides.iter().flat_map(|side| plan.company().into_iter().map(move |beside| (side, beside)));
    let missing = all.filter_map(|(side, beside)| {
        let of = || {
            records
                .iter()
                .filter(move |record| record.key.side == side.name && record.key.neighbours == beside)
        };
        let why = of().rev().find_map(ApplicationRecord::failure).unwrap_or("it was not tried");
        let company = if beside == 0 { "alone" } else { "beside neighbours" };
        of().all(|record| record.measured().is_none())
            .then(|| format!("nothing was measured of {} {company}: {why}", side.name))
    });
    nothing_missing(&missing.collect::<Vec<_>>())
}

/// A user has to have done something. No desktop may be lost and not too many operations may fail, unless a search has found a smaller
/// number with which users are content: it goes on until something breaks.
fn desktops(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Result<(), Unanswered> {
    let operations =
        |record: &DesktopsRecord| record.measured().map_or(0, |measured| measured.operations.len());
    if records.iter().map(operations).sum::<usize>() == 0 {
        let why = records.iter().rev().find_map(|record| match record.measured() {
            Some(measured) => measured.gone.first().map(|gone| gone.why.as_str()),
            None => record.failure(),
        });
        let why = why.unwrap_or("the time was too short for an operation: measure for longer");
        return Err(Unanswered::Missing(format!("no user has done anything: {why}")));
    }
    let analysis = analyse_desktops(plan, records);
    let has_found = matches!(plan.desktops, DesktopNumbers::Auto { .. }) && analysis.most.is_some();
    let unusable = analysis.numbers.iter().find(|at| !are_usable(plan, at));
    let Some(at) = unusable.filter(|at| !(has_found && Some(at.desktops) > analysis.most)) else {
        return Ok(());
    };
    Err(Unanswered::Missing(match at.lost.first() {
        Some(first) => {
            format!("{} of {} desktops could not be used: {}", at.lost.len(), at.desktops, first.why)
        }
        None => format!("{:.1} % of the operations failed with {} desktops", at.errors * 100.0, at.desktops),
    }))
}

/// A run has to count, and the most tiles that were tried have to be judged: they decide how many fit.
fn tiles(records: &[TilesRecord]) -> Result<(), Unanswered> {
    let counts = |record: &TilesRecord| record.measured().is_some_and(|measured| measured.void.is_empty());
    let most =
        |of: &dyn Fn(&&TilesRecord) -> bool| records.iter().filter(of).map(|record| record.key.tiles).max();
    if records.iter().any(counts) {
        let judged = most(&|record| counts(record) || record.measured().is_none());
        let tried = most(&|_| true);
        return match tried.filter(|_| tried > judged) {
            Some(tiles) => Err(Unanswered::Undecided(format!(
                "no run with {tiles} tiles counts: measure them again on a host that has time for the generators"
            ))),
            None => Ok(()),
        };
    }
    let why = records.iter().rev().find_map(|record| {
        if let Some(measured) = record.measured() {
            return measured.void.first().cloned();
        }
        let why = record.failure()?;
        let member = record.detail().and_then(|detail| detail.member.as_ref().zip(detail.tile));
        let who = member.map(|(member, tile)| format!("{member} of tile {tile}: "));
        Some(format!("{}{why}", who.unwrap_or_default()))
    });
    let why = why.unwrap_or_else(|| "nothing was tried".into());
    Err(Unanswered::Missing(format!("no run of tiles counts: {why}")))
}

/// Each side has to be measured unless the host lacks it, and one of them has to be measured.
fn sides(plan: &SidesPlan, records: &[SamplesRecord]) -> Result<(), Unanswered> {
    let missing = plan.sides.iter().filter_map(|side| {
        let of_side = || records.iter().rev().filter(|record| record.key.side == *side);
        let is_there = |one: &SamplesRecord| one.measured().is_some() || one.unavailable().is_some();
        let why = of_side().find_map(SamplesRecord::failure).unwrap_or("it was not tried");
        (!of_side().any(is_there)).then(|| format!("nothing was measured of {side}: {why}"))
    });
    nothing_missing(&missing.collect::<Vec<_>>())?;
    if records.iter().all(|record| record.measured().is_none()) {
        return Err(Unanswered::Unavailable("this host has nothing of what was to be measured".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use virtbench_record::{NoDetail, OltpFailureDetail, Status};
    use virtbench_samples::{application, oltp, samples};

    use super::*;

    #[test]
    fn a_side_of_a_database_without_its_saturation_is_no_answer() {
        let plan = Plan::Oltp(oltp::plan());
        let measured = oltp::measured(4, [10; 10], 0.0);
        let mut records: Vec<OltpRecord> = ["native", "vm"]
            .map(|side| oltp::record(side, OltpStep::Saturation, 4, 0, measured.clone()))
            .into();
        assert_eq!(answered(&plan, &Records::Oltp(records.clone())), Ok(()));
        records[1].status = Status::Failed { why: "it died".into(), detail: OltpFailureDetail::default() };
        let why = "nothing was measured of vm at its saturation: it died".to_owned();
        assert_eq!(answered(&plan, &Records::Oltp(records)), Err(Unanswered::Missing(why)));
    }

    #[test]
    fn an_application_is_to_be_measured_alone_and_in_company() {
        let plan = Plan::Application(application::plan());
        let mut records = application::records();
        assert_eq!(answered(&plan, &Records::Application(records.clone())), Ok(()));
        records.retain(|record| record.key.side == "native" || record.key.neighbours == 0);
        let why = "nothing was measured of vm beside neighbours: it was not tried".to_owned();
        assert_eq!(answered(&plan, &Records::Application(records)), Err(Unanswered::Missing(why)));
    }

    #[test]
    fn a_side_that_a_host_lacks_is_no_failure_and_no_side_at_all_is_no_success() {
        let plan = Plan::Network(samples::plan());
        let mut records = samples::records();
        assert_eq!(answered(&plan, &Records::Samples(records.clone())), Ok(()));
        for record in &mut records {
            record.status = Status::Unavailable { why: "no network".into() };
        }
        let nothing = answered(&plan, &Records::Samples(records.clone()));
        assert!(matches!(nothing, Err(Unanswered::Unavailable(_))), "{nothing:?}");
        records.iter_mut().filter(|record| record.key.side == "native").for_each(|record| {
            record.status = Status::Failed { why: "no link".into(), detail: NoDetail {} };
        });
        let why = "nothing was measured of native: no link".to_owned();
        assert_eq!(answered(&plan, &Records::Samples(records)), Err(Unanswered::Missing(why)));
    }
}
