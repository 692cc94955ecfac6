//! What a run comes to, as numbers that can be followed from run to run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use virtbench_record::{
    ApplicationRecord, Better, DesktopsRecord, OltpRecord, OperationsRecord, PlatformPlan, PointKey,
    PointRecord, Provenance, Records, SamplesRecord, SetRecord, TilesRecord, Trial,
};

use crate::application::analyse_application_study;
use crate::desktops::analyse_desktops;
use crate::interval::geometric_mean;
use crate::oltp::analyse_oltp;
use crate::operations::analyse_operations;
use crate::platform::score_platform;
use crate::quantity::{Quantity, is_worst};
use crate::samples::analyse_samples;
use crate::tiles_study::analyse_tiles_study;

/// One number of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Where it was measured, such as `native, all points` or `vm1 in together`.
    pub subject: String,
    /// What was measured, such as `throughput`.
    pub quantity: String,
    /// Its unit: `B/s`, `1/s`, `ns`, `%`, a workload's own, or empty for a ratio.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Whether it sums up the run. The others are its parts.
    pub headline: bool,
    /// The mean over repetitions, by logarithms; of what completed nothing, the worst there is: zero, or without end (`null` in JSON)
    /// where less is better.
    #[serde(with = "endless")]
    pub value: f64,
}

impl Measure {
    /// Whether nothing was completed.
    #[must_use]
    pub fn is_worst(&self) -> bool {
        is_worst(self.value, self.better)
    }
}

/// JSON has no number without end.
mod endless {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        value.is_finite().then_some(*value).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

/// The measures of a run, its headlines first. What was measured only in part has no headline.
#[must_use]
pub fn measures(provenance: &Provenance, records: &Records) -> Vec<Measure> {
    let mut measures = match records {
        Records::Points(points) => of_points(provenance, points),
        Records::Sets(sets) => of_sets(provenance, sets),
        Records::Trials(trials) => of_trials(trials),
        Records::Oltp(records) => of_oltp(provenance, records),
        Records::Operations(records) => of_operations(provenance, records),
        Records::Application(records) => of_application(provenance, records),
        Records::Desktops(records) => of_desktops(provenance, records),
        Records::Tiles(records) => of_tiles(provenance, records),
        Records::Samples(records) => of_samples(provenance, records),
    };
    measures.retain(|measure| measure.value >= 0.0 && (measure.value.is_finite() || measure.is_worst()));
    measures.sort_by_key(|measure| !measure.headline);
    measures
}

fn measure(
    subject: String,
    quantity: &str,
    unit: &str,
    better: Better,
    headline: bool,
    value: f64,
) -> Measure {
    Measure { subject, quantity: quantity.to_owned(), unit: unit.to_owned(), better, headline, value }
}

/// What a measure of an environment is of: a point, or all of them.
pub(super) fn subject(environment: &str, point: Option<PointKey>) -> String {
    point.map_or_else(|| format!("{environment}, all points"), |point| format!("{environment}, {point}"))
}

/// Each quantity of each environment, at each point and over all of them; and throughput as a multiple of the reference's.
fn of_points(provenance: &Provenance, records: &[PointRecord]) -> Vec<Measure> {
    let Some(plan) = provenance.plan.grid() else { return Vec::new() };
    let points = plan.blocks_bytes.len() * plan.read_percents.len() * plan.random_percents.len();
    let mut measures = Vec::new();
    for quantity in Quantity::ALL {
        let mut reference: Option<f64> = None;
        for (index, environment) in plan.environments.iter().enumerate() {
            let by_point = by_point(records, environment, quantity);
            let part = |(point, value): (&PointKey, &f64)| {
                measure(
                    subject(environment, Some(*point)),
                    quantity.name(),
                    quantity.unit(),
                    quantity.better(),
                    false,
                    *value,
                )
            };
            measures.extend(by_point.iter().map(part));
            if by_point.len() < points {
                continue;
            }
            let all = geometric_mean(&by_point.values().copied().collect::<Vec<_>>());
            let (name, better) = (quantity.name(), quantity.better());
            measures.push(measure(subject(environment, None), name, quantity.unit(), better, true, all));
            match reference {
                None if index == 0 => reference = Some(all),
                Some(reference) if quantity == Quantity::Throughput => {
                    let subject = format!("{environment} / {}, all points", plan.environments[0]);
                    measures.push(measure(subject, name, "", better, true, all / reference));
                }
                _ => {}
            }
        }
    }
    measures
}

fn by_point(records: &[PointRecord], environment: &str, quantity: Quantity) -> BTreeMap<PointKey, f64> {
    let mut samples: BTreeMap<PointKey, Vec<f64>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.environment == environment) {
        if let Some(value) = quantity.value(record) {
            samples.entry(record.point).or_default().push(value);
        }
    }
    samples.into_iter().map(|(point, values)| (point, geometric_mean(&values))).collect()
}

