use std::collections::BTreeSet;

use virtbench_fence::{DiskId, Fence, PredictionErrors, SlotAccount, Tally, Time, TokenAccount};

use super::intervals::Steadiness;
use super::*;

fn is_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == ':');
    begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

/// The labels in `{...}` by OpenMetrics' grammar: names and what they are, unescaped.
fn labels(text: &str) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{text}"));
        assert!(is_name(name) && !name.contains(':'), "{text}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().unwrap_or_else(|| panic!("{text}: not closed")) {
                (at, '"') => break at,
                (_, '\\') => match chars.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, c @ ('\\' | '"'))) => value.push(c),
                    other => panic!("{text}: {other:?} is escaped"),
                },
                (_, c) => value.push(c),
            }
        };
        labels.push((name.to_owned(), value));
        rest = &after[end + 1..];
        if !rest.is_empty() {
            rest = rest.strip_prefix(',').filter(|rest| !rest.is_empty()).unwrap_or_else(|| panic!("{text}"));
        }
    }
    let names: BTreeSet<&String> = labels.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), labels.len(), "{text}: a label twice");
    labels
}

/// Holds a text to the rules of OpenMetrics 1.0 for counters and gauges. How many samples it has.
fn check_strictly(text: &str) -> usize {
    let body = text.strip_suffix("# EOF\n").expect("no end");
    assert!(body.is_empty() || body.ends_with('\n'));
    let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
    let (mut family, mut kind, mut said, mut in_family) = (String::new(), String::new(), Vec::new(), 0);
    for line in body.lines() {
        assert!(!line.is_empty() && line.trim() == line && !line.contains("  "), "{line:?}");
        if let Some(about) = line.strip_prefix("# ") {
            let [what, name, text] = about.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            if name != family {
                assert!(said.is_empty() || in_family > 0, "{family} has no samples");
                assert!(is_name(name) && families.insert(name.to_owned()), "{line}: again");
                (family, kind, said, in_family) = (name.to_owned(), String::new(), Vec::new(), 0);
            }
            assert!(in_family == 0 && !said.contains(&what), "{line}: too late or twice");
            said.push(what);
            match what {
                "TYPE" => kind = text.to_owned(),
                "UNIT" => assert!(name.ends_with(&format!("_{text}")), "{line}"),
                "HELP" => assert!(!text.contains(['\\', '\n']), "{line}"),
                _ => panic!("{line}"),
            }
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap();
        let (name, rest) = sample.split_once('{').unwrap();
        labels(rest.strip_suffix('}').unwrap());
        let number: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        match kind.as_str() {
            "counter" => {
                assert!(name.strip_suffix("_total") == Some(&family) && number >= 0.0, "{line}");
            }
            "gauge" => assert!(name == family && !name.ends_with("_total"), "{line}"),
            _ => panic!("{line}: of type {kind:?}"),
        }
        assert!(number.is_finite() && samples.insert(sample.to_owned()), "{line}");
        in_family += 1;
    }
    samples.len()
}

#[test]
#[should_panic(expected = "too late or twice")]
fn the_check_itself_finds_a_family_that_goes_on_after_its_samples() {
    check_strictly("# TYPE a gauge\na{b=\"c\"} 1\n# HELP a Late.\n# EOF\n");
}

fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found == format!("virtbench_fence_{line}")), "{line}\n{text}");
    }
}

fn set(figures: &Metrics, disk: usize, account: Account, so_far: SoFar) {
    *figures.disks[disk].stand.lock().unwrap() = Stand { account: Some(account), so_far };
}

