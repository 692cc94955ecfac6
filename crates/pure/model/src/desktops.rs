//! Users of more and more desktops at once: how many to try next, and what it comes to.

use std::collections::BTreeMap;

use statrs::distribution::{Binomial, DiscreteCDF};
use virtbench_record::{
    Conclusion, DesktopAgreement, DesktopDone, DesktopGone, DesktopGroup, DesktopGroupNumbers,
    DesktopNumbers, DesktopOperation, DesktopOperationNumbers, DesktopPercentile, DesktopTimes, DesktopVideo,
    DesktopVideoNumbers, DesktopsMeasured, DesktopsNumbers, DesktopsPlan, DesktopsRecord, DesktopsSummary,
};

use crate::host_load::busy_host;
use crate::interval::CONFIDENCE;
use crate::saturation::{Bracket, Course, Numbers};

/// What a study of desktops comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct DesktopsAnalysis {
    /// The most desktops with which users are content, if there are any: with all smaller numbers they are content too.
    pub most: Option<u32>,
    /// The same where operations end with the last change of the picture.
    pub most_by_last_change: Option<u32>,
    /// The operation that broke first at the least number with which they are not, if one did: none where desktops were lost.
    pub broke_first: Option<DesktopOperation>,
    /// Every number that was measured, ascending.
    pub numbers: Vec<DesktopsNumbers>,
    /// Numbers of which nothing was measured, and why.
    pub failures: Vec<(u32, String)>,
    /// What other programs took of the host, in words, where it was much.
    pub others: Option<String>,
}

/// Quality where the limit lies within an interval.
pub(crate) const OPEN: &str = "open";

/// Quality where nobody got beyond the application with which all begin at once.
const UNKNOWN: &str = "unknown";

/// Quality where users are not content.
pub(crate) const FAILED: &str = "failed";

const PASSED: &str = "passed";

