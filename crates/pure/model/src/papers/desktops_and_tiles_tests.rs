use virtbench_record::{DesktopNumbers, Provenance, Records, Status, TileNumbers};
use virtbench_samples::grid::described;
use virtbench_samples::{desktops, tiles};

use super::*;
use crate::papers::tests::verdict;

/// Tiles whose two members do so much of the reference each, from one tile on.
fn tiled(rates: &[f64]) -> [(Provenance, Records); 1] {
    let numbers: Vec<u32> = (1..).take(rates.len()).collect();
    let records =
        numbers.iter().zip(rates).map(|(tiles, rate)| tiles::record(*tiles, 0, [*rate; 2])).collect();
    [(described(Plan::Tiles(tiles::plan(TileNumbers::Given(numbers)))), Records::Tiles(records))]
}

#[test]
fn a_score_grows_by_less_than_its_tiles_in_proportion_or_is_that_of_one_alone() {
    assert_eq!(verdict("tiles-grow-less", &tiled(&[1.0, 0.8, 0.6])), ClaimVerdict::Holds);
    assert_eq!(verdict("tiles-grow-less", &tiled(&[1.0, 1.0, 1.01])), ClaimVerdict::Fails);
    assert_eq!(verdict("tiles-grow-less", &tiled(&[1.0])), ClaimVerdict::Open);
}

fn on_desktops(records: Vec<DesktopsRecord>) -> [(Provenance, Records); 1] {
    let numbers = records.iter().map(|record| record.key.desktops).collect();
    let plan = desktops::plan(DesktopNumbers::Given(numbers));
    [(described(Plan::Desktops(plan)), Records::Desktops(records))]
}

/// Times of a number of desktops, each operation's by its place.
fn timed(desktops: u32, latency_ns: impl Fn(usize, u64) -> u64) -> DesktopsRecord {
    let mut record = desktops::record(desktops, 0);
    if let Status::Measured(measured) = &mut record.status {
        for (place, done) in measured.operations.iter_mut().enumerate() {
            if let Some(times) = &mut done.times {
                times.latency_ns = latency_ns(place, times.latency_ns);
            }
        }
    }
    record
}

#[test]
fn desktops_slow_with_their_number_or_not() {
    let slowed = [2, 4].map(|number| desktops::record(number, 0)).into();
    assert_eq!(verdict("desktops-slow-slowly", &on_desktops(slowed)), ClaimVerdict::Holds);
    let level = [2, 4].map(|number| timed(number, |_, _| 100_000_000)).into();
    assert_eq!(verdict("desktops-slow-slowly", &on_desktops(level)), ClaimVerdict::Fails);
    assert_eq!(
        verdict("desktops-slow-slowly", &on_desktops(vec![desktops::record(2, 0)])),
        ClaimVerdict::Open
    );
}

#[test]
fn a_percentile_breaks_before_the_mean_with_it_or_never() {
    // A fifth of the operations takes four times as long.
    let tail = |place: usize, ns: u64| if place % 10 < 2 { ns * 4 } else { ns };
    let breaks = vec![desktops::record(2, 0), timed(3, tail)];
    assert_eq!(verdict("percentile-breaks-first", &on_desktops(breaks)), ClaimVerdict::Holds);
    let whole = vec![desktops::record(2, 0), timed(3, |_, ns| ns * 20)];
    assert_eq!(verdict("percentile-breaks-first", &on_desktops(whole)), ClaimVerdict::Fails);
    assert_eq!(
        verdict("percentile-breaks-first", &on_desktops(vec![desktops::record(2, 0)])),
        ClaimVerdict::Open
    );
}
