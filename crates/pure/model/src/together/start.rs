//! Whether machines of several hosts began together as exactly as a study needs.

use virtbench_record::{LooseStart, SetRecord, SetStart};

/// Measurements that began less exactly than is needed, in the records' order.
#[must_use]
pub fn loose_starts(records: &[SetRecord]) -> Vec<LooseStart> {
    let loose = |record: &SetRecord| {
        let SetStart { uncertainty_ns, needed_ns, is_enough } = record.start?;
        let (set, repetition) = (record.set.clone(), record.repetition);
        (!is_enough).then_some(LooseStart { set, repetition, uncertainty_ns, needed_ns })
    };
    records.iter().filter_map(loose).collect()
}

/// Of the measurements of one set the one that began least exactly, if one is marked.
#[must_use]
pub fn loose_start(records: &[&SetRecord]) -> Option<SetStart> {
    let loose = records.iter().filter_map(|record| record.start).filter(|start| !start.is_enough);
    loose.max_by_key(|start| start.uncertainty_ns)
}