/// Throughput and response time of each machine of each set, and their mean over the machines.
fn of_sets(provenance: &Provenance, records: &[SetRecord]) -> Vec<Measure> {
    let Some(plan) = provenance.plan.colocation() else { return Vec::new() };
    type Value = fn(&virtbench_record::JobOutcome) -> Option<f64>;
    let response: Value = |outcome| match outcome.throughput() {
        Some(done) if done <= 0.0 => Some(f64::INFINITY),
        _ => outcome.response_ns(),
    };
    let quantities: [(&str, &str, Better, Value); 2] = [
        ("throughput", "1/s", Better::Higher, virtbench_record::JobOutcome::throughput),
        ("mean response time", "ns", Better::Lower, response),
    ];
    let mut measures = Vec::new();
    for set in &plan.sets {
        let of_set: Vec<&SetRecord> = records.iter().filter(|record| record.set == set.name).collect();
        for (name, unit, better, value) in quantities {
            let mut means = Vec::new();
            for member in &set.members {
                let members = of_set.iter().flat_map(|record| &record.members);
                let usable = members.filter(|other| other.vm == member.vm).filter_map(|one| one.usable());
                let samples: Vec<f64> = usable.filter_map(|one| value(&one.outcome)).collect();
                if samples.is_empty() {
                    continue;
                }
                means.push(geometric_mean(&samples));
                let subject = format!("{} in {}", member.vm, set.name);
                measures.push(measure(subject, name, unit, better, false, geometric_mean(&samples)));
            }
            if means.len() == set.members.len() {
                let subject = format!("mean of {}", set.name);
                measures.push(measure(subject, name, unit, better, true, geometric_mean(&means)));
            }
        }
    }
    measures
}

/// Throughput of each side at its saturation, and each as a multiple of the first.
fn of_oltp(provenance: &Provenance, records: &[OltpRecord]) -> Vec<Measure> {
    let Some(plan) = provenance.plan.oltp() else { return Vec::new() };
    let analysis = analyse_oltp(plan, records);
    let rate = virtbench_record::Quantity::TransactionsPerSecond;
    let sides = &analysis.saturated.sides;
    let own = sides.iter().filter_map(|side| {
        let known = side.known.get(&rate)?;
        Some(measure(side.name.clone(), "throughput", "1/s", Better::Higher, true, known.mean))
    });
    let ratios = analysis.saturated.ratios.iter().filter_map(|against| {
        let subject = format!("{} / {}", sides[against.side].name, sides[0].name);
        Some(measure(subject, "throughput", "", Better::Higher, true, against.ratios.get(&rate)?.value))
    });
    own.chain(ratios).collect()
}

/// The rate that was done and the median of each operation, of each number of VMs at each rate.
fn of_operations(provenance: &Provenance, records: &[OperationsRecord]) -> Vec<Measure> {
    let Some(plan) = provenance.plan.operations() else { return Vec::new() };
    let analysis = analyse_operations(plan, records);
    let steps = analysis.steps.iter().flat_map(|step| {
        let at = step.per_minute.map_or_else(|| "closed".to_owned(), |rate| format!("{rate:.0}/min"));
        let name = format!("{} VMs, {at}", step.vms);
        let rate = step
            .achieved
            .map(|rate| measure(name.clone(), "throughput", "1/min", Better::Higher, true, rate.mean));
        let medians = step.kinds.iter().map(move |(kind, one)| {
            let subject = format!("{name}, {}", kind.name());
            let median = one.median_ns().unwrap_or(f64::INFINITY);
            measure(subject, "median latency", "ns", Better::Lower, false, median)
        });
        rate.into_iter().chain(medians)
    });
    steps.collect()
}

