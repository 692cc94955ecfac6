//! The numbers of a run, by its study: its conclusion with what is behind it, as programs read it.

use serde::Serialize;
use virtbench_record::{
    AdaptersSummary, ApplicationStudySummary, Conclusion, Coverage, DesktopsSummary, DeviatedNumbers,
    DeviationSummary, DisturbedNumbers, GuestRatios, KindNumbers, NativeVsVmSummary, NeighbourNumbers,
    NeighboursSummary, OltpSummary, OperationsSummary, PairNumbers, Plan, PlatformSummary, PointKey,
    PointNumbers, PointRatio, PointRecord, PointStatus, PredictedCase, PredictionsSummary, Provenance,
    Records, SamplesSummary, SetRecord, ShareNumbers, SideNumbers, StandingNumbers, TilesStudySummary, Trial,
};

use crate::application::{analyse_application_study, summarise_application_study};
use crate::desktops::{analyse_desktops, summarise_desktops};
use crate::oltp::{analyse_oltp, summarise_oltp};
use crate::operations::{analyse_operations, summarise_operations};
use crate::pairwise::{Analysis, Cell, Group, Margin, Measurements, Metric, Pair, Standing, analyse};
use crate::platform::{score_platform, summarise_platform};
use crate::predict::trials::{
    by_case, coverage, mean_absolute_error_percent, mean_error_of_averages_percent,
};
use crate::samples::{analyse_samples, summarise_samples};
use crate::tiles_study::{analyse_tiles_study, summarise_tiles_study};
use crate::together::{
    Deviated, DeviationAnalysis, DisturbedSet, NeighbourAnalysis, Overload, analyse_deviation,
    analyse_neighbours, loose_starts, machine_numbers,
};
use crate::{Comparison, compare};

/// The numbers of a run. Each study's have a schema.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StudySummary {
    /// `schema/study-native-vs-vm.schema.json`
    NativeVsVm(NativeVsVmSummary),
    /// `schema/study-adapters.schema.json`, also of a study that compares environments
    Adapters(AdaptersSummary),
    /// `schema/study-neighbours.schema.json`
    Neighbours(NeighboursSummary),
    /// `schema/study-deviation.schema.json`
    Deviation(DeviationSummary),
    /// `schema/study-predictions.schema.json`
    Predictions(PredictionsSummary),
    /// `schema/study-oltp.schema.json`
    Oltp(OltpSummary),
    /// `schema/study-operations.schema.json`
    Operations(OperationsSummary),
    /// `schema/study-application.schema.json`
    Application(ApplicationStudySummary),
    /// `schema/study-desktops.schema.json`
    Desktops(DesktopsSummary),
    /// `schema/study-tiles.schema.json`
    Tiles(Box<TilesStudySummary>),
    /// `schema/study-network.schema.json`
    Samples(SamplesSummary),
    /// A platform, domain by domain.
    Platform(PlatformSummary),
}

/// The numbers of a run that comes to this conclusion.
#[must_use]
pub fn summarise(conclusion: Conclusion, provenance: &Provenance, records: &Records) -> StudySummary {
    let (points, sets) = (records.points(), records.sets());
    match &provenance.plan {
        Plan::NativeVsVm(_) => StudySummary::NativeVsVm(native_vs_vm(conclusion, provenance, points)),
        Plan::Adapters(_) | Plan::Compare(_) => {
            StudySummary::Adapters(configurations(conclusion, provenance, points))
        }
        Plan::Neighbours(_) => StudySummary::Neighbours(neighbours(conclusion, provenance, sets)),
        Plan::Deviation(_) => StudySummary::Deviation(deviation(conclusion, provenance, sets)),
        Plan::Predictions(_) => {
            StudySummary::Predictions(predictions(conclusion, provenance, records.trials()))
        }
        Plan::Oltp(plan) => {
            StudySummary::Oltp(summarise_oltp(conclusion, &analyse_oltp(plan, records.oltp())))
        }
        Plan::Operations(plan) => {
            let analysis = analyse_operations(plan, records.operations());
            StudySummary::Operations(summarise_operations(conclusion, &analysis))
        }
        Plan::Application(plan) => {
            let analysis = analyse_application_study(plan, records.application());
            StudySummary::Application(summarise_application_study(conclusion, plan, &analysis))
        }
        Plan::Desktops(plan) => {
            let analysis = analyse_desktops(plan, records.desktops());
            StudySummary::Desktops(summarise_desktops(conclusion, &analysis))
        }
        Plan::Tiles(plan) => {
            let analysis = analyse_tiles_study(plan, records.tiles());
            StudySummary::Tiles(Box::new(summarise_tiles_study(conclusion, &analysis)))
        }
        Plan::Platform(plan) => {
            StudySummary::Platform(summarise_platform(conclusion, &score_platform(plan, records.samples())))
        }
        Plan::Network(_) => {
            let sides = provenance.plan.sides().unwrap_or_default();
            StudySummary::Samples(summarise_samples(conclusion, &analyse_samples(&sides, records.samples())))
        }
    }
}

