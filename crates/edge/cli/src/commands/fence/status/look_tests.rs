use super::*;
use crate::commands::fence::status::table;

const BEFORE: &str = "\
virtbench_fence_requests_total{disk=\"a\",kind=\"read\"} 100
virtbench_fence_response_seconds_total{disk=\"a\",kind=\"read\"} 1.0
virtbench_fence_slots_total{disk=\"a\"} 40
virtbench_fence_slots_used_total{disk=\"a\"} 10
virtbench_fence_slot_balance_seconds{disk=\"a\"} 0.004
virtbench_fence_cache_reads_total{partition=\"0\",state=\"hit\"} 50
virtbench_fence_cache_reads_total{partition=\"0\",state=\"miss\"} 50
virtbench_fence_errors_total{disk=\"b\"} 7
# EOF
";
const NOW: &str = "\
# TYPE virtbench_fence_requests counter
virtbench_fence_requests_total{disk=\"a\",kind=\"read\"} 300
virtbench_fence_response_seconds_total{disk=\"a\",kind=\"read\"} 1.5
virtbench_fence_response_quantile_seconds{disk=\"a\",kind=\"read\",over=\"minute\",quantile=\"0.99\"} 0.04
virtbench_fence_response_quantile_seconds{disk=\"a\",kind=\"read\",over=\"all\",quantile=\"0.5\"} 0.0025
virtbench_fence_response_quantile_seconds{disk=\"a\",kind=\"read\",over=\"all\",quantile=\"0.99\"} 0.03
virtbench_fence_slots_total{disk=\"a\"} 90
virtbench_fence_slots_used_total{disk=\"a\"} 35
virtbench_fence_slot_overruns_total{disk=\"a\"} 2
virtbench_fence_slot_overrun_seconds_total{disk=\"a\"} 0.003
virtbench_fence_slot_balance_seconds{disk=\"a\"} -0.002
virtbench_fence_batches_total{disk=\"a\",device=\"slow\"} 4
virtbench_fence_batch_predicted_seconds_total{disk=\"a\",device=\"slow\"} 0.08
virtbench_fence_batch_seconds_total{disk=\"a\",device=\"slow\"} 0.06
virtbench_fence_batch_error_seconds_total{disk=\"a\",device=\"slow\"} 0.04
virtbench_fence_intervals{disk=\"a\",of=\"response\",over=\"all\"} 12
virtbench_fence_variation_ratio{disk=\"a\",of=\"response\",over=\"all\"} 0.125
virtbench_fence_deviation_ratio{disk=\"a\",of=\"response\",over=\"all\"} 0.5
virtbench_fence_cache_reads_total{partition=\"0\",state=\"hit\"} 140
virtbench_fence_cache_reads_total{partition=\"0\",state=\"miss\"} 60
virtbench_fence_cache_degraded{partition=\"0\",state=\"read_only\"} 1
virtbench_fence_errors_total{disk=\"b\"} 3
virtbench_fence_bypassed_bytes_total{disk=\"b\"} 8000000
virtbench_fence_under_way{disk=\"b\"} 2
virtbench_fence_tokens_seconds{disk=\"b\",bucket=\"ios\"} -0.01
# EOF
";

fn look(seconds: Option<f64>) -> FenceStatus {
    let disk = |name: &str, partition| Disk { name: name.to_owned(), partition };
    let disks = [disk("a", Some(0)), disk("b", None)];
    let (now, before) = (Samples::parse(NOW), Samples::parse(BEFORE));
    status(&disks, None, &now, seconds.map(|seconds| (seconds, &before)))
}

#[test]
fn a_second_look_tells_what_has_happened_since_the_first() {
    let [a, b] = &look(Some(2.0)).disks[..] else { panic!() };
    assert_eq!((a.reads, a.read_ms, a.write_ms), (200.0, Some(2.5), None));
    assert_eq!((a.quantiles_over, a.read_p99_ms, a.write_p99_ms), (OfWindow::Minute, Some(40.0), None));
    assert_eq!((a.hit_ratio, a.degraded), (Some(0.9), Some(true)));
    let slots = a.slots.as_ref().unwrap();
    assert_eq!((slots.slots, slots.used, slots.overruns), (50.0, 25.0, 2.0));
    assert_eq!((slots.overrun_ms, slots.balance_ms), (3.0, -2.0));
    assert_eq!((slots.slow.error_ms, slots.slow.absolute_error_ms), (Some(-5.0), Some(10.0)));
    assert_eq!((slots.fast.batches, slots.fast.error_ms), (0.0, None));
    assert_eq!(a.steadiness.len(), 1);
    assert_eq!((a.steadiness[0].variation, a.steadiness[0].spread), (Some(0.125), None));
    assert_eq!((b.errors, b.under_way, b.hit_ratio), (3.0, 2.0, None), "started anew");
    assert_eq!((a.bypassed_bytes, b.bypassed_bytes), (0.0, 8e6));
    assert_eq!(b.tokens.as_ref().unwrap().ios_ms, Some(-10.0));
    assert!(b.slots.is_none() && b.paced.is_none() && b.steadiness.is_empty());
}

#[test]
fn the_first_look_tells_all_and_the_table_has_what_there_is() {
    let all = look(None);
    assert_eq!((all.disks[0].reads, all.disks[0].slots.as_ref().unwrap().slots), (300.0, 90.0));
    assert_eq!((all.disks[0].read_p50_ms, all.disks[0].read_p99_ms), (Some(2.5), Some(30.0)));
    let text = table::text(&all);
    let row = text.lines().skip_while(|line| !line.starts_with("response times")).nth(1).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["a", "5.000", "2.500", "30.000", "-", "-", "-", "all"], "{text}");
    for part in ["reads ", "70.0%", "degraded", "38.9%", "-2.000", "12.5%", "50.0%", "-10.000"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let past = text.lines().skip_while(|line| !line.starts_with("past the cache")).nth(1).unwrap();
    assert_eq!(past.split_whitespace().collect::<Vec<_>>(), ["b", "8.0"], "{text}");
    assert!(!text.contains("late"), "nothing is paced\n{text}");
    let rates = table::text(&look(Some(2.0)));
    assert!(rates.contains("reads/s") && rates.contains(" 100.0 "), "{rates}");
}

#[test]
fn each_row_of_a_disk_in_a_pool_names_the_pool() {
    let disks = ["a", "b"].map(|name| Disk { name: name.to_owned(), partition: Some(0) });
    let text = table::text(&status(&disks, Some("ssd"), &Samples::parse(NOW), None));
    let is_of_disk = |line: &&str| line.split_whitespace().any(|word| word == "a" || word == "b");
    let tables = text.lines().take_while(|line| !line.starts_with("degraded: "));
    let rows: Vec<&str> = tables.filter(is_of_disk).collect();
    assert!(rows.len() > 6 && rows.iter().all(|row| row.starts_with("ssd: ")), "{text}");
}
