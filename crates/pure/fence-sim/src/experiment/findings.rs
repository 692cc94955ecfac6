//! What the paper says of its figures' shapes, held against what was measured.

use serde::Serialize;

use super::figures::{Figure, Machine, Metric, PACED, Row};
use crate::client::Personality;

/// A sentence of the paper about a figure's shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Of which figure.
    pub figure: Figure,
    /// Of which workload.
    pub workload: Personality,
    /// What the paper says.
    pub claim: String,
    /// Whether it is so here.
    pub held: bool,
    /// The numbers.
    pub measured: String,
}

/// Figure 5's places as the text has them: the first deviates less than the second.
const ORDER: [(&str, &str); 9] = [
    ("SSD+NWC", "VirtualFence"),
    ("VirtualFence", "HDD+NWC"),
    ("VirtualFence", "Hybrid/Shared+NWC"),
    ("VirtualFence", "Hybrid/Partitioned"),
    ("HDD+NWC", "Hybrid/Shared+NWC"),
    ("HDD+NWC", "Hybrid/Partitioned"),
    ("HDD+NWC", "Hybrid/Shared"),
    ("Hybrid/Partitioned", "Hybrid/Shared"),
    ("HDD+NWC", "HDD"),
];

/// The least share of the variance that a straight line must explain to be called linear.
const LINEAR: f64 = 0.95;

/// All findings for which there are rows.
#[must_use]
pub fn findings(rows: &[Row]) -> Vec<Finding> {
    let mut found = Vec::new();
    for workload in Personality::ALL {
        let of = |figure: Figure| -> Vec<&Row> {
            rows.iter().filter(|row| row.figure == figure && row.workload == workload).collect()
        };
        found.extend(order(&of(Figure::Five), workload));
        found.extend(hit_rate(&of(Figure::FourB), workload));
        found.extend(slots(&of(Figure::Seven), workload));
        found.extend(knee(&of(Figure::Eight), workload));
        found.extend(own(&of(Figure::Own), workload));
    }
    found
}

fn mean(rows: &[&Row], label: &str, metric: Metric) -> Option<f64> {
    rows.iter().find(|row| row.system == label && row.metric == metric).map(|row| row.measured.mean)
}

fn order(rows: &[&Row], workload: Personality) -> Vec<Finding> {
    let pair = |(less, more): &(&str, &str)| {
        let metric = Metric::ResponseDeviation;
        let (low, high) = (mean(rows, less, metric)?, mean(rows, more, metric)?);
        Some(Finding {
            figure: Figure::Five,
            workload,
            claim: format!("{less} deviates less than {more} (response time)"),
            held: low < high,
            measured: format!("{low:.1} % and {high:.1} %"),
        })
    };
    ORDER.iter().filter_map(pair).collect()
}

fn hit_rate(rows: &[&Row], workload: Personality) -> Option<Finding> {
    let values: Vec<f64> = ["50 % hits", "75 % hits", "100 % hits"]
        .iter()
        .filter_map(|label| mean(rows, label, Metric::ResponseDeviation))
        .collect();
    (values.len() == 3).then(|| Finding {
        figure: Figure::FourB,
        workload,
        claim: "response time deviation decreases as the hit rate increases".into(),
        held: values.is_sorted_by(|a, b| a > b),
        measured: format!("{:.1} %, {:.1} %, {:.1} % at 50, 75, 100 % hits", values[0], values[1], values[2]),
    })
}

/// The points of a metric over the horizontal axis.
fn curve(rows: &[&Row], metric: Metric) -> Vec<(f64, f64)> {
    rows.iter()
        .filter(|row| row.metric == metric)
        .filter_map(|row| Some((row.x?, row.measured.mean)))
        .collect()
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
    let response = curve(rows, Metric::ResponseTogetherMs);
    let deviation = curve(rows, Metric::ResponseDeviation);
    let linear = line(&response).map(|(slope, explained)| Finding {
        figure: Figure::Seven,
        workload,
        claim: "response time worsens linearly with the number of slots".into(),
        held: slope > 0.0 && explained >= LINEAR,
        measured: format!("{slope:.1} ms a slot; a straight line explains {:.1} %", explained * 100.0),
    });
    let falling = line(&deviation).map(|(slope, _)| Finding {
        figure: Figure::Seven,
        workload,
        claim: "response time deviation decreases slowly with the number of slots".into(),
        held: slope < 0.0,
        measured: format!("{slope:.2} percentage points a slot: {}", listed(&deviation)),
    });
    linear.into_iter().chain(falling).collect()
}

fn listed(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{y:.1} % at {x}")).collect::<Vec<_>>().join(", ")
}

fn knee(rows: &[&Row], workload: Personality) -> Option<Finding> {
    let deviation = curve(rows, Metric::ResponseDeviation);
    let at = |ms: f64| deviation.iter().find(|(x, _)| *x == ms).map(|(_, y)| *y);
    let (ten, twenty, forty) = (at(10.0)?, at(20.0)?, at(40.0)?);
    Some(Finding {
        figure: Figure::Eight,
        workload,
        claim: "10 to 20 ms reduces deviation much, 20 to 40 ms much more slowly: the knee is at 20 ms"
            .into(),
        // A millisecond more saves more below 20 ms than above.
        held: ten > twenty && (ten - twenty) / 10.0 > (twenty - forty) / 20.0,
        measured: listed(&deviation),
    })
}

/// By how much a scheduler of our own is to lower response times.
const LOWER: f64 = 0.25;

/// Our own aim, not the paper's.
fn own(rows: &[&Row], workload: Personality) -> Vec<Finding> {
    let value = |label: &str, machine: Machine, metric: Metric| {
        let row = |row: &&&Row| row.system == label && row.machine == machine && row.metric == metric;
        rows.iter().find(row).map(|row| row.measured.mean)
    };
    let machine = |machine: Machine| {
        let pair = |metric| Some((value("VirtualFence", machine, metric)?, value(PACED, machine, metric)?));
        let (fence_ms, own_ms) = pair(Metric::ResponseTogetherMs)?;
        let (fence, own) = pair(Metric::ResponseDeviation)?;
        let (fence_throughput, own_throughput) = pair(Metric::ThroughputDeviation)?;
        let lower = 1.0 - own_ms / fence_ms;
        Some(Finding {
            figure: Figure::Own,
            workload,
            claim: format!(
                "our aim, {}: response time lower by 25 % or more, at no more deviation than VirtualFence's",
                machine.name()
            ),
            held: lower >= LOWER && own <= fence && own_throughput <= fence_throughput,
            measured: format!(
                "{fence_ms:.1} ms to {own_ms:.1} ms, {:.0} % lower; response time deviation {fence:.1} % to {own:.1} %, \
                 throughput {fence_throughput:.1} % to {own_throughput:.1} %",
                lower * 100.0
            ),
        })
    };
    [Machine::Low, Machine::Each].into_iter().filter_map(machine).collect()
}
