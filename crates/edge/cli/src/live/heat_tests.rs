use super::*;

fn column(end_s: f64, counts: &[(usize, u64)]) -> Column {
    let mut sample = LiveSample::default();
    for (bucket, count) in counts {
        sample.latency[*bucket] = *count;
    }
    Column { end_s, sample }
}

#[test]
fn shades_show_how_latencies_are_spread_and_how_that_changes() {
    let quiet = |end_s| column(end_s, &[(16, 900), (17, 95), (18, 5)]);
    let noisy = |end_s| column(end_s, &[(16, 200), (17, 450), (18, 300), (20, 50)]);
    let columns =
        [quiet(0.25), quiet(0.5), quiet(0.75), noisy(1.0), noisy(1.25), column(1.5, &[]), quiet(1.75)];
    let columns: Vec<Column> =
        columns.iter().cloned().chain((8..16).map(|i| quiet(f64::from(i) / 4.0))).collect();
    let expected = "
 1.0 ms |   ░░
 524 us |
 262 us |···▓▓ ·········
 131 us |░░░▓▓ ░░░░░░░░░
  66 us |███▒▒ █████████
         0.2 s     3.8 s";
    let drawn = heat_map(&columns, 80, 10);
    let trimmed: Vec<&str> = drawn.iter().map(|line| line.trim_end()).collect();
    assert_eq!(format!("\n{}", trimmed.join("\n")), expected);
}

#[test]
fn what_does_not_fit_the_rows_is_in_the_lowest_and_what_does_not_fit_the_columns_is_gone() {
    let columns: Vec<Column> =
        (0..100).map(|i| column(f64::from(i), &[(10, 40), (12, 30), (20, 25), (21, 5)])).collect();
    let expected = "
 2.1 ms |░░░░░░░░░░░
 1.0 ms |▒▒▒▒▒▒▒▒▒▒▒
<524 us |███████████
         89.0 s";
    assert_eq!(format!("\n{}", heat_map(&columns, 20, 4).join("\n")), expected);
    assert!(heat_map(&columns, 80, 30).len() <= MAX_ROWS + 1);
}

#[test]
fn no_size_and_no_columns_are_too_odd() {
    let columns = vec![column(1.0, &[(3, 1)]), column(2.0, &[(39, 1)])];
    for width in 0..30 {
        for height in 0..30 {
            let lines = heat_map(&columns, width, height);
            assert!(lines.len() <= height, "{width} x {height}");
        }
    }
    assert!(heat_map(&[], 80, 24).is_empty());
    assert!(heat_map(&[column(1.0, &[])], 80, 24).is_empty());
}

#[test]
fn durations_are_short() {
    let all = [1, 512, 1024, 8192, 65536, 1 << 20, 1 << 25, 1 << 30, 1 << 39].map(duration);
    assert_eq!(all, ["1 ns", "512 ns", "1.0 us", "8.2 us", "66 us", "1.0 ms", "34 ms", "1.1 s", "550 s"]);
    assert!((0..LIVE_BUCKETS).all(|bucket| duration(1 << bucket).len() <= 6));
}

#[test]
fn quantiles_are_upper_ends_of_buckets() {
    let sample = column(0.0, &[(10, 98), (14, 1), (20, 1)]).sample;
    assert_eq!(
        [0.5, 0.985, 1.0].map(|share| quantile_ns(&sample, share)),
        [Some(2048), Some(32768), Some(2 << 20)]
    );
    assert_eq!(quantile_ns(&LiveSample::default(), 0.5), None);
}