/// Puts repetitions together and judges every number of desktops.
#[must_use]
pub fn analyse_desktops(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> DesktopsAnalysis {
    let mut by_number: BTreeMap<u32, Vec<&DesktopsMeasured>> = BTreeMap::new();
    let mut failures = Vec::new();
    for record in records {
        match record.measured() {
            Some(measured) => by_number.entry(record.key.desktops).or_default().push(measured),
            None => {
                let why = record.failure().map(str::to_owned);
                failures.extend(why.map(|why| (record.key.desktops, why)));
            }
        }
    }
    let numbers: Vec<DesktopsNumbers> =
        by_number.iter().map(|(desktops, measured)| judge(plan, *desktops, measured)).collect();
    let most = numbers.iter().take_while(|at| is_content(plan, at)).last().map(|at| at.desktops);
    let most_by_last_change =
        numbers.iter().take_while(|at| is_content_by_picture(plan, at)).last().map(|at| at.desktops);
    let first_broken = numbers.iter().find(|at| !is_content(plan, at));
    let broke_first = first_broken.and_then(|at| worst(plan, at));
    let hosts = records.iter().filter_map(DesktopsRecord::measured).map(|measured| &measured.host);
    let others = busy_host(hosts).map(|busy| busy.words());
    DesktopsAnalysis { most, most_by_last_change, broke_first, numbers, failures, others }
}

/// Whether users are content by what was measured, an open question counting by its figure.
pub(crate) fn is_content(plan: &DesktopsPlan, at: &DesktopsNumbers) -> bool {
    at.quality != FAILED && at.quality != UNKNOWN && are_usable(plan, at)
}

/// Whether every desktop could be used, and few operations failed.
#[must_use]
pub fn are_usable(plan: &DesktopsPlan, at: &DesktopsNumbers) -> bool {
    at.lost.is_empty() && at.errors <= plan.errors
}

/// The same by the last change of the picture. What changes nothing in it, such as an archiver, is not in there.
fn is_content_by_picture(plan: &DesktopsPlan, at: &DesktopsNumbers) -> bool {
    let known = || at.groups.iter().filter_map(|group| Some((group.limit_ns, group.last_change?)));
    known().count() > 0 && known().all(|(limit, found)| found.ns <= limit) && are_usable(plan, at)
}

fn judge(plan: &DesktopsPlan, desktops: u32, measured: &[&DesktopsMeasured]) -> DesktopsNumbers {
    let done: Vec<&DesktopDone> = measured.iter().flat_map(|one| &one.operations).collect();
    let own = |group: DesktopGroup, storm: bool| {
        let belongs = move |one: &&&DesktopDone| {
            let operation = plan.operations.get(one.operation as usize);
            one.storm == storm && operation.is_some_and(|operation| operation.group == group)
        };
        done.iter().filter(belongs)
    };
    let of = |group: DesktopGroup, storm: bool, time: fn(DesktopTimes) -> Option<u64>| {
        let times = own(group, storm).filter_map(|one| time(one.times?));
        percentile(&times.collect::<Vec<_>>(), plan.share)
    };
    // What failed took longer than any limit.
    let judged = DesktopGroup::ALL.map(|group| {
        let times = own(group, false).map(|one| one.times.map_or(u64::MAX, |times| times.latency_ns));
        (plan.limit_ns(group), percentile(&times.collect::<Vec<_>>(), plan.share))
    });
    let latency: fn(DesktopTimes) -> Option<u64> = |times| Some(times.latency_ns);
    let groups: Vec<DesktopGroupNumbers> = DesktopGroup::ALL
        .into_iter()
        .map(|group| DesktopGroupNumbers {
            group,
            limit_ns: plan.limit_ns(group),
            percentile: of(group, false, latency),
            last_change: of(group, false, |times| times.last_change_ns),
            storm: of(group, true, latency),
        })
        .collect();
    let failed = done.iter().filter(|one| one.times.is_none()).count();
    let gone: usize = measured.iter().map(|one| one.gone.len()).sum();
    let errors = (failed + gone) as f64 / (done.len() + gone).max(1) as f64;
    let lost: Vec<DesktopGone> = measured.iter().flat_map(|one| lost(desktops, one)).collect();
    let mut error_kinds = BTreeMap::new();
    for why in done.iter().filter_map(|one| one.failed.clone()) {
        *error_kinds.entry(why).or_insert(0) += 1;
    }
    // Those of existing desktops are not known.
    let processors =
        measured.first().filter(|_| !plan.are_existing()).map_or(1, |one| one.host.processors.max(1));
    let echoes: Vec<u64> = measured.iter().filter_map(|one| Some(one.echo?.median_ns)).collect();
    let busy: f64 =
        measured.iter().map(|one| one.host.cpu_percent / f64::from(one.host.processors.max(1))).sum();
    DesktopsNumbers {
        desktops,
        per_processor: f64::from(desktops) / f64::from(processors),
        quality: quality(&judged, !lost.is_empty() || errors > plan.errors).to_owned(),
        agreement: agreement(plan, &done),
        operations: operations(plan, &done),
        groups,
        errors,
        outside: done.iter().filter(|one| is_outside(one)).count() as u64,
        lost,
        error_kinds,
        between_users_percent: between_users(plan, measured),
        echo_median_ns: percentile(&echoes, 0.5).map(|found| found.ns),
        host_busy_percent: (!measured.is_empty()).then(|| busy / measured.len() as f64),
    }
}

/// From each group's limit and percentile.
fn quality(groups: &[(u64, Option<DesktopPercentile>)], is_unusable: bool) -> &'static str {
    let known = || groups.iter().filter_map(|(limit, found)| Some((*limit, (*found)?)));
    if is_unusable || known().any(|(limit, found)| found.ns > limit) {
        return FAILED;
    }
    if known().count() == 0 {
        return UNKNOWN;
    }
    let is_clear = known().all(|(limit, found)| found.high_ns.is_some_and(|high| high <= limit));
    if is_clear { PASSED } else { OPEN }
}

