//! Which cases each figure of the paper needs, and what is read off them.

use serde::Serialize;
use virtbench_fence::catalogue::{self, CATALOGUE, Kind, SLOT_MS, Variant};
use virtbench_fence_sim::client::Personality;
use virtbench_model::{Estimate, OverExperiments, Span, over_experiments};

use crate::case::{Case, CaseResult};
use crate::metric::{Machine, Metric, PaperFigure};
use crate::published::Published;
use crate::system::{Pacing, Sharing, Store, System};

/// One measured value beside what was published of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Of which figure.
    pub figure: PaperFigure,
    /// Of which workload.
    pub workload: Personality,
    /// Of which system, by its label.
    pub system: String,
    /// The place on the figure's horizontal axis, where it has one: slots, or milliseconds of a slot.
    pub x: Option<f64>,
    /// Of which machines.
    pub machine: Machine,
    /// Which metric.
    pub metric: Metric,
    /// What was measured: the mean of the experiments.
    pub measured: Estimate,
    /// The least and the greatest experiment.
    pub range: Span,
    /// Each experiment. Those of one number have the same seed on every system.
    #[serde(skip)]
    pub experiments: Vec<f64>,
    /// What was published, if the text has it.
    pub published: Option<Published>,
}

impl Row {
    /// By how much the measured mean lies outside the published band; zero where it holds, nothing where
    /// nothing was published.
    #[must_use]
    pub fn outside(&self) -> Option<f64> {
        self.published.as_ref().map(|published| published.outside(self.measured.mean))
    }
}

/// A case of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Of which figure.
    pub figure: PaperFigure,
    /// What its rows are labelled with.
    pub label: String,
    /// The place on the horizontal axis, if it has one.
    pub x: Option<f64>,
    /// What is run.
    pub case: Case,
    /// The unfenced hard disk of whose load its own is a multiple, where the paper says what multiple.
    pub hdd: Option<Case>,
}

/// The slots of Figure 7.
const SLOTS: [usize; 4] = [2, 4, 6, 8];
/// The slot lengths of Figure 8, milliseconds.
const LENGTHS_MS: [f64; 5] = [10.0, 15.0, 20.0, 30.0, 40.0];

const NWC: Sharing = Sharing::Slots(SLOT_MS);
const FENCE: System = System::VIRTUAL_FENCE;

/// Table 1's rows and the disks without a fence, in the order of Figure 5. Under what shares no time stands the host's CFQ
/// (section 4.4). Below slots it is the elevator that sorts a batch: one process's queue, with nothing to take turns with.
fn variants() -> impl Iterator<Item = &'static Variant> {
    CATALOGUE.into_iter().filter(|variant| matches!(variant.kind, Kind::Unfenced | Kind::Table1))
}

/// What is tried in place of slots of 20 ms, for machines paced for those.
const OWN: [(&str, Sharing); 5] = [
    (catalogue::VIRTUAL_FENCE.name, NWC),
    ("shorter slots", Sharing::Slots(10.0)),
    ("paced, strictly by due time", Sharing::Paced(Pacing { window_ms: 0.0, ..Pacing::CHOSEN })),
    (
        "paced, constant delay",
        Sharing::Paced(Pacing { due_ms: [30.0, 0.2], after_finish: false, burst_ms: 20.0, ..Pacing::CHOSEN }),
    ),
    (catalogue::PACED.name, Sharing::Listed(&catalogue::PACED)),
];

/// The label of caches that are sized for a hit rate.
pub(crate) fn hits_label(percent: f64) -> String {
    format!("{percent} % hits")
}

impl PaperFigure {
    /// All that are reproduced, in the paper's order, and what goes beyond it.
    pub const ALL: [Self; 8] =
        [Self::One, Self::FourA, Self::FourB, Self::Five, Self::Six, Self::Seven, Self::Eight, Self::Own];

