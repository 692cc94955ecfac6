//! Everything that is counted while a database is under load: the host and its disk, second by second, what a transaction costs
//! in cycles, and what the server's log tells.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Instant, UNIX_EPOCH};

use virtbench_counters::{
    CodeCounts, HardwareCounters, KVM_FOLDER, kvm_counts, per_transaction as exits_per_transaction,
};
use virtbench_lab::CpuSample;
use virtbench_model::is_busy;
use virtbench_record::{HostUse, OltpCause, OltpEvent, OltpHostSecond, Quantity};

use crate::runner::progress::unix_ns;

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

/// What the counters said at a moment, since the host started.
struct Look {
    at: Instant,
    cpu: CpuSample,
    operations: Option<u64>,
    switches: Option<u64>,
}

/// Looks so far, one at the end of each second of measuring.
#[derive(Default)]
pub(super) struct HostSeconds {
    looks: Vec<Look>,
}

impl HostSeconds {
    /// A second is over, by whose end the disk had done so many operations.
    pub(super) fn look(&mut self, operations: Option<u64>) {
        let Ok(cpu) = CpuSample::take() else { return };
        let at = Instant::now();
        self.looks.push(Look { at, cpu, operations, switches: context_switches() });
    }

    /// The host from the end of the first second to the last look; nothing of fewer than two.
    pub(super) fn host(&self) -> Option<HostUse> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        (self.looks.len() > 1).then(|| first.cpu.until(&last.cpu))
    }

    /// Operations of the disk a second over the same time.
    pub(super) fn iops(&self) -> Option<f64> {
        let (first, last) = (self.looks.first()?, self.looks.last()?);
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        (seconds > 0.0).then_some(())?;
        Some(last.operations?.checked_sub(first.operations?)? as f64 / seconds)
    }

    /// Second by second, without the first.
    pub(super) fn seconds(&self) -> Vec<OltpHostSecond> {
        let pairs = (1u64..).zip(self.looks.windows(2));
        let second = |(number, pair): (u64, &[Look])| {
            let (before, after) = (&pair[0], &pair[1]);
            let used = before.cpu.until(&after.cpu);
            let seconds = after.at.duration_since(before.at).as_secs_f64().max(1e-9);
            let rate =
                |before: Option<u64>, after: Option<u64>| Some(after?.checked_sub(before?)? as f64 / seconds);
            OltpHostSecond {
                start_ns: number * 1_000_000_000,
                cpu_percent: used.cpu_percent,
                steal_percent: used.steal_percent,
                others_percent: used.others_percent,
                busy: is_busy(&used),
                iops: rate(before.operations, after.operations),
                context_switches: rate(before.switches, after.switches),
            }
        };
        pairs.map(second).collect()
    }
}

/// Context switches of the whole host since its boot (proc(5)).
fn context_switches() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("ctxt "))?.trim().parse().ok()
}

/// What the server says that it did, in its log's order. `offset_ns` is added to its clock, in nanoseconds since 1970, to have
/// times since measuring began. What had begun before the log does is given from its own duration.
pub(super) fn events(log: &str, offset_ns: i64) -> Vec<OltpEvent> {
    let mut events = Vec::new();
    let mut checkpoint = None;
    let mut vacuum = None;
    for line in log.lines() {
        let at = moment(line).map(|at| at.saturating_add(offset_ns));
        if let Some(at) = at {
            vacuum = line.contains("LOG:  automatic ").then_some(at);
            if line.contains("LOG:  checkpoint starting") {
                checkpoint = Some(at);
            } else if line.contains("LOG:  checkpoint complete") {
                let took = seconds(line, "total=").unwrap_or(0);
                let begin_ns = checkpoint.take().unwrap_or(at.saturating_sub(took));
                events.push(OltpEvent { cause: OltpCause::Checkpoint, begin_ns, end_ns: at });
            }
        }
        if let (Some(end_ns), Some(took)) = (vacuum, seconds(line, "elapsed: ")) {
            let begin_ns = end_ns.saturating_sub(took);
            events.push(OltpEvent { cause: OltpCause::Autovacuum, begin_ns, end_ns });
            vacuum = None;
        }
    }
    // One that is not over lasts to the end.
    events.extend(checkpoint.map(|begin_ns| OltpEvent {
        cause: OltpCause::Checkpoint,
        begin_ns,
        end_ns: i64::MAX,
    }));
    events
}

