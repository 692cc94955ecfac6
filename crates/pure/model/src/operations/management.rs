//! What the management stack used over the pieces of a step.

use std::collections::BTreeMap;

use virtbench_record::OperationsMeasured;

/// Processes of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagementAnalysis {
    /// Their name, such as `libvirtd`.
    pub name: String,
    /// Processor time in percent of one processor: the mean over pieces, each weighed by its length.
    pub cpu_percent: f64,
    /// Processor time for an operation that was done, in nanoseconds; nothing where none was.
    pub cpu_ns_each: Option<f64>,
    /// The most resident memory at the end of a piece, in bytes.
    pub resident_bytes: u64,
}

/// By name; and why pieces lack some, once each.
pub(super) fn analyse_management(pieces: &[&OperationsMeasured]) -> (Vec<ManagementAnalysis>, Vec<String>) {
    let mut names: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
    let mut unavailable: Vec<String> = Vec::new();
    let (mut length_ns, mut done) = (0.0, 0);
    for piece in pieces {
        let Some(management) = &piece.management else { continue };
        unavailable.extend(management.unavailable.clone());
        if management.processes.is_empty() {
            continue;
        }
        length_ns += piece.elapsed_ns as f64;
        done += piece.done();
        let mut resident: BTreeMap<&str, u64> = BTreeMap::new();
        for process in &management.processes {
            names.entry(&process.name).or_default().0 +=
                process.cpu_percent / 100.0 * piece.elapsed_ns as f64;
            *resident.entry(&process.name).or_default() += process.resident_bytes;
        }
        for (name, bytes) in resident {
            let most = &mut names.entry(name).or_default().1;
            *most = bytes.max(*most);
        }
    }
    unavailable.sort();
    unavailable.dedup();
    let processes = names.into_iter().map(|(name, (cpu_ns, resident_bytes))| ManagementAnalysis {
        name: name.to_owned(),
        cpu_percent: 100.0 * cpu_ns / f64::max(length_ns, 1.0),
        cpu_ns_each: (done > 0).then(|| cpu_ns / done as f64),
        resident_bytes,
    });
    (processes.collect(), unavailable)
}

#[cfg(test)]
mod tests {
    use virtbench_record::{ManagementProcess, ManagementUse, OperationKind, OperationNumbers};

    use super::*;

    fn piece(seconds: u64, done: u64, management: ManagementUse) -> OperationsMeasured {
        let numbers = OperationNumbers { done, ..OperationNumbers::default() };
        OperationsMeasured {
            elapsed_ns: seconds * 1_000_000_000,
            operations: BTreeMap::from([(OperationKind::PowerOn, numbers)]),
            management: Some(management),
            ..OperationsMeasured::default()
        }
    }

    fn process(pid: u32, cpu_percent: f64, resident_bytes: u64) -> ManagementProcess {
        ManagementProcess { name: "vpxd".into(), pid, cpu_percent, resident_bytes }
    }

    #[test]
    fn processes_of_a_name_are_summed_and_a_piece_without_any_says_why() {
        let two =
            ManagementUse { processes: vec![process(1, 20.0, 5), process(2, 20.0, 6)], unavailable: None };
        let one = ManagementUse { processes: vec![process(1, 10.0, 7)], unavailable: None };
        let none = ManagementUse { processes: Vec::new(), unavailable: Some("it ended".into()) };
        let pieces = [piece(10, 6, two), piece(20, 2, one), piece(10, 5, none)];
        let (processes, unavailable) = analyse_management(&pieces.iter().collect::<Vec<_>>());
        let [found] = &processes[..] else { panic!("{processes:?}") };
        // Four seconds of a processor in ten, and two in twenty.
        assert!((found.cpu_percent - 20.0).abs() < 1e-9, "{found:?}");
        assert!((found.cpu_ns_each.unwrap() - 0.75e9).abs() < 1.0, "{found:?}");
        assert_eq!((found.resident_bytes, unavailable), (11, vec!["it ended".to_owned()]));
    }
}