    /// Its number in the paper.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::FourA => "4a",
            Self::FourB => "4b",
            Self::Five => "5",
            Self::Six => "6",
            Self::Seven => "7",
            Self::Eight => "8",
            Self::Own => "own",
        }
    }

    /// What it shows.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::One => "Without a fence: deviation of the low-intensity VM in 4-VM heterogeneous workloads",
            Self::FourA => "VirtualFence(50 %, 20 ms), 4-VM heterogeneous workloads",
            Self::FourB => "VirtualFence(X %, 20 ms), 4-VM heterogeneous fileserver",
            Self::Five => {
                "Variants of VirtualFence(50 %, 20 ms): the low-intensity VM, heterogeneous mailserver"
            }
            Self::Six => "Four VMs of 5 % of saturation each",
            Self::Seven => "Number of slots, each VM with 5 % of saturation",
            Self::Eight => "Length of slots: the low-intensity VM in 4-VM heterogeneous workloads",
            Self::Own => {
                "Beyond the paper: virtual devices instead of slots, for the same 4-VM heterogeneous machines"
            }
        }
    }

    /// What the horizontal axis shows, where it has one.
    #[must_use]
    pub const fn axis(self) -> Option<&'static str> {
        match self {
            Self::Seven => Some("slots"),
            Self::Eight => Some("slot length, ms"),
            _ => None,
        }
    }

    /// The cases it needs of these workloads; none of a workload that it does not show.
    #[must_use]
    pub fn bars(self, workloads: &[Personality]) -> Vec<Bar> {
        workloads.iter().flat_map(|workload| self.bars_of(*workload)).collect()
    }

    fn bars_of(self, workload: Personality) -> Vec<Bar> {
        let bar = |label: &str, x: Option<f64>, case: Case| Bar {
            figure: self,
            label: label.into(),
            x,
            case,
            hdd: None,
        };
        let mixed = |label: &str, system: System| bar(label, None, Case::heterogeneous(system, workload));
        let row = |variant: &'static Variant| mixed(variant.name, System::listed(variant));
        let hit = |hit_percent: f64| {
            mixed(&hits_label(hit_percent), System::new(Store::Partitioned { hit_percent }, NWC))
        };
        match self {
            Self::One => {
                let unfenced = [&catalogue::HDD, &catalogue::SSD];
                let under_fifo = |variant: &'static Variant| {
                    let fifo = Sharing::Listed(&catalogue::FIFO);
                    mixed(
                        &format!("{}, FIFO", variant.name),
                        System::new(System::listed(variant).store, fifo),
                    )
                };
                unfenced.map(row).into_iter().chain(unfenced.map(under_fifo)).collect()
            }
            Self::FourA => vec![Bar {
                hdd: Some(Case::heterogeneous(System::listed(&catalogue::HDD), workload)),
                ..row(&catalogue::VIRTUAL_FENCE)
            }],
            Self::FourB if workload == Personality::Fileserver => [50.0, 75.0, 100.0].map(hit).into(),
            Self::Five if workload == Personality::Mailserver => variants().map(row).collect(),
            Self::FourB | Self::Five => Vec::new(),
            Self::Six => {
                let low = |system: System| Case::low(system, workload, 4);
                let mut bars = [&catalogue::HDD, &catalogue::SSD, &catalogue::VIRTUAL_FENCE]
                    .map(|variant| bar(variant.name, None, low(System::listed(variant))));
                bars[2].hdd = Some(low(System::listed(&catalogue::HDD)));
                bars.into()
            }
            Self::Seven => SLOTS
                .map(|slots| {
                    bar(catalogue::VIRTUAL_FENCE.name, Some(slots as f64), Case::low(FENCE, workload, slots))
                })
                .into(),
            Self::Eight => LENGTHS_MS
                .map(|ms| {
                    let system = System::new(FENCE.store, Sharing::Slots(ms));
                    bar(catalogue::VIRTUAL_FENCE.name, Some(ms), Case::heterogeneous(system, workload))
                })
                .into(),
            Self::Own => OWN
                .iter()
                .map(|(label, sharing)| {
                    let case = Case::heterogeneous(System::new(FENCE.store, *sharing), workload);
                    bar(label, None, if *sharing == NWC { case } else { case.under_load_of(FENCE) })
                })
                .collect(),
        }
    }

    /// The machines and metrics that are read off its cases.
    fn reads(self) -> Vec<(Machine, Metric)> {
        let of = |machine: Machine, metrics: &[Metric]| -> Vec<(Machine, Metric)> {
            metrics.iter().map(|metric| (machine, *metric)).collect()
        };
        match self {
            Self::One | Self::FourA | Self::FourB => {
                [of(Machine::Low, &Metric::ALL), of(Machine::Worst, &Metric::DEVIATIONS)].concat()
            }
            Self::Five | Self::Eight => of(Machine::Low, &Metric::ALL),
            Self::Six | Self::Seven => of(Machine::All, &Metric::ALL),
            Self::Own => [
                of(Machine::Low, &Metric::ALL),
                of(Machine::Worst, &Metric::DEVIATIONS),
                of(Machine::All, &Metric::ALL),
            ]
            .concat(),
        }
    }
}

impl Bar {
    /// The machines and metrics that are read off its case.
    pub(crate) fn reads(&self) -> Vec<(Machine, Metric)> {
        let machine = if self.figure == PaperFigure::Six { Machine::All } else { Machine::Low };
        let intensity = self.hdd.as_ref().map(|_| (machine, Metric::Intensity));
        self.figure.reads().into_iter().chain(intensity).collect()
    }

    /// Reads the rows off the case's result; `hdd` is that of [`hdd`](Self::hdd).
    #[must_use]
    pub fn rows(&self, result: &CaseResult, hdd: Option<&CaseResult>, published: &[Published]) -> Vec<Row> {
        let read = |(machine, metric)| self.row(machine, metric, result, hdd, published);
        self.reads().into_iter().filter_map(read).collect()
    }

    fn row(
        &self,
        machine: Machine,
        metric: Metric,
        result: &CaseResult,
        hdd: Option<&CaseResult>,
        published: &[Published],
    ) -> Option<Row> {
        let same = |one: &&Published| {
            one.figure == self.figure
                && one.workload == self.case.workload
                && one.system == self.label
                && one.machine == machine
                && one.metric == metric
        };
        let experiments = metric.read(machine, result, hdd)?;
        let OverExperiments { estimate: measured, range } =
            over_experiments(experiments.iter().copied(), result.seed)?;
        Some(Row {
            figure: self.figure,
            workload: self.case.workload,
            system: self.label.clone(),
            x: self.x,
            machine,
            metric,
            measured,
            range,
            experiments,
            published: published.iter().find(same).cloned(),
        })
    }
}
