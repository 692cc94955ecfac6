//! Experiments that say what a miss hangs on: its own case again, with one assumption changed at a time.
//!
//! What is not as the paper says: by how much, and what that hangs on.
//!
//! Nothing is said that was not measured with these settings: a value outside its band is read off again with one assumption
//! changed at a time, a sentence has the interval that it was judged by.

use serde::Serialize;
use virtbench_fence::catalogue;
use virtbench_fence_evaluation::{
    Bar, Finding, PaperFigure, Published, Row, Saturating, Settings, Sharing, Store, Verdict,
};
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::disk::{HddModel, SsdModel, SsdProfile};
use virtbench_report::FenceTable;

/// The fewest virtual disks that share the devices of the paper.
const PARTITIONS: u64 = 4;

/// Runs of what is changed: enough to see what a miss hangs on.
const CHANGED_REPLICATIONS: u32 = 2;

/// Another hard disk's revolutions a minute, and those in its place where that is the one simulated.
const OTHER_RPM: [f64; 2] = [15_000.0, 7_200.0];

/// Another size of the accesses that predictors are calibrated with, bytes.
const OTHER_CALIBRATION: u64 = 64 << 10;

/// What holds for all figures of these settings.
pub fn cautions(settings: &Settings) -> Vec<String> {
    let gb = |bytes: u64| {
        format!("{:.3}", bytes as f64 / 1e9).trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let disk_bytes = settings
        .disk_bytes
        .unwrap_or(settings.hdd.capacity_bytes.min(settings.ssd.capacity_bytes) / PARTITIONS);
    vec![
        "Disks are models of data-sheet figures; a file access is its data alone, without the inode and indirect blocks of \
         a real file system: ratios, not absolute times, compare."
            .to_owned(),
        format!(
            "The paper gives neither the size of its virtual disks nor its thread counts. Four virtual disks are of {} GB \
             here, on a hard disk of {} GB. Threads are as few as let each think at least as long as it waits, which is \
             what Figure 5's pairs of deviations imply.",
            gb(disk_bytes),
            gb(settings.hdd.capacity_bytes)
        ),
        "Systems without slots have Linux's CFQ over each device, a process for each machine's driver, as the paper's host \
         has; where the cache is shared one process issues everything. Devices serve one command at a time: without \
         command queueing."
            .to_owned(),
        match settings.saturating {
            Saturating::One => {
                "Saturation is that of one machine alone (times the slots where slots stay idle); behind a shared cache \
                 it is that of all machines, since one alone would have the whole cache."
            }
            Saturating::All => "Saturation is that of all machines at once.",
        }
        .to_owned(),
        format!(
            "Writes are waited for, without flushes; a guest's page cache answers {:.0} % of reads.",
            settings.page_cache_hits * 100.0
        ),
        format!(
            "File sets are of {:.0} MB a machine and of uniform popularity, so that caches are warm at once; caches are \
             filled before time begins and sized to the hit rate in simulation.",
            settings.file_set_bytes as f64 / 1e6
        ),
        "The predictor knows each disk's own last access, as a driver instance does, and has a corner for streaming \
         accesses beyond the paper's random batches."
            .to_owned(),
        "Virtual devices (beyond the paper) hold finished answers back until they are due, and keep their promise only as \
         long as the hard disk keeps up: they count on sorting over all disks, which saves less where partitions lie \
         far apart. Their parameters were chosen on seed 1."
            .to_owned(),
    ]
}

/// An assumption that is changed.
pub struct Change {
    /// What it is, in a few words.
    pub name: String,
    /// The settings with it.
    pub settings: Settings,
    /// What is run with it.
    pub bar: Bar,
}

/// A value outside its band, read off again with each assumption changed.
pub struct Explanation {
    /// What is changed, and the value.
    pub values: Vec<(String, f64)>,
}

/// A bar with each assumption changed that can matter to it.
pub fn changes(settings: &Settings, bar: &Bar) -> Vec<Change> {
    let fewer = Settings { replications: settings.replications.min(CHANGED_REPLICATIONS), ..*settings };
    let change = |name: String, settings: Settings| Change { name, settings, bar: bar.clone() };
    let system = bar.case.system;
    let (slow, fast) = (!matches!(system.store, Store::Ssd), !matches!(system.store, Store::Hdd));
    let mut changes =
        vec![change("another seed".to_owned(), Settings { seed: settings.seed.wrapping_add(1), ..fewer })];
    if !matches!(system.store, Store::Shared { .. }) {
        let (name, saturating) = match settings.saturating {
            Saturating::One => ("saturation of all machines at once", Saturating::All),
            Saturating::All => ("saturation of one machine alone", Saturating::One),
        };
        changes.push(change(name.to_owned(), Settings { saturating, ..fewer }));
    }
    if slow {
        let whole = settings.hdd.capacity_bytes / PARTITIONS.max(bar.case.shares.len() as u64);
        let name = format!("virtual disks of {:.0} GB: the whole hard disk", whole as f64 / 1e9);
        changes.push(change(name, Settings { disk_bytes: Some(whole), ..fewer }));
        let rpm = if settings.hdd.rpm == OTHER_RPM[0] { OTHER_RPM[1] } else { OTHER_RPM[0] };
        let hdd = HddModel { rpm, ..settings.hdd };
        changes.push(change(format!("hard disk at {rpm:.0} rpm"), Settings { hdd, ..fewer }));
    }
    if fast {
        let spec = SsdModel::new(SsdProfile::Spec);
        let (name, ssd) = if settings.ssd == spec {
            ("SSD as its batches were measured (paper-fit)", SsdModel::new(SsdProfile::PaperFit))
        } else {
            ("SSD of the data sheet (spec)", spec)
        };
        changes.push(change(name.to_owned(), Settings { ssd, ..fewer }));
    }
    if system.is_under_host() {
        let mut fifo = change("FIFO in place of CFQ".to_owned(), fewer);
        fifo.bar.case.system.sharing = Sharing::Listed(&catalogue::FIFO);
        changes.push(fifo);
    } else if settings.calibration_bytes != OTHER_CALIBRATION {
        let name = format!("predictors calibrated with {} KiB accesses", OTHER_CALIBRATION >> 10);
        changes.push(change(name, Settings { calibration_bytes: OTHER_CALIBRATION, ..fewer }));
    }
    changes
}

/// One value outside its band, or one sentence that does not hold.
#[derive(Debug, Serialize)]
pub struct Miss {
    figure: PaperFigure,
    workload: Personality,
    what: String,
    by_how_much: String,
    why: String,
    experiments: String,
}

/// A value outside its band, with what it is when assumptions are changed.
pub fn value(row: &Row, published: &Published, explanation: &Explanation) -> Miss {
    let (metric, unit) = (row.metric, row.metric.unit());
    let outside = published.outside(row.measured.mean);
    let side = if outside > 0.0 { "above" } else { "below" };
    let points = if unit == "%" { "points" } else { unit };
    let place = row.x.map_or_else(String::new, |x| format!(" at {x}"));
    let text = |(name, value): &(String, f64)| format!("{name}: {value:.1} {unit}");
    let experiments: Vec<String> = explanation.values.iter().map(text).collect();
    Miss {
        figure: row.figure,
        workload: row.workload,
        what: format!("{}{place}, {}, {}", row.system, row.machine.name(), metric.name()),
        by_how_much: format!("{:.1} {unit}, {:.1} {points} {side}", row.measured.mean, outside.abs()),
        why: why(row.measured.mean, published, explanation),
        experiments: experiments.join("; "),
    }
}

/// Which change brings the value into its band.
fn why(measured: f64, published: &Published, explanation: &Explanation) -> String {
    let values = || explanation.values.iter().filter(|(_, value)| value.is_finite());
    let within: Vec<&str> = values()
        .filter(|(_, value)| published.outside(*value) == 0.0)
        .map(|(name, _)| name.as_str())
        .collect();
    if !within.is_empty() {
        return format!("It hangs on an assumption: in its band with {}.", within.join("; or "));
    }
    let far = |value: f64| published.outside(value).abs();
    match values().min_by(|(_, a), (_, b)| far(*a).total_cmp(&far(*b))) {
        Some((name, value)) if far(*value) < far(measured) => {
            format!("No single change that was tried brings it into its band; nearest comes {name}.")
        }
        _ => "Not explained: no single change that was tried brings it nearer to its band.".to_owned(),
    }
}

/// A sentence that does not hold; nothing for one that does.
pub fn sentence(finding: &Finding) -> Option<Miss> {
    let why = match finding.verdict {
        Verdict::Held => return None,
        Verdict::NotHeld => {
            "Refuted: the 95 % interval of the differences by experiment lies on the other side."
        }
        Verdict::Undecided => {
            "Undecided: the 95 % interval of the differences by experiment has both signs, or there is none; more \
             --replications narrow it."
        }
    };
    Some(Miss {
        figure: finding.figure,
        workload: finding.workload,
        what: finding.claim.clone(),
        by_how_much: finding.measured.clone(),
        why: why.to_owned(),
        experiments: String::new(),
    })
}

/// As a table of the page and of the text.
pub fn table(misses: &[Miss]) -> Option<FenceTable> {
    let cells = |miss: &Miss| {
        vec![
            miss.figure.name().to_owned(),
            miss.workload.name().to_owned(),
            miss.what.clone(),
            miss.by_how_much.clone(),
            miss.why.clone(),
            miss.experiments.clone(),
        ]
    };
    (!misses.is_empty()).then(|| FenceTable {
        title: "What is not as published, and what that hangs on".to_owned(),
        caption: "Each value outside its band, measured again with one assumption changed at a time, and each sentence \
                  that does not hold or is undecided. docs/deviation.md discusses the misses of the default settings."
            .to_owned(),
        header: ["figure", "workload", "what", "by how much", "what it hangs on", "with one assumption changed"]
            .map(str::to_owned)
            .into(),
        rows: misses.iter().map(cells).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Published {
        let text = r#"{"figure": "1", "workload": "webserver", "system": "HDD", "machine": "low",
            "metric": "response_deviation", "at_least": 300, "at_most": 400, "quote": ""}"#;
        serde_json::from_str(text).unwrap()
    }

    fn said(values: &[(&str, f64)]) -> String {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        why(450.0, &published(), &Explanation { values })
    }

    #[test]
    fn an_explanation_is_what_the_changed_runs_say() {
        assert!(said(&[("one", 420.0), ("other", 350.0)]).ends_with("in its band with other."));
        assert!(said(&[("one", 420.0), ("other", 470.0)]).ends_with("nearest comes one."));
        assert!(said(&[("one", 480.0)]).starts_with("Not explained"));
        assert!(said(&[]).starts_with("Not explained"));
    }
}
