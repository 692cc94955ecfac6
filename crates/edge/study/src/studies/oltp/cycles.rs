//! What a transaction costs in cycles and instructions, and whose code that is ([Platform 2014], section IV.A.1).

use std::collections::BTreeMap;

use virtbench_counters::CodeCounts;
use virtbench_record::Quantity;

/// The quantities of a side that did so many transactions while this was counted. Natively user code and kernel are the
/// application's; of a VM they are the guest's, this host's kernel is the hypervisor, and its user code the monitor. An emulated
/// guest is user code of this host, and not told from the monitor.
pub(super) fn per_transaction(counts: &CodeCounts, transactions: f64, vm: bool) -> BTreeMap<Quantity, f64> {
    let all = [counts.host_user, counts.host_kernel, counts.guest_user, counts.guest_kernel];
    let cycles: f64 = all.iter().map(|one| one.cycles).sum();
    let instructions: f64 = all.iter().map(|one| one.instructions).sum();
    if transactions <= 0.0 || cycles <= 0.0 || instructions <= 0.0 {
        return BTreeMap::new();
    }
    let mut known = BTreeMap::from([
        (Quantity::CyclesPerTransaction, cycles / transactions),
        (Quantity::CyclesPerInstruction, cycles / instructions),
        (Quantity::InstructionsPerTransaction, instructions / transactions),
    ]);
    let parts = if vm {
        vec![
            (Quantity::UserCycles, counts.guest_user),
            (Quantity::KernelCycles, counts.guest_kernel),
            (Quantity::HypervisorCycles, counts.host_kernel),
            (Quantity::MonitorCycles, counts.host_user),
        ]
    } else {
        vec![(Quantity::UserCycles, counts.host_user), (Quantity::KernelCycles, counts.host_kernel)]
    };
    known.extend(parts.into_iter().map(|(quantity, part)| (quantity, part.cycles / transactions)));
    known
}

#[cfg(test)]
mod tests {
    use virtbench_counters::Counted;
    use virtbench_model::analyse_application;
    use virtbench_record::ApplicationRow;

    use super::*;

    /// The published cycles and instructions of a transaction, as if counted over a thousand of them.
    fn counted(user: (f64, f64), kernel: (f64, f64), host: (f64, f64)) -> CodeCounts {
        let counted = |(cycles, instructions): (f64, f64)| Counted {
            cycles: cycles * 1e6,
            instructions: instructions * 1e6,
        };
        CodeCounts {
            guest_user: counted(user),
            guest_kernel: counted(kernel),
            host_kernel: counted(host),
            host_user: Counted::default(),
        }
    }

    #[test]
    fn cycles_are_split_by_whose_code_it_was_and_agree_with_cpi_and_path_length() {
        let counts = counted((2000.0, 900.0), (1484.0, 600.0), (184.0, 41.0));
        let known = per_transaction(&counts, 1000.0, true);
        assert!((known[&Quantity::CyclesPerTransaction] - 3_668_000.0).abs() < 1e-3);
        assert!((known[&Quantity::InstructionsPerTransaction] - 1_541_000.0).abs() < 1e-3);
        assert!((known[&Quantity::HypervisorCycles] - 184_000.0).abs() < 1e-3);
        let mut row = ApplicationRow { configuration: "vm".into(), repetition: 0, known };
        assert_eq!(analyse_application(&[row.clone()], 1).sides[0].mismatch, None);
        row.known.insert(Quantity::CyclesPerInstruction, 2.0);
        let mismatch = analyse_application(&[row], 1).sides[0].mismatch.unwrap();
        assert!((mismatch.off_percent() + 16.0).abs() < 0.1, "{mismatch:?}");
    }

    #[test]
    fn nothing_counted_is_nothing_known() {
        assert_eq!(per_transaction(&CodeCounts::default(), 10.0, false), BTreeMap::new());
        assert_eq!(per_transaction(&counted((1.0, 1.0), (1.0, 1.0), (1.0, 1.0)), 0.0, true), BTreeMap::new());
    }
}
