//! Experiments that say what a miss hangs on: one assumption changed at a time.

use serde::Serialize;
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::disk::{HddModel, SsdModel, SsdProfile};
use virtbench_fence_sim::experiment::{Bar, CaseResult, Figure, Metric, Saturating, Settings};

/// What holds for all figures.
pub const CAUTIONS: [&str; 7] = [
    "Disks are models with the paper's data-sheet figures; a file access is its data alone, without the inode and \
     indirect blocks of a real file system. Response times on the hard disk are therefore about half the paper's, and \
     ratios, not absolute times, compare.",
    "The paper gives neither the size of its virtual disks nor its thread counts. Virtual disks are as large as the SSD \
     allows four of (15 GB), since the paper ran them on it too. Threads are as few as let each think at least as long \
     as it waits, which is what Figure 5's pairs of deviations imply.",
    "Saturation is that of one machine alone (times the slots where slots stay idle); behind a shared cache it is that \
     of all machines, since one alone would have the whole cache.",
    "Writes are waited for, without flushes; a guest's page cache answers no reads unless the settings say so.",
    "File sets are small (32 MB a machine) and of uniform popularity, so that caches are warm at once; caches are \
     filled before time begins and sized to the hit rate in simulation.",
    "The predictor knows each disk's own last access, as a driver instance does, and has a corner for streaming \
     accesses beyond the paper's random batches.",
    "Virtual devices (beyond the paper) hold finished answers back until they are due, and keep their promise only as long \
     as the hard disk keeps up: they count on sorting over all disks, which saves less where partitions lie far apart. \
     Their parameters were chosen on seed 1; the table of changed assumptions shows another seed and other disks.",
];

/// Runs of what is changed: enough to see what a miss hangs on.
const CHANGED_REPLICATIONS: u32 = 2;

/// An assumption that is changed.
pub struct Change {
    /// What it is, in a few words.
    pub name: &'static str,
    /// The settings with it.
    pub settings: Settings,
    /// What is run with it.
    pub bar: Bar,
}

/// What came of one.
#[derive(Debug, Serialize)]
pub struct Explanation {
    pub(super) changed: &'static str,
    workload: Personality,
    pub(super) system: String,
    throughput_deviation: f64,
    response_deviation: f64,
    response_alone_ms: f64,
    response_together_ms: f64,
}

/// The changes that concern these figures and workloads; none where the fence is not asked for.
pub fn changes(settings: &Settings, figures: &[Figure], workloads: &[Personality]) -> Vec<Change> {
    let as_it_is = settings;
    let settings = &Settings { replications: settings.replications.min(CHANGED_REPLICATIONS), ..*settings };
    let alternatives = [
        ("as it is", *as_it_is),
        ("saturation of all machines at once", Settings { saturating: Saturating::All, ..*settings }),
        (
            "virtual disks of 40 GB: the whole hard disk",
            Settings { disk_bytes: Some(40_000_000_000), ..*settings },
        ),
        (
            "SSD as its batches were measured (paper-fit)",
            Settings { ssd: SsdModel::of(SsdProfile::PaperFit), ..*settings },
        ),
        ("another seed", Settings { seed: settings.seed.wrapping_add(1), ..*settings }),
        ("hard disk at 15000 RPM", Settings { hdd: HddModel { rpm: 15_000.0, ..settings.hdd }, ..*settings }),
        ("predictors calibrated with 64 KiB accesses", Settings { calibration_bytes: 65_536, ..*settings }),
    ];
    let asked = [Figure::One, Figure::FourA, Figure::Seven, Figure::Own].into_iter();
    let all = asked.filter(|figure| figures.contains(figure)).flat_map(|figure| figure.bars(workloads));
    let mut bars: Vec<Bar> = Vec::new();
    for mut bar in all.filter(concerned) {
        if let Some(slots) = bar.x {
            bar.label = format!("{}, {slots} slots", bar.label);
        }
        // Figures share cases.
        if !bars.iter().any(|other| other.case == bar.case) {
            bars.push(bar);
        }
    }
    let change = |(name, settings): &(&'static str, Settings)| {
        let changes = bars.iter().map(|bar| Change { name, settings: *settings, bar: bar.clone() });
        changes.filter(Change::says_something).collect::<Vec<_>>()
    };
    alternatives.iter().flat_map(change).collect()
}

/// What is run again: the systems that miss a band, and the ends of the curve that rises instead of falling.
fn concerned(bar: &Bar) -> bool {
    match (bar.figure, bar.x) {
        (Figure::Seven, Some(slots)) => {
            bar.case.workload == Personality::Fileserver && (slots == 2.0 || slots == 8.0)
        }
        _ => matches!(bar.label.as_str(), "HDD" | "SSD" | "VirtualFence" | "paced"),
    }
}

impl Change {
    /// Whether it can change anything of note of the system it is run with.
    fn says_something(&self) -> bool {
        let [fast, predictors, slow, all, large] =
            ["SSD", "predictors", "hard disk", "saturation", "40 GB"].map(|word| self.name.contains(word));
        match self.bar.label.as_str() {
            "HDD" => !fast && !predictors,
            "SSD" => !slow && !predictors && !all,
            // Eight disks of that size do not fit.
            _ => self.bar.figure != Figure::Seven || !(predictors || large),
        }
    }

    /// Reads off what came of it.
    pub fn explain(&self, result: &CaseResult) -> Option<Explanation> {
        let low = result.vms.first()?;
        Some(Explanation {
            changed: self.name,
            workload: self.bar.case.workload,
            system: self.bar.label.clone(),
            throughput_deviation: low.figures.throughput_deviation.mean,
            response_deviation: low.figures.response_deviation.mean,
            response_alone_ms: low.figures.response_ms[0].mean,
            response_together_ms: low.figures.response_ms[1].mean,
        })
    }
}

impl Explanation {
    /// Whether it is of one of these systems under this workload.
    pub fn is_of(&self, systems: &[&str], workload: Personality) -> bool {
        self.workload == workload && systems.contains(&self.system.as_str())
    }

    /// The low machine's.
    pub fn value(&self, metric: Metric) -> f64 {
        match metric {
            Metric::ThroughputDeviation => self.throughput_deviation,
            Metric::ResponseDeviation => self.response_deviation,
            Metric::ResponseAloneMs => self.response_alone_ms,
            Metric::ResponseTogetherMs => self.response_together_ms,
        }
    }

    /// As cells of a table.
    pub fn cells(&self) -> Vec<String> {
        vec![
            self.changed.to_owned(),
            self.workload.name().to_owned(),
            self.system.clone(),
            format!("{:.1} %", self.throughput_deviation),
            format!("{:.1} %", self.response_deviation),
            format!("{:.1} ms", self.response_alone_ms),
            format!("{:.1} ms", self.response_together_ms),
        ]
    }
}
