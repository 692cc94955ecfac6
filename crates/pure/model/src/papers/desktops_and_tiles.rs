//! Conclusions on tiles and on desktops: [Platform 2014], sections IV.B and IV.D.

use virtbench_record::{ClaimVerdict, DesktopGroup, DesktopsMeasured, DesktopsPlan, DesktopsRecord, Plan};

use super::claim::{Claim, Judged, PLATFORM, PaperRun, each_run};
use crate::desktops::analyse_desktops;
use crate::tiles_study::analyse_tiles_study;

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "tiles-grow-less",
        paper: PLATFORM,
        place: "section IV.B, Figure 3",
        words: "The score of tiles grows by less than their number.",
        published: "drawn",
        rule: "the sum of scores with the most tiles is below that many times the score of one",
        differs: "Where one tile leaves most of the host idle, several score in proportion until it is used up.",
        study: "study tiles",
        judge: |runs| each_run(runs, tiles_grow_less),
    },
    Claim {
        id: "desktops-slow-slowly",
        paper: PLATFORM,
        place: "section IV.D, Figure 3",
        words: "The 95th percentile of users' operations rises with the number of desktops on a processor.",
        published: "drawn, from 4 to 8 desktops a processor",
        rule: "in both groups it is higher with the most desktops than with the fewest",
        differs: "Few desktops leave the host idle, and chance decides between them.",
        study: "study desktops",
        judge: |runs| each_run(runs, desktops_slow),
    },
    Claim {
        id: "percentile-breaks-first",
        paper: PLATFORM,
        place: "sections III.D and IV.D",
        words: "The 95th percentile breaks its limit before the mean does.",
        published: "group A at 7 desktops a processor, by a slight margin",
        rule: "at the least number of desktops at which a group's percentile is beyond its limit, the group's mean is within it",
        differs: "Operations that fail or never end have no time, and are in no mean.",
        study: "study desktops",
        judge: |runs| each_run(runs, percentile_breaks_first),
    },
];

fn tiles_grow_less(run: &PaperRun<'_>) -> Judged {
    let Plan::Tiles(plan) = &run.provenance.plan else { return None };
    let found = analyse_tiles_study(plan, run.records.tiles());
    let steps = &found.configuration()?.steps;
    let sum = |tiles: u32| Some(steps.iter().find(|step| step.tiles == tiles)?.sum?.mean);
    let most = steps.iter().filter(|step| step.sum.is_some()).map(|step| step.tiles).max()?;
    let (one, all) = (sum(1)?, sum(most)?);
    Some((
        format!("{one:.2} with one tile, {all:.2} with {most}"),
        if most > 1 { ClaimVerdict::of(all < f64::from(most) * one) } else { ClaimVerdict::Open },
    ))
}

fn desktops_slow(run: &PaperRun<'_>) -> Judged {
    let Plan::Desktops(plan) = &run.provenance.plan else { return None };
    let numbers = analyse_desktops(plan, run.records.desktops()).numbers;
    let (first, last) = (numbers.first()?, numbers.last()?);
    let group = |group: DesktopGroup| {
        let of = |at: &virtbench_record::DesktopsNumbers| {
            let found = at.groups.iter().find(|one| one.group == group)?;
            Some(found.percentile?.ns as f64 / 1e9)
        };
        Some((group, of(first)?, of(last)?))
    };
    let groups: Option<Vec<(DesktopGroup, f64, f64)>> = DesktopGroup::ALL.into_iter().map(group).collect();
    let groups = groups?;
    let told =
        groups.iter().map(|(group, few, many)| format!("group {} {few:.3} and {many:.3} s", group.name()));
    Some((
        format!(
            "with {} and {} desktops: {}",
            first.desktops,
            last.desktops,
            told.collect::<Vec<_>>().join(", ")
        ),
        if first.desktops < last.desktops {
            ClaimVerdict::of(groups.iter().all(|(_, few, many)| many > few))
        } else {
            ClaimVerdict::Open
        },
    ))
}

fn percentile_breaks_first(run: &PaperRun<'_>) -> Judged {
    let Plan::Desktops(plan) = &run.provenance.plan else { return None };
    let records = run.records.desktops();
    let numbers = analyse_desktops(plan, records).numbers;
    let most = numbers.last()?.desktops;
    let broken = numbers.iter().find_map(|at| {
        let beyond = |group: &&virtbench_record::DesktopGroupNumbers| {
            group.percentile.is_some_and(|found| found.ns > group.limit_ns)
        };
        Some((at.desktops, at.groups.iter().find(beyond)?))
    });
    let Some((desktops, group)) = broken else {
        return Some((
            format!("no percentile is beyond its limit with up to {most} desktops"),
            ClaimVerdict::Open,
        ));
    };
    let mean = mean_ns(plan, records, desktops, group.group)?;
    let figures = format!(
        "group {} with {desktops} desktops: percentile {:.2} s, mean {:.2} s, limit {:.2} s",
        group.group.name(),
        group.percentile?.ns as f64 / 1e9,
        mean / 1e9,
        group.limit_ns as f64 / 1e9
    );
    Some((figures, ClaimVerdict::of(mean <= group.limit_ns as f64)))
}

/// Mean of what a group's operations took in the steady state with so many desktops, in nanoseconds.
fn mean_ns(
    plan: &DesktopsPlan,
    records: &[DesktopsRecord],
    desktops: u32,
    group: DesktopGroup,
) -> Option<f64> {
    let measured = records.iter().filter(|record| record.key.desktops == desktops);
    let of_group = |one: &&virtbench_record::DesktopDone| {
        let operation = plan.operations.get(one.operation as usize);
        !one.storm && operation.is_some_and(|operation| operation.group == group)
    };
    let times: Vec<f64> = measured
        .filter_map(DesktopsRecord::measured)
        .flat_map(|one: &DesktopsMeasured| one.operations.iter().filter(of_group))
        .filter_map(|one| Some(one.times?.latency_ns as f64))
        .collect();
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
}

#[cfg(test)]
#[path = "desktops_and_tiles_tests.rs"]
mod desktops_and_tiles_tests;