/// Each metric of each side alone, as a multiple of the native one, and how far it deviates beside neighbours.
fn of_application(provenance: &Provenance, records: &[ApplicationRecord]) -> Vec<Measure> {
    let Some(plan) = provenance.plan.application() else { return Vec::new() };
    let analysis = analyse_application_study(plan, records);
    let mut measures = Vec::new();
    for side in &analysis.sides {
        for (metric, found) in plan.metrics.iter().zip(&side.metrics) {
            let name = &side.side.name;
            let mut add = |subject: String, quantity: &str, unit: &str, better, value: Option<f64>| {
                measures.extend(value.map(|value| measure(subject, quantity, unit, better, true, value)));
            };
            let alone = found.alone.map(|alone| alone.mean);
            add(name.clone(), &metric.name, &metric.unit, metric.better, alone);
            let ratio = found.against_native.map(|ratio| ratio.value);
            add(format!("{name} / native"), &metric.name, "", metric.better, ratio);
            let deviation = found.deviation.map(|deviation| deviation.estimate.mean);
            let quantity = format!("deviation of {}", metric.name);
            add(format!("{name} beside neighbours"), &quantity, "%", Better::Lower, deviation);
        }
    }
    measures
}

/// Each sample of each side, and as a multiple of the first side's; those that sum up a side are headlines.
fn of_samples(provenance: &Provenance, records: &[SamplesRecord]) -> Vec<Measure> {
    if let Some(plan) = provenance.plan.platform() {
        return of_platform(provenance, plan, records);
    }
    let Some(plan) = provenance.plan.sides() else { return Vec::new() };
    let first = plan.sides.first().cloned().unwrap_or_default();
    let mut measures = Vec::new();
    for side in analyse_samples(&plan, records).sides {
        for one in &side.samples {
            let headline = plan.headlines.contains(&one.name.as_str());
            let mut add = |subject: String, unit: &str, value: Option<f64>| {
                let of = |value| measure(subject, &one.name, unit, one.better, headline, value);
                measures.extend(value.map(of));
            };
            add(side.name.clone(), &one.unit, one.estimate.map(|estimate| estimate.mean));
            let ratio = one.against_first.map(|ratio| ratio.value);
            add(format!("{} / {first}", side.name), "", ratio);
        }
    }
    measures
}

/// The score, each domain's figure, and every ratio behind it. Scores of other domains have other names, and so have those of guests that
/// something else executed: none of them is ever put beside another.
fn of_platform(provenance: &Provenance, plan: &PlatformPlan, records: &[SamplesRecord]) -> Vec<Measure> {
    let guest = provenance.guest.as_ref();
    let under =
        guest.map_or_else(String::new, |guest| format!(" under {}", guest.accelerator.name.to_uppercase()));
    let found = score_platform(plan, records);
    let ratio = |subject: String, headline: bool, value: f64| {
        measure(subject, "ratio to this host", "", Better::Higher, headline, value)
    };
    let names: Vec<&str> = found.counted().map(|domain| domain.name.as_str()).collect();
    let score =
        found.score.map(|score| ratio(format!("score of {}{under}", names.join(", ")), true, score.mean));
    let domains = found.domains.iter().flat_map(|domain| {
        let own = domain.ratio.map(|own| ratio(format!("{}{under}", domain.name), true, own.mean));
        let parts = domain
            .metrics
            .iter()
            .map(|one| ratio(format!("{}{under}, {}", domain.name, one.name), false, one.ratio));
        own.into_iter().chain(parts).collect::<Vec<_>>()
    });
    score.into_iter().chain(domains).collect()
}

/// The most desktops with which users are content, and each group's percentile at every number.
fn of_desktops(provenance: &Provenance, records: &[DesktopsRecord]) -> Vec<Measure> {
    let Some(plan) = provenance.plan.desktops() else { return Vec::new() };
    let analysis = analyse_desktops(plan, records);
    // Where no number will do, none will.
    let most = (!analysis.numbers.is_empty()).then(|| f64::from(analysis.most.unwrap_or(0)));
    let most = most.map(|most| measure("users content".into(), "desktops", "", Better::Higher, true, most));
    let percentiles = analysis.numbers.iter().flat_map(|at| {
        at.groups.iter().filter_map(|group| {
            let subject = format!("group {}, {} desktops", group.group.name(), at.desktops);
            let ns = group.percentile.as_ref()?.ns as f64;
            Some(measure(subject, "response time", "ns", Better::Lower, false, ns))
        })
    });
    most.into_iter().chain(percentiles).collect()
}

