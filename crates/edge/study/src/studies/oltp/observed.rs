//! Everything that is counted while a database is under load: from the end of the first second of measuring to that of the last.

use std::collections::BTreeMap;
use std::path::Path;

use virtbench_counters::{
    CodeCounts, HardwareCounters, KVM_FOLDER, kvm_counts, per_transaction as exits_per_transaction,
};
use virtbench_record::Quantity;

use super::cycles::per_transaction;
use super::watch::HostSeconds;
use crate::runner::course::unix_ns;

/// Counters, and what they said at two moments.
pub(super) struct Observed {
    pub(super) watch: HostSeconds,
    counters: Result<HardwareCounters, String>,
    /// The process of the guest.
    qemu: Option<u32>,
    moments: Vec<Moment>,
    /// When measuring began, in nanoseconds since 1970.
    pub(super) measuring_unix_ns: Option<u64>,
}

/// What was counted until a moment.
struct Moment {
    counted: Option<CodeCounts>,
    exits: Option<Result<BTreeMap<String, u64>, String>>,
}

impl Observed {
    /// Begins to count on these processors, of a guest also what KVM counts of its process.
    pub(super) fn new(processors: &[usize], qemu: Option<u32>) -> Self {
        let counters = HardwareCounters::start(processors);
        let counters =
            counters.map_err(|error| format!("hardware counters of the host cannot be had: {error}"));
        Self { watch: HostSeconds::default(), counters, qemu, moments: Vec::new(), measuring_unix_ns: None }
    }

    /// A second is over, which ended so long after measuring began, in nanoseconds.
    pub(super) fn second(&mut self, end_ns: u64, operations: Option<u64>) {
        self.watch.look(operations);
        self.measuring_unix_ns.get_or_insert(unix_ns().saturating_sub(end_ns));
        let counted = self.counters.as_ref().ok().and_then(|counters| counters.read().ok());
        let exits = self.qemu.map(|process| {
            kvm_counts(Path::new(KVM_FOLDER), process).map_err(|error| format!("{KVM_FOLDER}: {error}"))
        });
        self.moments.truncate(1);
        self.moments.push(Moment { counted, exits });
    }

    /// Cycles and instructions for each of so many transactions; or why they are not known.
    pub(super) fn cycles(&self, transactions: u64) -> Result<BTreeMap<Quantity, f64>, String> {
        self.counters.as_ref().map_err(Clone::clone)?;
        let missing = || "the counters could not be read".to_owned();
        let [begun, ended] = self.moments.as_slice() else { return Err(missing()) };
        let (begun, ended) = begun.counted.zip(ended.counted).ok_or_else(missing)?;
        Ok(per_transaction(&ended.since(&begun), transactions as f64, self.qemu.is_some()))
    }

    /// What KVM counted for each of so many transactions; or, of a VM, why that is not known.
    pub(super) fn exits(&self, transactions: u64) -> (BTreeMap<String, f64>, Option<String>) {
        let [begun, ended] = self.moments.as_slice() else { return (BTreeMap::new(), None) };
        match (&begun.exits, &ended.exits) {
            (Some(Ok(begun)), Some(Ok(ended))) => (exits_per_transaction(begun, ended, transactions), None),
            (Some(Err(why)), _) | (_, Some(Err(why))) => (BTreeMap::new(), Some(why.clone())),
            _ => (BTreeMap::new(), None),
        }
    }
}
