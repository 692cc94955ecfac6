use std::collections::BTreeMap;

use virtbench_record::{ApplicationRow, Quantity};

use super::*;

fn row(configuration: &str, repetition: u32, figures: [f64; 3]) -> ApplicationRow {
    let quantities = [
        Quantity::CyclesPerTransaction,
        Quantity::CyclesPerInstruction,
        Quantity::InstructionsPerTransaction,
    ];
    let known: BTreeMap<_, _> = quantities.into_iter().zip(figures).collect();
    ApplicationRow { configuration: configuration.into(), repetition, known }
}

#[test]
fn the_published_growth_is_slower_instructions_more_than_further_ones() {
    // [Platform 2014], Table 5.
    let rows = [row("Native", 0, [2998e3, 2.10, 1429e3]), row("Virtual", 0, [3668e3, 2.38, 1541e3])];
    let analysis = analyse_application(&rows, 1);
    assert!(analysis.sides.iter().all(|side| side.mismatch.is_none()));
    let growth = analysis.ratios[0].growth.expect("all three are known");
    let percent = |ratio: f64| (100.0 * (ratio - 1.0)).round();
    assert_eq!(
        [growth.cycles, growth.cycles_per_instruction, growth.instructions].map(percent),
        [22.0, 13.0, 8.0]
    );
    let slower = growth.slower_percent().expect("they grew");
    assert!((slower - 62.4).abs() < 0.1, "{slower}");
}

#[test]
fn figures_that_cannot_all_be_right_are_found_on_their_side() {
    let rows = [row("Native", 0, [2998e3, 2.10, 1429e3]), row("Virtual", 0, [3668e3, 2.38, 1429e3])];
    let analysis = analyse_application(&rows, 1);
    assert_eq!(analysis.sides[0].mismatch, None);
    let mismatch = analysis.sides[1].mismatch.expect("the path length is the native one");
    assert!((mismatch.off_percent() + 7.28).abs() < 0.01, "{}", mismatch.off_percent());
}

#[test]
fn the_same_cycles_have_no_parts_of_a_growth() {
    let rows = [row("a", 0, [2e6, 2.0, 1e6]), row("b", 0, [2e6, 2.0, 1e6])];
    let growth = analyse_application(&rows, 1).ratios[0].growth.expect("all three are known");
    assert_eq!(growth.slower_percent(), None);
}

#[test]
fn repetitions_are_compared_pair_by_pair() {
    let mut rows = Vec::new();
    for repetition in 0..4 {
        let drift = 1.0 + f64::from(repetition);
        rows.push(row("a", repetition, [drift * 2e6, 2.0, drift * 1e6]));
        rows.push(row("b", repetition, [drift * 3e6, 3.0, drift * 1e6]));
    }
    let analysis = analyse_application(&rows, 1);
    let cycles = &analysis.ratios[0].ratios[&Quantity::CyclesPerTransaction];
    assert_eq!(cycles.pairs, 4);
    assert!((cycles.value - 1.5).abs() < 1e-9);
    assert!(cycles.interval.is_some_and(|span| span.high - span.low < 1e-9), "the drift is that of both");
    assert!(
        analysis.sides[0].known[&Quantity::CyclesPerTransaction].span().is_some_and(|span| span.high > 5e6)
    );
}

#[test]
fn what_one_side_lacks_has_no_ratio() {
    let mut other = row("b", 0, [3e6, 3.0, 1e6]);
    other.known.remove(&Quantity::CyclesPerInstruction);
    let analysis = analyse_application(&[row("a", 0, [2e6, 2.0, 1e6]), other], 1);
    assert_eq!(analysis.ratios[0].growth, None);
    assert_eq!(analysis.ratios[0].ratios.len(), 2);
    assert!(analyse_application(&[], 1).sides.is_empty());
}
