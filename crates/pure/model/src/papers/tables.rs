//! The papers' own tables, row by row beside what runs say of the same.
//!
//! Machines are twenty years apart: where a paper has absolute figures of its machine, a row has those too, and a reader compares how rows
//! go together and not one figure with another.

use virtbench_record::{OperationKind, PaperTable, PaperTableCell, PaperTableRow, Plan, PointKey, Quantity};
use virtbench_units::with_commas;

use super::claim::{PLATFORM, PaperRun, manager, platform};
use super::disks::{ADAPTERS, ESX_ADAPTERS, ESX_DISK, NATIVE_VS_VM, adapters_of, ratios_of, sides_of};
use super::many_vms::{CPU, MULTI_VM, NEIGHBOURS, analysed};
use super::predictability::{DEVIATION, Disturbed, Sharing, USUAL_SLOT_MS, VIRTUAL_FENCE, sharing};
use crate::oltp::analyse_oltp;
use crate::operations::analyse_operations;
use crate::predict::trials::{by_case, mean_absolute_error_percent};
use crate::surface::Comparison;

/// A table of a paper.
struct Published {
    paper: &'static str,
    place: &'static str,
    title: &'static str,
    study: &'static str,
    /// What a row is of, and the paper's figure.
    rows: &'static [(&'static str, &'static str)],
    found: fn(&PaperRun<'_>) -> Vec<Cell>,
}

/// Under which platform, in which row, and what was found.
type Cell = (String, usize, String);

/// Every table, in the order of papers, with what runs say of it. Of runs that say something of one row on one platform, the last counts.
pub(super) fn tables(runs: &[PaperRun<'_>]) -> Vec<PaperTable> {
    TABLES.iter().map(|published| beside(published, runs)).collect()
}

fn beside(published: &Published, runs: &[PaperRun<'_>]) -> PaperTable {
    let row = |(what, figure): &(&str, &str)| PaperTableRow {
        what: (*what).to_owned(),
        published: (*figure).to_owned(),
        found: Vec::new(),
    };
    let mut rows: Vec<PaperTableRow> = published.rows.iter().map(row).collect();
    for (platform, row, figure) in runs.iter().flat_map(published.found) {
        let found = &mut rows[row].found;
        match found.iter_mut().find(|cell| cell.platform == platform) {
            Some(cell) => cell.figure = figure,
            None => found.push(PaperTableCell { platform, figure }),
        }
    }
    let [paper, place, title, study] =
        [published.paper, published.place, published.title, published.study].map(str::to_owned);
    PaperTable { paper, place, title, study, rows }
}

const TABLES: [Published; 9] = [
    Published {
        paper: ESX_DISK,
        place: "Figure 8",
        title: "Throughput in the VM over native, over all points",
        study: NATIVE_VS_VM,
        rows: &[("average", "0.95, 1.08, 0.92 (three machines)"), ("least", "0.6"), ("most", "1.5")],
        found: surface_ratios,
    },
    Published {
        paper: ESX_DISK,
        place: "Tables 2, 4 and 5",
        title: "How far single predictions of an application are off, %",
        study: "study predictions",
        rows: &[("mean", "1 to 7 (file server), 4.6 and 8.6 (mail server)"), ("programs", "2")],
        found: prediction_errors,
    },
    Published {
        paper: ESX_ADAPTERS,
        place: "Tables 2 and 3",
        title: "I/O per second, adapter by adapter",
        study: ADAPTERS,
        rows: &[
            ("random writes, 4 KiB", "BusLogic 813, LSI Logic 817"),
            ("random writes, 16 KiB", "BusLogic 595, LSI Logic 597"),
            ("random reads, 4 KiB", "BusLogic 1,449, LSI Logic 1,424"),
            ("random reads, 16 KiB", "BusLogic 1,185, LSI Logic 1,182"),
            ("sequential writes, 4 KiB", "BusLogic 9,402, LSI Logic 9,377"),
            ("sequential writes, 16 KiB", "BusLogic 7,095, LSI Logic 7,122"),
            ("sequential reads, 4 KiB", "BusLogic 4,683, LSI Logic 4,759"),
            ("sequential reads, 16 KiB", "BusLogic 10,511, LSI Logic 10,471"),
        ],
        found: |run| adapter_cells(run, |side| side.iops.map(|iops| iops.mean)),
    },
    Published {
        paper: ESX_ADAPTERS,
        place: "Tables 4 and 5",
        title: "I/O per second for each percent of a processor, adapter by adapter",
        study: ADAPTERS,
        rows: &[
            ("random writes, 4 KiB", "BusLogic 73, LSI Logic 76"),
            ("random writes, 16 KiB", "BusLogic 61, LSI Logic 62"),
            ("random reads, 4 KiB", "BusLogic 72, LSI Logic 70"),
            ("random reads, 16 KiB", "BusLogic 64, LSI Logic 67"),
            ("sequential writes, 4 KiB", "BusLogic 115, LSI Logic 114"),
            ("sequential writes, 16 KiB", "BusLogic 98, LSI Logic 98"),
            ("sequential reads, 4 KiB", "BusLogic 98, LSI Logic 96"),
            ("sequential reads, 16 KiB", "BusLogic 99, LSI Logic 98"),
        ],
        found: |run| adapter_cells(run, crate::surface::Side::iops_per_cpu_percent),
    },
    Published {
        paper: PLATFORM,
        place: "Tables 4 and 5",
        title: "A database natively and in a VM, at saturation",
        study: "study oltp",
        rows: &[
            ("transactions a second, native", "10,600"),
            ("transactions a second, in the VM", "8,400"),
            ("in the VM over native", "0.79"),
            ("cycles an instruction, in the VM over native", "1.13"),
            ("instructions a transaction, in the VM over native", "1.08"),
        ],
        found: database,
    },
    Published {
        paper: PLATFORM,
        place: "Table 6",
        title: "Seconds an operation, with the fewest and with the most VMs on a host",
        study: "study operations",
        rows: &[
            ("VMs on a host", "10 and 125"),
            ("power-on", "0.081 and 0.94"),
            ("power-off", "0.01 and 0.15"),
            ("clone", "0.029 and 0.18"),
            ("migrate", "0.047 and 0.59"),
            ("remove", "0.071 and 0.053"),
            ("create-snapshot", "0.012 and 0.13"),
            ("delete-snapshot", "0.010 and 0.056"),
            ("reconfigure", "0.021 and 0.19"),
        ],
        found: operations,
    },
    Published {
        paper: MULTI_VM,
        place: "Table 1",
        title: "Computing: the sum over VMs as a multiple of one VM's, and the standard deviation between VMs",
        study: NEIGHBOURS,
        rows: &[
            ("1 VM", "1.00"),
            ("2 VMs", "-"),
            ("4 VMs", "3.81, 0.9 % (their processors are all of the host's)"),
            ("5 VMs", "3.99, 0.7 %"),
            ("6 VMs", "3.94, 1.1 %"),
            ("7 VMs", "3.84, 1.2 %"),
        ],
        found: computing,
    },
    Published {
        paper: VIRTUAL_FENCE,
        place: "section 5, Figure 1",
        title: "Deviation from alone beside three others, without a fence: response time and throughput",
        study: DEVIATION,
        rows: &[
            ("the lightest VM", "443 % at least, of response time"),
            ("the other three", "166 to 479 %, 17 to 32 % (Xen)"),
        ],
        found: |run| deviations(run, Sharing::Unfenced),
    },
    Published {
        paper: VIRTUAL_FENCE,
        place: "section 7.1, Figure 4",
        title: "The same behind the fence, slots of 20 ms",
        study: DEVIATION,
        rows: &[
            ("the lightest VM", "15 % at most, of response time"),
            ("the other three", "below 19 %, of response time"),
        ],
        found: |run| deviations(run, Sharing::Fenced(USUAL_SLOT_MS)),
    },
];

fn surface_ratios(run: &PaperRun<'_>) -> Vec<Cell> {
    let of = |(platform, found): (String, Comparison)| {
        let cells = ratios_of(&found)?.map(|ratio| format!("{ratio:.2}"));
        Some((0..).zip(cells).map(move |(row, figure)| (platform.clone(), row, figure)))
    };
    sides_of(run).into_iter().filter_map(of).flatten().collect()
}

fn prediction_errors(run: &PaperRun<'_>) -> Vec<Cell> {
    let trials = run.records.trials();
    let cases = by_case(trials).len();
    if cases == 0 {
        return Vec::new();
    }
    let name = platform(run.provenance);
    let error = format!("{:.1} ({} trials)", mean_absolute_error_percent(trials), trials.len());
    vec![(name.clone(), 0, error), (name, 1, cases.to_string())]
}

/// The points of both tables of adapters, in the order of their rows: reads and random seeks in percent, and the size of blocks.
const ADAPTER_POINTS: [(u8, u8, u64); 8] = [
    (0, 100, 4096),
    (0, 100, 16384),
    (100, 100, 4096),
    (100, 100, 16384),
    (0, 0, 4096),
    (0, 0, 16384),
    (100, 0, 4096),
    (100, 0, 16384),
];

fn adapter_cells(run: &PaperRun<'_>, figure: fn(&crate::surface::Side) -> Option<f64>) -> Vec<Cell> {
    let Some(analysis) = adapters_of(run) else { return Vec::new() };
    let name = platform(run.provenance);
    let cell = |(row, (read_percent, random_percent, block_bytes)): (usize, &(u8, u8, u64))| {
        let key = PointKey {
            block_bytes: *block_bytes,
            read_percent: *read_percent,
            random_percent: *random_percent,
        };
        let sides = analysis.measurements.points.get(&key)?;
        let told = sides.iter().enumerate().filter_map(|(adapter, cell)| {
            Some(format!("{} {}", analysis.name(adapter), whole(figure(&cell.side)?)))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| (name.clone(), row, told.join(", ")))
    };
    ADAPTER_POINTS.iter().enumerate().filter_map(cell).collect()
}

/// No decimals, with commas between thousands.
fn whole(value: f64) -> String {
    with_commas(&format!("{value:.0}"))
}

fn database(run: &PaperRun<'_>) -> Vec<Cell> {
    let Plan::Oltp(plan) = &run.provenance.plan else { return Vec::new() };
    let found = analyse_oltp(plan, run.records.oltp()).saturated;
    let Some(against) = found.ratios.first() else { return Vec::new() };
    let rate =
        |side: usize| found.sides[side].known.get(&Quantity::TransactionsPerSecond).map(|rate| rate.mean);
    let kept =
        against.ratios.get(&Quantity::TransactionsPerSecond).map(|ratio| format!("{:.2}", ratio.value));
    let no_counters = || Some("unavailable: no counters".to_owned());
    let grown = |factor: Option<f64>| factor.map(|factor| format!("{factor:.2}")).or_else(no_counters);
    let cells = [
        rate(0).map(whole),
        rate(against.side).map(whole),
        kept,
        grown(against.growth.map(|growth| growth.cycles_per_instruction)),
        grown(against.growth.map(|growth| growth.instructions)),
    ];
    let name = platform(run.provenance);
    (0..).zip(cells).filter_map(|(row, figure)| Some((name.clone(), row, figure?))).collect()
}

/// The kinds of the rows behind the first one.
const KINDS: [OperationKind; 8] = [
    OperationKind::PowerOn,
    OperationKind::PowerOff,
    OperationKind::Clone,
    OperationKind::Migrate,
    OperationKind::Remove,
    OperationKind::CreateSnapshot,
    OperationKind::DeleteSnapshot,
    OperationKind::Reconfigure,
];

fn operations(run: &PaperRun<'_>) -> Vec<Cell> {
    let Plan::Operations(plan) = &run.provenance.plan else { return Vec::new() };
    let steps = analyse_operations(plan, run.records.operations()).steps;
    let ends = (steps.iter().min_by_key(|step| step.vms), steps.iter().max_by_key(|step| step.vms));
    let (Some(fewest), Some(most)) = ends else { return Vec::new() };
    let seconds = |kind: &OperationKind| {
        let of = |step: &crate::operations::StepAnalysis| {
            Some(step.kinds.get(kind)?.mean_and_p95_ns[0]?.mean / 1e9)
        };
        Some(format!("{:.3} and {:.3}", of(fewest)?, of(most)?))
    };
    let vms = (manager(plan), 0, format!("{} and {}", fewest.vms, most.vms));
    let kinds = (1..).zip(&KINDS);
    let kinds = kinds.filter_map(|(row, kind)| Some((manager(plan), row, seconds(kind)?)));
    [vms].into_iter().chain(kinds).collect()
}

/// Numbers of VMs of the rows.
const VMS: [usize; 6] = [1, 2, 4, 5, 6, 7];

fn computing(run: &PaperRun<'_>) -> Vec<Cell> {
    let Some(found) = analysed(run, CPU) else { return Vec::new() };
    let Some(metric) = found.metrics.first() else { return Vec::new() };
    let sum = |vms: usize| {
        let shared = metric.sets.iter().find(|shared| found.sets[shared.set].vms == vms)?;
        Some((shared.accumulated?.mean, shared.stddev_percent(), found.sets[shared.set].overload))
    };
    let Some((one, ..)) = sum(1) else { return Vec::new() };
    let name = platform(run.provenance);
    let cell = |(row, vms): (usize, &usize)| {
        let (all, apart, overload) = sum(*vms)?;
        let apart = apart.map_or_else(String::new, |percent| format!(", {percent:.1} %"));
        let short = overload.map_or("", |_| " (the host had no processor left)");
        Some((name.clone(), row, format!("{:.2}{apart}{short}", all / one)))
    };
    VMS.iter().enumerate().filter_map(cell).collect()
}

fn deviations(run: &PaperRun<'_>, shared: Sharing) -> Vec<Cell> {
    if sharing(run) != Some(shared) {
        return Vec::new();
    }
    let mut vms: Vec<(f64, [f64; 2])> = Disturbed::of(run)
        .vms
        .iter()
        .filter_map(|vm| {
            let apart = [vm.response?.delta.mean, vm.throughput?.delta.mean];
            Some((vm.share_percent.unwrap_or(100.0), apart))
        })
        .collect();
    vms.sort_by(|one, other| one.0.total_cmp(&other.0));
    let told = |vms: &[(f64, [f64; 2])]| {
        let of = |(_, [response, rate]): &(f64, [f64; 2])| format!("{response:.0} and {rate:.1} %");
        vms.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let Some((lightest, others)) = vms.split_first() else { return Vec::new() };
    let name = platform(run.provenance);
    vec![(name.clone(), 0, told(&[*lightest])), (name, 1, told(others))]
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tables_tests;