/// Of native against VM.
fn native_vs_vm(
    conclusion: Conclusion,
    provenance: &Provenance,
    records: &[PointRecord],
) -> NativeVsVmSummary {
    let mut environments = provenance.plan.environments().iter();
    let reference = environments.next().map_or("", |name| name);
    let guests: Vec<GuestRatios> = environments
        .map(|environment| {
            let Comparison { points, summary, .. } =
                compare(records, reference, environment, provenance.plan.seed());
            let ratios = points.iter().map(|point| PointRatio {
                point: point.key,
                throughput: point.ratio.map(Into::into),
                cpu_per_io: point.cpu_per_io.map(Into::into),
            });
            GuestRatios {
                environment: environment.clone(),
                mean_ratio: summary.map(|summary| summary.mean.into()),
                ratios: ratios.collect(),
            }
        })
        .collect();
    let (points_measured, points_unavailable) = counts(records);
    let first = guests.first();
    NativeVsVmSummary {
        conclusion,
        points_measured,
        points_unavailable,
        mean_ratio: first.and_then(|guest| guest.mean_ratio),
        ratios: first.map_or_else(Vec::new, |guest| guest.ratios.clone()),
        guests,
        points: point_numbers(&measurements(provenance, records)),
    }
}

/// Of configurations against each other.
fn configurations(
    conclusion: Conclusion,
    provenance: &Provenance,
    records: &[PointRecord],
) -> AdaptersSummary {
    let analysis = analyse(measurements(provenance, records), Margin::default(), provenance.plan.seed());
    summarise_analysis(conclusion, &analysis, records)
}

/// The numbers of an analysis. `records` are those it was made of; none where that was a table.
#[must_use]
pub fn summarise_analysis(
    conclusion: Conclusion,
    analysis: &Analysis,
    records: &[PointRecord],
) -> AdaptersSummary {
    let (points_measured, points_unavailable) = if records.is_empty() {
        let cells = analysis.measurements.points.values().flatten();
        (cells.map(|cell| cell.side.repetitions).sum(), 0)
    } else {
        counts(records)
    };
    AdaptersSummary {
        conclusion,
        points_measured,
        points_unavailable,
        margin: analysis.margin.share(),
        points: point_numbers(&analysis.measurements),
        pairs: analysis.pairs.iter().flat_map(|pair| pair_numbers(analysis, pair)).collect(),
        kinds: analysis.groups.iter().map(|group| kind_numbers(analysis, group)).collect(),
    }
}

fn kind_numbers(analysis: &Analysis, group: &Group) -> KindNumbers {
    let name = |standing: &Standing| analysis.name(standing.configuration).to_owned();
    let standings = group.standings.iter().map(|standing| StandingNumbers {
        configuration: name(standing),
        bytes_per_second: standing.bytes_per_second,
        iops_per_cpu_percent: standing.iops_per_cpu_percent,
        against_best: standing.against_best.map(|judged| judged.ratio.into()),
        finding: standing.against_best.map(|judged| judged.finding.name().to_owned()),
    });
    KindNumbers {
        read_percent: group.kind.read_percent,
        random_percent: group.kind.random_percent,
        small: group.small,
        points: group.points.len(),
        choices: analysis.advice(group).choices().into_iter().map(name).collect(),
        standings: standings.collect(),
    }
}

fn measurements(provenance: &Provenance, records: &[PointRecord]) -> Measurements {
    Measurements::from_records(records, provenance.plan.environments(), provenance.plan.seed())
}

fn counts(records: &[PointRecord]) -> (usize, usize) {
    let measured = records.iter().filter(|record| matches!(record.status, PointStatus::Measured(_))).count();
    (measured, records.len() - measured)
}

fn point_numbers(measurements: &Measurements) -> Vec<PointNumbers> {
    let of_point = |(point, cells): (&PointKey, &Vec<Cell>)| {
        let sides = measurements.configurations.iter().zip(cells).map(|(environment, cell)| {
            let side = &cell.side;
            SideNumbers {
                environment: environment.clone(),
                repetitions: side.repetitions,
                bytes_per_second: side.throughput.map(Into::into),
                iops: side.iops.map(Into::into),
                latency_mean_ns: side.latency_ns,
                latency_p99_ns: side.p99_ns,
                host_cpu_percent: side.cpu_percent.map(Into::into),
                iops_per_cpu_percent: side.iops_per_cpu_percent(),
                kb_per_second_per_cpu_percent: side
                    .bytes_per_second_per_cpu_percent()
                    .map(|bytes| bytes / 1e3),
                errors: side.errors,
                unavailable: side.unavailable.clone(),
            }
        });
        PointNumbers { point: *point, sides: sides.collect() }
    };
    measurements.points.iter().map(of_point).collect()
}

