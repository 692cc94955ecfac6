//! What is not as the paper says: by how much, the best explanation, and the experiments that bear it.

use serde::Serialize;
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::experiment::{Figure, Finding, Metric, Row};
use virtbench_report::FenceTable;

use super::explain::Explanation;

/// One value outside its band, or one sentence that does not hold.
#[derive(Debug, Serialize)]
pub struct Miss {
    figure: Figure,
    workload: Personality,
    what: String,
    by_how_much: String,
    why: &'static str,
    experiments: String,
}

/// An explanation with the systems whose changed runs bear it.
struct Reason {
    why: &'static str,
    systems: &'static [&'static str],
}

const SHORT_WAYS: Reason = Reason {
    why: "A file access is its data alone, and virtual disks are as small as the SSD allows, so that the head's ways are \
          short; the paper's accesses also read inodes. Response times on the larger disk come nearer.",
    systems: &["HDD"],
};
const HEADS_WAY: Reason = Reason {
    why: "In company the head comes back from the other partitions, which a machine that is alone does not pay, and \
          rotation cannot be predicted: slots overrun. It grows with the distance between partitions and falls with the \
          hard disk's load.",
    systems: &["VirtualFence"],
};
const FAST_SSD: Reason = Reason {
    why: "Little queues at this share of the model's saturation, and reads alone wait for no erasure. The slower profile of \
          the measured batches brings it no nearer: why the paper's drive queued more stays open.",
    systems: &["SSD"],
};
const SHORT_ACCESSES: Reason = Reason {
    why: "Accesses on the modelled devices are shorter than the paper's; with the SSD as its batches were measured they \
          take as long or longer.",
    systems: &["VirtualFence"],
};
const MORE_MACHINES: Reason = Reason {
    why: "More slots are more machines here, each with 5 % of saturation, and more partitions for the head to come back \
          from; that outweighs the shorter share of a rotation that an overrun takes. The intervals of 4 to 8 slots overlap.",
    systems: &["VirtualFence, 2 slots", "VirtualFence, 8 slots"],
};
const ALL_READS: Reason = Reason {
    why: "The web server only reads, half of it from the hard disk, whose promise adds 20 ms to the virtual device's own \
          time; the low machine waits for little else. With less load on the hard disk it gains more.",
    systems: &["VirtualFence", "paced"],
};
const UNEXPLAINED: Reason =
    Reason { why: "It is not explained: no experiment here was made for it.", systems: &[] };

fn reason(figure: Figure, system: &str, metric: Metric) -> Reason {
    match (figure, system) {
        (Figure::Own, _) => ALL_READS,
        (Figure::Seven, _) => MORE_MACHINES,
        (_, "VirtualFence") if metric == Metric::ResponseAloneMs => SHORT_ACCESSES,
        (_, "HDD") => SHORT_WAYS,
        (_, "SSD") => FAST_SSD,
        (_, "VirtualFence" | "50 % hits" | "75 % hits" | "100 % hits") => HEADS_WAY,
        _ => UNEXPLAINED,
    }
}

/// All of them.
pub fn misses(rows: &[Row], findings: &[Finding], explanations: &[Explanation]) -> Vec<Miss> {
    let values = rows.iter().filter_map(|row| {
        let outside = row.outside().filter(|outside| *outside != 0.0)?;
        let (metric, unit) = (row.metric, row.metric.unit());
        let side = if outside > 0.0 { "above" } else { "below" };
        let points = if unit == "%" { "points" } else { unit };
        let Reason { why, systems } = reason(row.figure, &row.system, metric);
        Some(Miss {
            figure: row.figure,
            workload: row.workload,
            what: format!("{}, {}, {}", row.system, row.machine.name(), metric.name()),
            by_how_much: format!("{:.1} {unit}, {:.1} {points} {side}", row.measured.mean, outside.abs()),
            why,
            experiments: experiments(explanations, systems, row.workload, metric),
        })
    });
    let sentences = findings.iter().filter(|finding| !finding.held).map(|finding| {
        let metric = match finding.figure {
            Figure::Own => Metric::ResponseTogetherMs,
            _ => Metric::ResponseDeviation,
        };
        let Reason { why, systems } = reason(finding.figure, "", metric);
        Miss {
            figure: finding.figure,
            workload: finding.workload,
            what: finding.claim.clone(),
            by_how_much: finding.measured.clone(),
            why,
            experiments: experiments(explanations, systems, finding.workload, metric),
        }
    });
    values.chain(sentences).collect()
}

/// What the low machine's metric is with each change.
fn experiments(
    explanations: &[Explanation],
    systems: &[&str],
    workload: Personality,
    metric: Metric,
) -> String {
    let value = |one: &Explanation| format!("{:.1} {}", one.value(metric), metric.unit());
    let changes = explanations.iter().filter(|one| one.is_of(systems, workload));
    let texts: Vec<String> = match systems {
        [_, _] => changes.map(|one| format!("{}, {}: {}", one.changed, one.system, value(one))).collect(),
        _ => changes.map(|one| format!("{}: {}", one.changed, value(one))).collect(),
    };
    if texts.is_empty() { String::new() } else { format!("low machine, {}", texts.join("; ")) }
}

/// As a table of the page and of the text.
pub fn table(misses: &[Miss]) -> Option<FenceTable> {
    let cells = |miss: &Miss| {
        vec![
            miss.figure.name().to_owned(),
            miss.workload.name().to_owned(),
            miss.what.clone(),
            miss.by_how_much.clone(),
            miss.why.to_owned(),
            miss.experiments.clone(),
        ]
    };
    (!misses.is_empty()).then(|| FenceTable {
        title: "What is not as published, and why".to_owned(),
        caption: "Each value outside its band and each sentence that does not hold: by how much, the best explanation, \
                  and what the low-intensity machine of the 4-VM heterogeneous workload (in figure 7: the first of \
                  its machines) does with one assumption changed at a time."
            .to_owned(),
        header: ["figure", "workload", "what", "by how much", "best explanation", "experiments"]
            .map(str::to_owned)
            .into(),
        rows: misses.iter().map(cells).collect(),
    })
}