/// The most tiles that fit and their score; the sum of scores and each member's share of the reference at every number.
fn of_tiles(provenance: &Provenance, records: &[TilesRecord]) -> Vec<Measure> {
    let Some(plan) = provenance.plan.tiles() else { return Vec::new() };
    let analysis = analyse_tiles_study(plan, records);
    let Some(one) = analysis.configuration() else { return Vec::new() };
    let kept = |quantity: &str, value: f64| {
        measure("service levels kept".into(), quantity, "", Better::Higher, true, value)
    };
    // Where no number of tiles keeps its levels, none fits, and the score is nothing.
    let (most, score) = match one.most() {
        Some(step) => (Some(f64::from(step.tiles)), step.score().map(|score| score.mean)),
        None => (Some(0.0), Some(0.0)),
    };
    let most = most.map(|tiles| kept("tiles", tiles));
    let score = score.map(|score| kept("score", score));
    let parts = one.steps.iter().flat_map(|step| {
        let members = step.members.iter().filter_map(|member| {
            let subject = format!("{}, {} tiles", member.name, step.tiles);
            let value = member.normalised?.mean;
            Some(measure(subject, "of the reference", "", Better::Higher, false, value))
        });
        let sum = step.total.map(|sum| {
            let subject = format!("{} tiles", step.tiles);
            measure(subject, "sum of scores", "", Better::Higher, false, sum.mean)
        });
        sum.into_iter().chain(members).collect::<Vec<_>>()
    });
    most.into_iter().chain(score).chain(parts).collect()
}

/// The size of the errors, of all single trials and of each case, and what each case reached.
fn of_trials(trials: &[Trial]) -> Vec<Measure> {
    let error = |trials: &[&Trial]| {
        trials.iter().map(|trial| trial.error_percent().abs()).sum::<f64>() / trials.len() as f64
    };
    let mut cases: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
    for trial in trials {
        cases.entry(&trial.case).or_default().push(trial);
    }
    let mut measures = Vec::new();
    if !trials.is_empty() {
        let all: Vec<&Trial> = trials.iter().collect();
        measures.push(measure(
            "all cases".into(),
            "error of single trials",
            "%",
            Better::Lower,
            true,
            error(&all),
        ));
    }
    for (case, trials) in cases {
        measures.push(measure(
            case.to_owned(),
            "error of single trials",
            "%",
            Better::Lower,
            false,
            error(&trials),
        ));
        let reached: Vec<f64> = trials.iter().map(|trial| trial.truth).collect();
        let unit = trials.first().map_or("", |trial| &trial.capacity_name);
        measures.push(measure(
            format!("{case} in the VM"),
            "throughput",
            unit,
            Better::Higher,
            false,
            geometric_mean(&reached),
        ));
    }
    measures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{good, provenance};
    use virtbench_record::{GridPlan, Plan};

    fn grid(environments: &[&str]) -> Plan {
        Plan::NativeVsVm(GridPlan {
            grid: "g".into(),
            blocks_bytes: vec![4096],
            read_percents: vec![0, 100],
            random_percents: vec![100],
            repetitions: 2,
            outstanding: 1,
            workers: 1,
            ramp_ns: 0,
            time_ns: 1,
            size_bytes: 1 << 20,
            environments: environments.iter().map(ToString::to_string).collect(),
            seed: 1,
        })
    }

    fn point(read_percent: u8) -> PointKey {
        PointKey { block_bytes: 4096, read_percent, random_percent: 100 }
    }

    #[test]
    fn a_grid_has_every_point_and_a_headline_for_each_environment() {
        let provenance = provenance(grid(&["native", "vm"]), 2, 1);
        let mut records = Vec::new();
        for (environment, scale) in [("native", 1.0), ("vm", 0.25)] {
            for (read, iops) in [(0, 100.0), (100, 400.0)] {
                records.extend(
                    [0.5, 2.0].map(|noise| good(point(read), environment, 0, iops * scale * noise, 1.0)),
                );
            }
        }
        let found = measures(&provenance, &Records::Points(records));
        let value = |subject: &str| found.iter().find(|one| one.subject == subject).unwrap().value;
        assert!((value("native, all points") - 200.0 * 4096.0).abs() < 1e-6, "{found:?}");
        assert!((value("vm / native, all points") - 0.25).abs() < 1e-12);
        assert!((value(&format!("vm, {}", point(100))) - 100.0 * 4096.0).abs() < 1e-6);
        assert!(found.iter().take_while(|one| one.headline).count() == 3, "{found:?}");
    }

    #[test]
    fn an_environment_that_lacks_a_point_has_no_headline() {
        let provenance = provenance(grid(&["native", "vm"]), 2, 1);
        let records = vec![good(point(0), "native", 0, 10.0, 1.0)];
        let found = measures(&provenance, &Records::Points(records));
        assert!(found.len() == 1 && !found[0].headline, "{found:?}");
    }
}