/// The moment with which a line begins (`%m`), in nanoseconds since 1970; nothing where it is of another zone than UTC.
fn moment(line: &str) -> Option<i64> {
    let mut words = line.splitn(4, ' ');
    let (day, time, zone) = (words.next()?, words.next()?, words.next()?);
    if !matches!(zone, "UTC" | "GMT") {
        return None;
    }
    let at = humantime::parse_rfc3339_weak(&format!("{day} {time}")).ok()?;
    i64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// The seconds after a word, in nanoseconds.
#[allow(clippy::cast_possible_truncation, reason = "`as` saturates")]
fn seconds(line: &str, word: &str) -> Option<i64> {
    let rest = line.split_once(word)?.1;
    let number: &str = rest.split(' ').next()?;
    let seconds: f64 = number.parse().ok().filter(|seconds: &f64| *seconds >= 0.0)?;
    Some((seconds * 1e9) as i64)
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

    /// Of PostgreSQL 15.
    const LOG: &str = "\
2026-11-23 09:00:00.000 UTC [12] LOG:  database system is ready to accept connections
2026-11-23 09:00:10.500 UTC [14] LOG:  checkpoint starting: wal
2026-11-23 09:00:12.000 UTC [31] LOG:  automatic vacuum of table \"postgres.public.district\": index scans: 1
\tpages: 0 removed, 20 remain, 20 scanned (100.00% of total)
\tsystem usage: CPU: user: 0.00 s, system: 0.00 s, elapsed: 0.25 s
2026-11-23 09:00:13.000 UTC [31] LOG:  automatic analyze of table \"postgres.public.stock\"
\tsystem usage: CPU: user: 0.10 s, system: 0.00 s, elapsed: 1.50 s
2026-11-23 09:00:20.250 UTC [14] LOG:  checkpoint complete: wrote 900 buffers (7.3%); 0 WAL file(s) added; write=9.6 s, sync=0.1 s, total=9.750 s; sync files=41
2026-11-23 09:05:00.000 UTC [14] LOG:  checkpoint starting: time
";

    #[test]
    fn checkpoints_and_autovacuum_are_found_with_their_times() {
        let begun = moment("2026-11-23 09:00:10.000 UTC [1]").unwrap();
        let found = events(LOG, -begun);
        #[allow(clippy::cast_possible_truncation, reason = "a few seconds")]
        let ns = |seconds: f64| (seconds * 1e9) as i64;
        let event = |cause, begin: f64, end: f64| (cause, ns(begin), ns(end));
        let expected = [
            event(OltpCause::Autovacuum, 1.75, 2.0),
            event(OltpCause::Autovacuum, 1.5, 3.0),
            event(OltpCause::Checkpoint, 0.5, 10.25),
        ];
        let seen: Vec<_> = found.iter().map(|one| (one.cause, one.begin_ns, one.end_ns)).collect();
        assert_eq!(seen[..3], expected);
        assert_eq!(seen[3], (OltpCause::Checkpoint, 290_000_000_000, i64::MAX));
    }

    #[test]
    fn a_checkpoint_whose_begin_is_not_in_the_log_lasts_as_long_as_it_says() {
        let complete = LOG.lines().find(|line| line.contains("complete")).unwrap();
        let found = events(complete, -moment("2026-11-23 09:00:10.000 UTC [1]").unwrap());
        assert_eq!((found[0].begin_ns, found[0].end_ns), (500_000_000, 10_250_000_000));
        assert_eq!(events("2026-11-23 09:00:00.000 CET [1] LOG:  checkpoint starting: wal\nnoise", 0), []);
    }
}
