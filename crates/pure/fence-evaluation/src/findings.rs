//! What the paper says of its figures' shapes, held against what was measured.
//!
//! A sentence is judged by intervals, not by means. Experiments of one number have the same seed on every system, so
//! that the difference of two systems is taken experiment by experiment; a sentence is held where the 95 % interval of
//! the mean difference lies on its side, refuted where it lies on the other, and else undecided.

use serde::Serialize;
use virtbench_fence::catalogue::{
    HDD, HDD_SLOTS, HYBRID_PARTITIONED, HYBRID_SHARED, HYBRID_SHARED_SLOTS, PACED, SSD_SLOTS, VIRTUAL_FENCE,
    Variant,
};
use virtbench_model::mean_interval;

use crate::figures::{Row, hits_label};
use crate::metric::{Machine, Metric, PaperFigure};
use virtbench_fence_sim::client::Personality;

/// What measurement says of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval lies on its side.
    Held,
    /// The interval lies on the other side.
    NotHeld,
    /// The interval lies on both, or there is none.
    Undecided,
}

impl Verdict {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::NotHeld => "not held",
            Self::Undecided => "undecided",
        }
    }

    /// Whether values are above zero, by the interval of their mean.
    fn positive(values: &[f64]) -> Self {
        match mean_interval(values, 0).and_then(|estimate| estimate.span()) {
            Some(span) if span.low > 0.0 => Self::Held,
            Some(span) if span.high <= 0.0 => Self::NotHeld,
            _ => Self::Undecided,
        }
    }

    /// Of several that all have to hold.
    fn all(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().fold(Self::Held, |all, one| match (all, one) {
            (Self::NotHeld, _) | (_, Self::NotHeld) => Self::NotHeld,
            (Self::Held, Self::Held) => Self::Held,
            _ => Self::Undecided,
        })
    }
}

/// A sentence of the paper about a figure's shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Of which figure.
    pub figure: PaperFigure,
    /// Of which workload.
    pub workload: Personality,
    /// What the paper says.
    pub claim: String,
    /// Whether it is so here.
    pub verdict: Verdict,
    /// The numbers.
    pub measured: String,
}

/// Figure 5's places as the text has them: the first deviates less than the second.
const ORDER: [(&Variant, &Variant); 9] = [
    (&SSD_SLOTS, &VIRTUAL_FENCE),
    (&VIRTUAL_FENCE, &HDD_SLOTS),
    (&VIRTUAL_FENCE, &HYBRID_SHARED_SLOTS),
    (&VIRTUAL_FENCE, &HYBRID_PARTITIONED),
    (&HDD_SLOTS, &HYBRID_SHARED_SLOTS),
    (&HDD_SLOTS, &HYBRID_PARTITIONED),
    (&HDD_SLOTS, &HYBRID_SHARED),
    (&HYBRID_PARTITIONED, &HYBRID_SHARED),
    (&HDD_SLOTS, &HDD),
];

/// The least share of the variance that a straight line must explain to be called linear.
const LINEAR: f64 = 0.95;

/// All findings for which there are rows.
#[must_use]
pub fn findings(rows: &[Row]) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in Personality::ALL {
        let of = |figure: PaperFigure| -> Vec<&Row> {
            rows.iter().filter(|row| row.figure == figure && row.workload == workload).collect()
        };
        found.extend(order(&of(PaperFigure::Five), workload));
        found.extend(hit_rate(&of(PaperFigure::FourB), workload));
        found.extend(slots(&of(PaperFigure::Seven), workload));
        found.extend(knee(&of(PaperFigure::Eight), workload));
        found.extend(own(&of(PaperFigure::Own), workload));
    }
    found
}

fn row<'a>(rows: &[&'a Row], label: &str, machine: Machine, metric: Metric) -> Option<&'a Row> {
    rows.iter().find(|row| row.system == label && row.machine == machine && row.metric == metric).copied()
}

/// By how much the second is above the first, by experiment.
fn above(less: &Row, more: &Row) -> Vec<f64> {
    less.experiments.iter().zip(&more.experiments).map(|(less, more)| more - less).collect()
}

fn order(rows: &[&Row], workload: Personality) -> Vec<Finding> {
    let pair = |(less, more): &(&Variant, &Variant)| {
        let [less, more] = [less.name, more.name];
        let of = |label: &str| row(rows, label, Machine::Low, Metric::ResponseDeviation);
        let (low, high) = (of(less)?, of(more)?);
        Some(Finding {
            figure: PaperFigure::Five,
            workload,
            claim: format!("{less} deviates less than {more} (response time)"),
            verdict: Verdict::positive(&above(low, high)),
            measured: format!("{:.1} % and {:.1} %", low.measured.mean, high.measured.mean),
        })
    };
    ORDER.iter().filter_map(pair).collect()
}

fn hit_rate(rows: &[&Row], workload: Personality) -> Option<Finding> {
    let of = |percent: f64| row(rows, &hits_label(percent), Machine::Low, Metric::ResponseDeviation);
    let (half, most, all) = (of(50.0)?, of(75.0)?, of(100.0)?);
    Some(Finding {
        figure: PaperFigure::FourB,
        workload,
        claim: "response time deviation decreases as the hit rate increases".into(),
        verdict: Verdict::all([(most, half), (all, most)].map(|(a, b)| Verdict::positive(&above(a, b)))),
        measured: format!(
            "{:.1} %, {:.1} %, {:.1} % at 50, 75, 100 % hits",
            half.measured.mean, most.measured.mean, all.measured.mean
        ),
    })
}

/// A metric over the horizontal axis.
struct Curve<'a>(Vec<(f64, &'a Row)>);