fn operations(plan: &DesktopsPlan, done: &[&DesktopDone]) -> Vec<DesktopOperationNumbers> {
    let of = |(place, operation): (usize, &DesktopOperation)| {
        let own: Vec<&&DesktopDone> = done.iter().filter(|one| one.operation as usize == place).collect();
        let steady = || own.iter().filter(|one| !one.storm).filter_map(|one| one.times);
        let latencies: Vec<u64> = steady().map(|times| times.latency_ns).collect();
        let changes: Vec<u64> = steady().filter_map(|times| times.last_change_ns).collect();
        let inside = steady().filter(|times| times.around_ns.is_some()).filter_map(|times| times.inside_ns);
        let inside: Vec<u64> = inside.collect();
        DesktopOperationNumbers {
            operation: operation.clone(),
            median_ns: percentile(&latencies, 0.5).map(|found| found.ns),
            percentile: percentile(&latencies, plan.share),
            last_change_median_ns: percentile(&changes, 0.5).map(|found| found.ns),
            inside_median_ns: percentile(&inside, 0.5).map(|found| found.ns),
            failed: own.iter().filter(|one| one.times.is_none()).count() as u64,
            video: videos(&steady().filter_map(|times| times.video).collect::<Vec<_>>()),
        }
    };
    plan.operations.iter().enumerate().map(of).collect()
}

fn is_outside(done: &DesktopDone) -> bool {
    let times = done.times.and_then(|times| times.inside_ns.zip(times.around_ns));
    times.is_some_and(|(inside, around)| inside > around)
}

/// Where nobody is inside, an operation's end is the last change: there is nothing to compare.
fn agreement(plan: &DesktopsPlan, done: &[&DesktopDone]) -> Option<DesktopAgreement> {
    let steady = done.iter().filter(|one| !one.storm).filter_map(|one| one.times);
    let both = steady.filter(|times| times.inside_ns.is_some()).filter_map(|times| {
        let last_change_ns = times.last_change_ns?;
        Some(last_change_ns.abs_diff(times.latency_ns))
    });
    let apart: Vec<u64> = both.collect();
    Some(DesktopAgreement {
        operations: apart.len() as u64,
        median_ns: percentile(&apart, 0.5)?.ns,
        percentile_ns: percentile(&apart, plan.share)?.ns,
    })
}

