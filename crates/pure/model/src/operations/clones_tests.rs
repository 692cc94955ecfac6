use super::*;
use crate::operations::{analyse_operations, synthetic};

#[test]
fn ways_to_clone_are_compared_with_the_first_within_each_piece() {
    let (plan, records) = synthetic::of_clones();
    let steps = analyse_operations(&plan, &records).steps;
    let clones = &steps[0].clones;
    let ways: Vec<_> = clones.iter().map(|one| one.way).collect();
    assert_eq!(ways, [CloneKind::Full, CloneKind::Linked, CloneKind::Reflink]);
    assert!(clones[0].ratio.is_none() && clones[0].kind.done == 40);
    // Pieces differ by far more than ways do from piece to piece.
    let linked = clones[1].ratio.unwrap();
    assert!((linked.value - 0.4).abs() < 0.01 && linked.pairs == 4, "{linked:?}");
    assert!(linked.interval.unwrap().high < 0.42, "{linked:?}");
    assert!(analyse_operations(&synthetic::plan(), &synthetic::records()).steps[0].clones.is_empty());
}