#[test]
fn figures_are_served_as_they_are_counted() {
    let figures = Metrics::new(["web".to_owned(), "db".to_owned()].into_iter(), 2);
    figures.completed(0, Action::Read, 4096, 1_500_000, true);
    figures.completed(0, Action::Write { fua: false }, 4096, 1_000, false);
    figures.disks[0].under_way.set(3);
    let cache = CacheCounts { blocks: 9, free: 4, hits: 7, misses: 1, ..CacheCounts::default() };
    figures.caches_stand([cache].into_iter());
    let account = SlotAccount {
        slots: 12,
        used: 5,
        credit: Tally { count: 3, sum_ns: 7_000_000 },
        overrun: Tally { count: 2, sum_ns: 3_500_000_001 },
        balance_ns: -2_500_000,
        predictions: [
            PredictionErrors {
                batches: 4,
                predicted_ns: 8_000_000,
                measured_ns: 7_000_000,
                absolute_ns: 3_000_000,
            },
            PredictionErrors::default(),
        ],
    };
    let steady = Steadiness { intervals: 9, variation: Some(0.25), spread: Some(1.5), deviation: None };
    let none = Steadiness::default();
    let so_far = [[steady, none], [none, Steadiness { deviation: Some(0.125), ..steady }]];
    set(&figures, 0, Account::Slots(account), so_far);
    set(&figures, 1, Account::Tokens(TokenAccount { ios_ns: Some(-1), bytes_ns: None }), SoFar::default());
    let address = serve("127.0.0.1:0".parse().unwrap(), Board::new(figures)).unwrap();
    let text = fetch(address).unwrap();
    assert!(check_strictly(&text) > 40);
    has(
        &text,
        &[
            "requests_total{disk=\"web\",kind=\"read\"} 1",
            "bytes_total{disk=\"web\",kind=\"write\"} 0",
            "response_seconds_total{disk=\"web\",kind=\"read\"} 0.001500000",
            "response_quantile_seconds{disk=\"web\",kind=\"read\",over=\"minute\",quantile=\"0.99\"} 0.001490944",
            "response_quantile_seconds{disk=\"web\",kind=\"read\",over=\"all\",quantile=\"0.5\"} 0.001490944",
            "response_quantile_seconds{disk=\"web\",kind=\"write\",over=\"all\",quantile=\"0.99\"} 0.000001000",
            "errors_total{disk=\"web\"} 1",
            "under_way{disk=\"web\"} 3",
            "slots_total{disk=\"web\"} 12",
            "slots_used_total{disk=\"web\"} 5",
            "slot_credits_total{disk=\"web\"} 3",
            "slot_credit_seconds_total{disk=\"web\"} 0.007000000",
            "slot_overruns_total{disk=\"web\"} 2",
            "slot_overrun_seconds_total{disk=\"web\"} 3.500000001",
            "slot_balance_seconds{disk=\"web\"} -0.002500000",
            "batches_total{disk=\"web\",device=\"slow\"} 4",
            "batch_predicted_seconds_total{disk=\"web\",device=\"slow\"} 0.008000000",
            "batch_seconds_total{disk=\"web\",device=\"slow\"} 0.007000000",
            "prediction_error_seconds{disk=\"web\",device=\"slow\"} -0.000250000",
            "prediction_absolute_error_seconds{disk=\"web\",device=\"slow\"} 0.000750000",
            "tokens_seconds{disk=\"db\",bucket=\"ios\"} -0.000000001",
            "intervals{disk=\"web\",of=\"throughput\",over=\"minute\"} 9",
            "variation_ratio{disk=\"web\",of=\"throughput\",over=\"minute\"} 0.250000",
            "spread_ratio{disk=\"web\",of=\"response\",over=\"all\"} 1.500000",
            "deviation_ratio{disk=\"web\",of=\"response\",over=\"all\"} 0.125000",
            "cache_blocks{partition=\"0\",state=\"free\"} 4",
            "cache_reads_total{partition=\"0\",state=\"hit\"} 7",
            "cache_hit_ratio{partition=\"0\"} 0.875000",
            "cache_degraded{partition=\"0\",state=\"read_only\"} 0",
        ],
    );
    assert!(!text.contains("cache_hit_ratio{partition=\"1\"}"), "nothing was read there");
    assert!(!text.contains("response_quantile_seconds{disk=\"db\""), "nothing was answered there");
    assert!(!text.contains("deviation_ratio{disk=\"web\",of=\"throughput\""), "nothing is known alone");
}

/// A fence's own accounts arrive, and seconds are counted from what is counted.
#[test]
fn what_the_loop_publishes_is_what_the_fence_keeps() {
    use virtbench_fence::predict::{FastPredictor, Predictors, SlowPredictor};
    use virtbench_fence::slots::{SlotOwner, SlotsConfig};
    use virtbench_fence::{Backing, Config, DeviceConfig, DiskConfig, SchedulerConfig};

    let fast = FastPredictor { base_ns: 0.0, per_io_ns: 1e6 };
    let slots = SlotsConfig {
        owners: vec![SlotOwner::Disk(DiskId(0)), SlotOwner::Unassigned],
        slot_ns: 20_000_000,
        predict: Predictors { slow: SlowPredictor::new(Vec::new(), 0), fast },
        max_batch: 8,
    };
    let device = DeviceConfig { size_bytes: 1 << 20, depth: 8 };
    let config = Config {
        disks: vec![DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes: 1 << 20 }],
        slow: device,
        fast: device,
        backing: Backing::Fast,
        scheduler: SchedulerConfig::Slots(slots),
        max_request_bytes: 4096,
    };
    let fence = Fence::new(config).unwrap();
    let alone = Alone { iops: Some(200.0), response_s: Some(0.001) };
    let figures = Metrics::new(std::iter::once(Watched { name: "web".to_owned(), alone }), 0);
    let mut publisher = Publisher::new(Arc::clone(&figures));
    for tenth in 1..=30_u64 {
        for _ in 0..10 {
            figures.completed(0, Action::Read, 4096, 2_000_000, true);
        }
        publisher.publish(Time::from_ns(tenth * 100_000_000), std::iter::once(1), &fence);
    }
    let text = figures.text();
    check_strictly(&text);
    has(
        &text,
        &[
            "slots_total{disk=\"web\"} 1",
            "slot_balance_seconds{disk=\"web\"} 0.000000000",
            "under_way{disk=\"web\"} 1",
            "intervals{disk=\"web\",of=\"throughput\",over=\"all\"} 2",
            "variation_ratio{disk=\"web\",of=\"throughput\",over=\"minute\"} 0.000000",
            "deviation_ratio{disk=\"web\",of=\"throughput\",over=\"all\"} 0.500000",
            "deviation_ratio{disk=\"web\",of=\"response\",over=\"minute\"} 1.000000",
        ],
    );
}