/// How far users differ, who all do the same: over the medians of what each operation took beside its limit.
fn between_users(plan: &DesktopsPlan, measured: &[&DesktopsMeasured]) -> Option<f64> {
    let mut shares: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
    for (repetition, one) in measured.iter().enumerate() {
        for done in one.operations.iter().filter(|done| !done.storm) {
            let operation = plan.operations.get(done.operation as usize)?;
            if let Some(times) = done.times {
                let share = times.latency_ns as f64 / plan.limit_ns(operation.group) as f64;
                shares.entry((repetition, done.user)).or_default().push(share);
            }
        }
    }
    let medians: Vec<f64> = shares.into_values().filter_map(median).collect();
    if medians.len() < 2 {
        return None;
    }
    let mean = medians.iter().sum::<f64>() / medians.len() as f64;
    let variance = medians.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (medians.len() - 1) as f64;
    (mean > 0.0).then(|| variance.sqrt() / mean * 100.0)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The operation whose percentile is farthest beyond its limit, or that failed most often where none is. None of which nothing is
/// known, or where the desktops that were lost are the reason.
fn worst(plan: &DesktopsPlan, at: &DesktopsNumbers) -> Option<DesktopOperation> {
    let beyond = |one: &DesktopOperationNumbers| {
        one.percentile.map_or(0.0, |found| found.ns as f64 / plan.limit_ns(one.operation.group) as f64)
    };
    let slowest = at.operations.iter().max_by(|a, b| beyond(a).total_cmp(&beyond(b)))?;
    let most_failed = at.operations.iter().max_by_key(|one| one.failed)?;
    let found = if beyond(slowest) > 1.0 {
        slowest
    } else if at.quality != UNKNOWN && at.lost.is_empty() && most_failed.failed > 0 {
        most_failed
    } else {
        return None;
    };
    Some(found.operation.clone())
}

/// The next number of desktops and which repetition it is; nothing once everything is there. Of a search: doubled until users are
/// no longer content, then halved in between until two neighbours are known.
#[must_use]
pub fn next_desktops(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<(u32, u32)> {
    course(plan, records, &|course| course.next())
}

/// How many measurements are left at most. `None` for a search that has not gone too far yet.
#[must_use]
pub fn desktops_left(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<u64> {
    course(plan, records, &|course| course.left())
}

fn course<T>(plan: &DesktopsPlan, records: &[DesktopsRecord], ask: &dyn Fn(&Course<'_>) -> T) -> T {
    let is_there = |number: u32, repetition: u32| {
        records.iter().any(|record| record.key.desktops == number && record.key.repetition == repetition)
    };
    let bracket = || bracket(plan, records);
    let numbers = match &plan.desktops {
        DesktopNumbers::Given(numbers) => Numbers::Given(numbers),
        DesktopNumbers::Auto { most } => {
            let tried = records.iter().map(|record| record.key.desktops).collect();
            Numbers::Search { most: *most, tried, bracket: &bracket }
        }
    };
    ask(&Course { numbers, repetitions: plan.repetitions, is_there: &is_there })
}

/// Users are content or are not; what did not stand is too many as well.
fn bracket(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Bracket {
    let analysis = analyse_desktops(plan, records);
    let tried = || analysis.numbers.iter();
    let fits = tried().take_while(|at| is_content(plan, at)).map(|at| at.desktops).last().unwrap_or(0);
    let broken = tried().filter(|at| !is_content(plan, at)).map(|at| at.desktops);
    let failed = analysis.failures.iter().map(|(desktops, _)| *desktops);
    Bracket { fits, too_many: broken.chain(failed).min() }
}

/// So many operations at the end of a user's day that all failed are no mishap: the desktop was lost before them.
const FAILED_AT_THE_END: usize = 2;

/// Each desktop of one repetition that was of no use at its end, or of none at all, and why.
fn lost(desktops: u32, measured: &DesktopsMeasured) -> Vec<DesktopGone> {
    let mut days: BTreeMap<u32, Vec<&DesktopDone>> = BTreeMap::new();
    for done in &measured.operations {
        days.entry(done.user).or_default().push(done);
    }
    let succeeded = |done: &DesktopDone| done.times.is_some();
    let others_work = measured.operations.iter().any(succeeded);
    let why = |user: u32| {
        if let Some(gone) = measured.gone.iter().find(|gone| gone.user == user) {
            return Some(gone.why.clone());
        }
        let Some(day) = days.get(&user) else {
            return others_work.then(|| "its user did nothing, while others worked".to_owned());
        };
        let failed = day.iter().rev().take_while(|done| !succeeded(done)).count();
        let last = day.last().and_then(|done| done.failed.as_deref()).unwrap_or("operations failed");
        if failed == day.len() {
            Some(format!("no operation succeeded: {last}"))
        } else if failed >= FAILED_AT_THE_END {
            Some(format!("nothing succeeded any more, the last {failed} operations failed: {last}"))
        } else {
            None
        }
    };
    (0..desktops).filter_map(|user| Some(DesktopGone { user, why: why(user)? })).collect()
}

/// The percentile `share` of samples; none of none. The interval's ends are samples between which it lies with the usual
/// confidence, if samples are independent; the upper end is unknown where samples are too few.
pub(crate) fn percentile(samples: &[u64], share: f64) -> Option<DesktopPercentile> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let count = sorted.len();
    let at = |rank: usize| sorted.get(rank.clamp(1, count.max(1)) - 1).copied();
    let rank = (0..=count).find(|rank| *rank as f64 >= share * count as f64 - 1e-9).unwrap_or(count);
    let below = Binomial::new(share, count as u64).ok()?;
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let low = (1..=count).take_while(|rank| below.cdf(*rank as u64 - 1) <= tail).last().unwrap_or(1);
    let high = (1..=count).find(|rank| below.cdf(*rank as u64 - 1) >= 1.0 - tail);
    Some(DesktopPercentile {
        operations: count as u64,
        ns: at(rank)?,
        low_ns: at(low)?,
        high_ns: high.and_then(at),
    })
}

/// The numbers of an analysis that comes to this conclusion.
#[must_use]
pub fn summarise_desktops(conclusion: Conclusion, analysis: &DesktopsAnalysis) -> DesktopsSummary {
    DesktopsSummary {
        conclusion,
        most: analysis.most,
        most_by_last_change: analysis.most_by_last_change,
        broke_first: analysis.broke_first.clone(),
        numbers: analysis.numbers.clone(),
    }
}

const SECOND_NS: f64 = 1e9;

/// Puts videos of one operation together; nothing where there are none.
fn videos(played: &[DesktopVideo]) -> Option<DesktopVideoNumbers> {
    let rate = played.first()?.rate;
    let mut rates: Vec<f64> = played.iter().map(seen_rate).collect();
    rates.sort_by(f64::total_cmp);
    let all: u64 = played.iter().map(|one| u64::from(one.frames)).sum();
    let seen: u64 = played.iter().map(|one| u64::from(one.seen)).sum();
    Some(DesktopVideoNumbers {
        played: played.len() as u64,
        rate,
        seen_rate: rates.get(rates.len() / 2).copied().unwrap_or(0.0),
        dropped_percent: all.saturating_sub(seen) as f64 / all.max(1) as f64 * 100.0,
        longest_freeze_ns: played.iter().map(|one| one.freeze_ns).max().unwrap_or(0),
    })
}

/// Frames a second from the first one seen to the last one; none where there is but one.
fn seen_rate(video: &DesktopVideo) -> f64 {
    let after_first = f64::from(video.seen.saturating_sub(1));
    if video.elapsed_ns == 0 { 0.0 } else { after_first / (video.elapsed_ns as f64 / SECOND_NS) }
}

#[cfg(test)]
#[path = "desktops_tests.rs"]
mod analysis_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_lies_between_order_statistics() {
        assert_eq!(percentile(&[], 0.95), None);
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let found = percentile(&hundred, 0.95).unwrap();
        // Conover, Practical Nonparametric Statistics, section 3.2: ranks by the binomial distribution.
        assert_eq!((found.operations, found.ns, found.low_ns, found.high_ns), (100, 95, 90, Some(100)));
        let few = percentile(&[5, 6, 7], 0.95).unwrap();
        assert_eq!((few.ns, few.low_ns, few.high_ns), (7, 6, None));
    }

    #[test]
    fn rates_drops_and_the_longest_freeze_of_videos_are_put_together() {
        let one = |seen, elapsed_ns, freeze_ns| DesktopVideo {
            frames: 100,
            rate: 25,
            seen,
            elapsed_ns,
            freeze_ns,
            unreadable: 0,
        };
        assert_eq!(videos(&[]), None);
        let played = [
            one(100, 3_960_000_000, 40_000_000),
            one(91, 3_600_000_000, 400_000_000),
            one(1, 0, 3_960_000_000),
        ];
        let found = videos(&played).unwrap();
        assert_eq!((found.played, found.rate, found.longest_freeze_ns), (3, 25, 3_960_000_000));
        assert!(
            (found.seen_rate - 25.0).abs() < 1e-9 && (found.dropped_percent - 36.0).abs() < 1e-9,
            "{found:?}"
        );
    }
}
