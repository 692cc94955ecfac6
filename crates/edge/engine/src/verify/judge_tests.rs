//! Each kind of damage is told from the others.

use super::*;
use crate::verify::judge::fill;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

const SEED: u64 = 7;
const BLOCK: usize = 4096;

/// What is said of `block` at offset 8192, of which so many writes were acknowledged.
fn verdict(writes: u32, moment: Moment, block: &[u8]) -> Option<Damage> {
    let access = AccessSpec::single(AccessLine::new(BLOCK as u64, 50.0, 100.0));
    let ledger = Ledger::new(&LoadSpec { seed: SEED, ..LoadSpec::new(access, 1 << 20) }).unwrap();
    (0..writes).for_each(|_| ledger.written(8192, 4096));
    let mut found = Verification::default();
    judge(block, 8192, &ledger, moment, &mut found);
    assert_eq!(found.blocks_checked + found.blocks_unknown, 1);
    assert_eq!(found.damaged(), found.examples.len() as u64);
    found.examples.first().map(|example| example.damage)
}

fn block(seed: u64, offset: u64, version: u32) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    fill(&mut block, seed, offset, version);
    block
}

fn spliced(mut first: Vec<u8>, second: &[u8]) -> Vec<u8> {
    first[BLOCK / 2..].copy_from_slice(&second[BLOCK / 2..]);
    first
}

#[test]
fn the_right_version_is_right() {
    assert_eq!(verdict(3, Moment::After, &block(SEED, 8192, 3)), None);
    assert_eq!(verdict(0, Moment::After, &[9; BLOCK]), None);
}

#[test]
fn an_older_version_is_stale_at_first_and_lost_in_the_end() {
    assert_eq!(verdict(3, Moment::During, &block(SEED, 8192, 2)), Some(Damage::Stale));
    assert_eq!(verdict(3, Moment::After, &block(SEED, 8192, 2)), Some(Damage::Lost));
    assert_eq!(verdict(1, Moment::After, &[9; BLOCK]), Some(Damage::Lost));
}

#[test]
fn sectors_of_two_writes_are_torn() {
    let [old, new] = [block(SEED, 8192, 2), block(SEED, 8192, 3)];
    assert_eq!(verdict(3, Moment::After, &spliced(new.clone(), &old)), Some(Damage::Torn));
    assert_eq!(verdict(1, Moment::After, &spliced(block(SEED, 8192, 1), &[9; BLOCK])), Some(Damage::Torn));
    assert_eq!(verdict(3, Moment::After, &spliced(new, &block(8, 8192, 3))), Some(Damage::Torn));
}

#[test]
fn a_block_of_another_place_is_misplaced_even_where_nothing_was_written() {
    assert_eq!(verdict(3, Moment::After, &block(SEED, 4096, 3)), Some(Damage::Misplaced));
    assert_eq!(verdict(0, Moment::After, &block(SEED, 4096, 3)), Some(Damage::Misplaced));
}

#[test]
fn a_block_of_another_run_is_foreign() {
    assert_eq!(verdict(3, Moment::After, &block(99, 8192, 3)), Some(Damage::Foreign));
    assert_eq!(verdict(0, Moment::After, &block(99, 8192, 3)), None, "it was there before this run");
}

#[test]
fn flipped_bits_and_missing_headers_are_corrupt() {
    let mut flipped = block(SEED, 8192, 3);
    flipped[3000] ^= 4;
    assert_eq!(verdict(3, Moment::After, &flipped), Some(Damage::Corrupt));
    assert_eq!(verdict(3, Moment::After, &[0; BLOCK]), Some(Damage::Corrupt));
}

#[test]
fn without_a_ledger_a_block_is_judged_by_itself() {
    let alone = |block: &[u8]| {
        let mut found = Verification::default();
        judge_alone(block, 8192, SEED, BLOCK as u64, &mut found);
        (found.blocks_checked, found.examples.first().map(|example| example.damage))
    };
    assert_eq!(alone(&block(SEED, 8192, 5)), (1, None));
    assert_eq!(alone(&[9; BLOCK]), (0, None));
    assert_eq!(alone(&block(8, 8192, 5)), (1, Some(Damage::Foreign)));
    assert_eq!(alone(&spliced(block(SEED, 8192, 5), &block(SEED, 8192, 4))), (1, Some(Damage::Torn)));
}