fn pair_numbers<'a>(analysis: &'a Analysis, pair: &'a Pair) -> impl Iterator<Item = PairNumbers> + 'a {
    let quantities =
        [(Metric::Rate, "rate"), (Metric::Efficiency, "efficiency"), (Metric::ResponseTime, "response_time")];
    pair.points.iter().flat_map(move |point| {
        quantities.into_iter().filter_map(move |(metric, quantity)| {
            let judged = point.judged(metric)?;
            Some(PairNumbers {
                first: analysis.name(pair.first).to_owned(),
                second: analysis.name(pair.second).to_owned(),
                point: point.key,
                quantity: quantity.to_owned(),
                ratio: judged.ratio.into(),
                finding: judged.finding.name().to_owned(),
            })
        })
    })
}

/// Of one VM, two, three.
fn neighbours(conclusion: Conclusion, provenance: &Provenance, records: &[SetRecord]) -> NeighboursSummary {
    let NeighbourAnalysis { sets, metrics } = analyse_neighbours(provenance, records);
    let figures = metrics.iter().flat_map(|metric| {
        metric.sets.iter().map(|shared| {
            let set = &sets[shared.set];
            NeighbourNumbers {
                set: set.name.clone(),
                vms: set.vms,
                figure: metric.name.clone(),
                unit: metric.unit.clone(),
                mean: shared.mean.into(),
                stddev: shared.stddev,
                accumulated: shared.accumulated.map(Into::into),
                jain: shared.jain.map(Into::into),
                shares: shared
                    .vms
                    .iter()
                    .map(|share| ShareNumbers { vm: share.vm.clone(), mean: share.mean.into() })
                    .collect(),
                host_cpu_percent: set.host_cpu_percent,
                overload: set.overload.map(words),
            }
        })
    });
    NeighboursSummary {
        conclusion,
        sets_measured: records.len(),
        members_without_figures: without_figures(records),
        figures: figures.collect(),
        machines: provenance.plan.colocation().map_or_else(Vec::new, |plan| machine_numbers(plan, records)),
        loose_starts: loose_starts(records),
    }
}

/// Of VMs alone and beside others.
fn deviation(conclusion: Conclusion, provenance: &Provenance, records: &[SetRecord]) -> DeviationSummary {
    let DeviationAnalysis { saturation, sets } = analyse_deviation(provenance, records);
    let workloads = provenance.plan.colocation().map_or(&[][..], |plan| &plan.workloads);
    DeviationSummary {
        conclusion,
        sets_measured: records.len(),
        members_without_figures: without_figures(records),
        saturation: saturation.into_iter().map(|one| one.map(Into::into)).collect(),
        vms: sets.iter().flat_map(|set| disturbed(set, workloads)).collect(),
        machines: provenance.plan.colocation().map_or_else(Vec::new, |plan| machine_numbers(plan, records)),
        loose_starts: loose_starts(records),
    }
}

fn disturbed<'a>(
    set: &'a DisturbedSet,
    workloads: &'a [String],
) -> impl Iterator<Item = DisturbedNumbers> + 'a {
    let numbers = |one: Deviated| DeviatedNumbers {
        alone: one.alone.into(),
        beside: one.beside.into(),
        deviation_percent: one.delta.into(),
    };
    set.vms.iter().map(move |vm| DisturbedNumbers {
        set: set.name.clone(),
        vm: vm.vm.clone(),
        workload: workloads.get(vm.workload).cloned().unwrap_or_default(),
        share_percent: vm.share_percent,
        throughput: vm.throughput.map(numbers),
        response_ns: vm.response.map(numbers),
        overload: set.overload.map(words),
    })
}

/// Members, over all measurements, that have no figures.
fn without_figures(records: &[SetRecord]) -> usize {
    records.iter().flat_map(|record| &record.members).filter(|member| member.usable().is_none()).count()
}

fn words(overload: Overload) -> String {
    overload.words().to_owned()
}

/// The figures of predictions, for programs.
fn predictions(conclusion: Conclusion, provenance: &Provenance, trials: &[Trial]) -> PredictionsSummary {
    let cases = by_case(trials).into_iter().map(|case| {
        let [native, predicted, measured] = case.capacities();
        PredictedCase {
            case: case.name(),
            unit: case.trials.first().map_or_else(String::new, |trial| trial.capacity_name.clone()),
            trials: case.trials.len(),
            native,
            predicted,
            measured,
            error_percent: case.error_percent(),
            absolute_error_percent: case.absolute_error_percent(),
        }
    });
    let plan = provenance.plan.predictions();
    let planned = plan.iter().flat_map(|plan| &plan.cases).map(|case| &case.name);
    let known = |value: f64| (!trials.is_empty()).then_some(value);
    PredictionsSummary {
        conclusion,
        set: plan.and_then(|plan| plan.set),
        mean_absolute_error_percent: known(mean_absolute_error_percent(trials)),
        mean_error_of_averages_percent: known(mean_error_of_averages_percent(trials)),
        coverage: coverage(trials)
            .into_iter()
            .map(|(confidence, held)| Coverage { confidence, held: known(held) })
            .collect(),
        cases: cases.collect(),
        cases_without_trials: planned
            .filter(|name| !trials.iter().any(|trial| trial.case == **name))
            .cloned()
            .collect(),
        trials: trials.to_vec(),
    }
}