impl<'a> Curve<'a> {
    fn new(rows: &[&'a Row], metric: Metric) -> Self {
        let points = rows.iter().filter(|row| row.metric == metric);
        Self(points.filter_map(|row| Some((row.x?, *row))).collect())
    }

    fn at(&self, x: f64) -> Option<&'a Row> {
        self.0.iter().find(|(place, _)| *place == x).map(|(_, row)| *row)
    }

    fn means(&self) -> Vec<(f64, f64)> {
        self.0.iter().map(|(x, row)| (*x, row.measured.mean)).collect()
    }

    /// The slope of the line through each experiment's points.
    fn slopes(&self) -> Vec<f64> {
        let experiments = self.0.iter().map(|(_, row)| row.experiments.len()).min().unwrap_or(0);
        let points =
            |place: usize| self.0.iter().map(|(x, row)| (*x, row.experiments[place])).collect::<Vec<_>>();
        (0..experiments).filter_map(|place| Some(line(&points(place))?.0)).collect()
    }

    /// By how much it falls a unit of the axis from one place to another, by experiment.
    fn falls(&self, from: f64, to: f64) -> Option<Vec<f64>> {
        let falls = above(self.at(to)?, self.at(from)?);
        Some(falls.into_iter().map(|fall| fall / (to - from)).collect())
    }

    fn listed(&self) -> String {
        self.means().iter().map(|(x, y)| format!("{y:.1} % at {x}")).collect::<Vec<_>>().join(", ")
    }
}

/// Slope, and share of the variance explained, of the least-squares line.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let xy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    let (xx, yy): (f64, f64) =
        points.iter().fold((0.0, 0.0), |(xx, yy), p| (xx + (p.0 - mx).powi(2), yy + (p.1 - my).powi(2)));
    (points.len() >= 3 && xx > 0.0 && yy > 0.0).then(|| (xy / xx, xy * xy / (xx * yy)))
}

fn slots(rows: &[&Row], workload: Personality) -> Vec<Finding> {
    let response = Curve::new(rows, Metric::ResponseTogetherMs);
    let deviation = Curve::new(rows, Metric::ResponseDeviation);
    let linear = line(&response.means()).map(|(slope, explained)| Finding {
        figure: PaperFigure::Seven,
        workload,
        claim: "response time worsens linearly with the number of slots".into(),
        verdict: Verdict::all([
            Verdict::positive(&response.slopes()),
            if explained >= LINEAR { Verdict::Held } else { Verdict::NotHeld },
        ]),
        measured: format!("{slope:.1} ms a slot; a straight line explains {:.1} %", explained * 100.0),
    });
    let falling = line(&deviation.means()).map(|(slope, _)| Finding {
        figure: PaperFigure::Seven,
        workload,
        claim: "response time deviation decreases slowly with the number of slots".into(),
        verdict: Verdict::positive(&deviation.slopes().iter().map(|slope| -slope).collect::<Vec<_>>()),
        measured: format!("{slope:.2} percentage points a slot: {}", deviation.listed()),
    });
    linear.into_iter().chain(falling).collect()
}

/// The curve falls from 10 to 20 ms, and a millisecond there brings more than in any part above.
fn knee(rows: &[&Row], workload: Personality) -> Option<Finding> {
    let deviation = Curve::new(rows, Metric::ResponseDeviation);
    let below = deviation.falls(10.0, 20.0)?;
    let steeper_than = |from: f64, to: f64| {
        let part = deviation.falls(from, to)?;
        Some(Verdict::positive(&below.iter().zip(part).map(|(below, part)| below - part).collect::<Vec<_>>()))
    };
    let verdict =
        Verdict::all([Verdict::positive(&below), steeper_than(20.0, 30.0)?, steeper_than(30.0, 40.0)?]);
    Some(Finding {
        figure: PaperFigure::Eight,
        workload,
        claim: "10 to 20 ms reduces deviation much, 20 to 40 ms much more slowly: the knee is at 20 ms"
            .into(),
        verdict,
        measured: deviation.listed(),
    })
}

/// By how much a scheduler of our own is to lower response times.
const LOWER: f64 = 0.25;

/// Our own aim, not the paper's.
fn own(rows: &[&Row], workload: Personality) -> Vec<Finding> {
    let machine = |machine: Machine| {
        let pair = |metric| {
            Some((row(rows, VIRTUAL_FENCE.name, machine, metric)?, row(rows, PACED.name, machine, metric)?))
        };
        let (fence_ms, own_ms) = pair(Metric::ResponseTogetherMs)?;
        let response = pair(Metric::ResponseDeviation)?;
        let throughput = pair(Metric::ThroughputDeviation)?;
        let lower: Vec<f64> = fence_ms
            .experiments
            .iter()
            .zip(&own_ms.experiments)
            .map(|(fence, own)| fence * (1.0 - LOWER) - own)
            .collect();
        let less = |(fence, own): (&Row, &Row)| Verdict::positive(&above(own, fence));
        Some(Finding {
            figure: PaperFigure::Own,
            workload,
            claim: format!(
                "our aim, {}: response time lower by 25 % or more, at less deviation than VirtualFence's",
                machine.name()
            ),
            verdict: Verdict::all([Verdict::positive(&lower), less(response), less(throughput)]),
            measured: format!(
                "{:.1} ms to {:.1} ms, {:.0} % lower; response time deviation {:.1} % to {:.1} %, throughput \
                 {:.1} % to {:.1} %",
                fence_ms.measured.mean,
                own_ms.measured.mean,
                (1.0 - own_ms.measured.mean / fence_ms.measured.mean) * 100.0,
                response.0.measured.mean,
                response.1.measured.mean,
                throughput.0.measured.mean,
                throughput.1.measured.mean,
            ),
        })
    };
    [Machine::Low, Machine::All].into_iter().filter_map(machine).collect()
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
