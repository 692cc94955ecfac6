//! What processors are busy with beside what a host says of itself: for single processes here, and on another machine by what its
//! hypervisor tells.

use std::time::Instant;

use procfs::process::Stat;
use virtbench_agent::now_ns;
use virtbench_host::{Processes, system_ticks, user_ticks};
use virtbench_record::{HostUse, ProcessRole, ProcessUse};

/// A process whose CPU use is to be told apart, with the processes that descend from it; virtbench's own are told apart themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Its id.
    pub process_id: u32,
    /// The configuration it belongs to.
    pub environment: Option<String>,
    /// What it has to do with what is measured.
    pub role: ProcessRole,
}

/// The time accounts of some processes at about one instant.
#[derive(Debug)]
pub(crate) struct ProcessSample {
    at_ns: u64,
    accounts: Vec<Option<Account>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Account {
    name: String,
    threads: u32,
    user_ticks: u64,
    system_ticks: u64,
}

impl Account {
    fn of(stat: &Stat) -> Self {
        Self {
            name: stat.comm.clone(),
            threads: u32::try_from(stat.num_threads).unwrap_or(0),
            user_ticks: user_ticks(stat),
            system_ticks: system_ticks(stat),
        }
    }

    /// Both together, under the name of the first.
    fn with(self, other: Self) -> Self {
        Self {
            name: self.name,
            threads: self.threads.saturating_add(other.threads),
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
        }
    }
}

impl ProcessSample {
    /// Reads the accounts of each: threads, those that have ended included, and children that
    /// were waited for. Accounts are kept in ticks of 10 ms; one that cannot be read is left out.
    pub(crate) fn take(observed: &[Observed]) -> Self {
        let processes = Processes::read().ok();
        let of_one = |one: &Observed| {
            let processes = processes.as_ref()?;
            match one.role {
                ProcessRole::Virtbench => processes.get(one.process_id).map(Account::of),
                _ => processes.tree(one.process_id).map(Account::of).reduce(Account::with),
            }
        };
        let accounts = observed.iter().map(of_one).collect();
        Self { at_ns: now_ns(), accounts }
    }

    /// What was used from this sample to a `later` one of the same processes.
    pub(crate) fn until(&self, later: &Self, observed: &[Observed]) -> Vec<ProcessUse> {
        let seconds = later.at_ns.saturating_sub(self.at_ns).max(1) as f64 / 1e9;
        let percent = |before: u64, after: u64| {
            after.saturating_sub(before) as f64 / procfs::ticks_per_second() as f64 / seconds * 100.0
        };
        let both = self.accounts.iter().zip(&later.accounts).zip(observed);
        both.filter_map(|((before, after), observed)| {
            let (before, after) = (before.as_ref()?, after.as_ref()?);
            Some(ProcessUse {
                name: after.name.clone(),
                environment: observed.environment.clone(),
                role: observed.role,
                threads: after.threads,
                user_percent: percent(before.user_ticks, after.user_ticks),
                system_percent: percent(before.system_ticks, after.system_ticks),
            })
        })
        .collect()
    }
}

/// The accounts of a machine's processors at one instant, all together.
#[derive(Debug, Clone, Copy)]
pub struct FarTimes {
    /// When they were read.
    pub at: Instant,
    /// User mode, guests included, in nanoseconds.
    pub user_ns: u64,
    /// Kernel mode, in nanoseconds.
    pub kernel_ns: u64,
    /// Processors summed over.
    pub processors: u32,
}

impl FarTimes {
    /// What was used until `later`. What a hypervisor below took away is not told.
    #[must_use]
    pub fn until(&self, later: &Self) -> HostUse {
        let elapsed_ns = later.at.duration_since(self.at).as_nanos().max(1) as f64;
        let percent = |begin: u64, end: u64| 100.0 * end.saturating_sub(begin) as f64 / elapsed_ns;
        let (user_percent, system_percent) =
            (percent(self.user_ns, later.user_ns), percent(self.kernel_ns, later.kernel_ns));
        HostUse {
            cpu_percent: user_percent + system_percent,
            user_percent,
            system_percent,
            processors: self.processors,
            ..HostUse::default()
        }
    }
}

/// What stands where it is not reported: no use of no processor.
pub(crate) const UNKNOWN: HostUse = HostUse {
    cpu_percent: 0.0,
    user_percent: 0.0,
    system_percent: 0.0,
    steal_percent: 0.0,
    others_percent: None,
    runnable: None,
    processors: 0,
    each_percent: Vec::new(),
    each_user_percent: Vec::new(),
};

#[cfg(test)]
mod tests {
    use virtbench_host::with_descendants;

    use super::*;

    fn own() -> Vec<Observed> {
        let process_id = std::process::id();
        vec![Observed { process_id, environment: None, role: ProcessRole::Virtbench }]
    }

    #[test]
    fn ticks_become_percent_of_one_processor() {
        let first = ProcessSample::take(&own());
        let mut later =
            ProcessSample { at_ns: first.at_ns + 2_000_000_000, accounts: first.accounts.clone() };
        later.accounts[0].as_mut().unwrap().user_ticks += 3 * procfs::ticks_per_second();
        let used = first.until(&later, &own());
        assert!((used[0].user_percent - 150.0).abs() < 1e-9 && used[0].system_percent == 0.0);
        assert!(used[0].threads >= 1);
    }

    #[test]
    fn work_is_seen_where_it_is_done() {
        let first = ProcessSample::take(&own());
        // Until two ticks of this process are accounted, however busy the machine is.
        let spent = || ProcessSample::take(&own()).accounts[0].clone().unwrap();
        let before = spent();
        while spent().user_ticks + spent().system_ticks < before.user_ticks + before.system_ticks + 2 {
            std::hint::black_box((0..10_000u64).sum::<u64>());
        }
        assert!(first.until(&ProcessSample::take(&own()), &own())[0].cpu_percent() > 0.0);
    }

    #[test]
    fn what_children_do_is_their_ancestor_s() {
        let mut busy = std::process::Command::new("sh")
            .args(["-c", "sh -c 'while :; do :; done' & wait"])
            .spawn()
            .unwrap();
        let observed =
            [Observed { process_id: busy.id(), environment: None, role: ProcessRole::MeasuredGuest }];
        let first = ProcessSample::take(&observed);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let used = loop {
            let used = first.until(&ProcessSample::take(&observed), &observed);
            let is_seen = used.first().is_some_and(|one| one.cpu_percent() > 0.0 && one.threads == 2);
            if is_seen || std::time::Instant::now() > until {
                break used;
            }
        };
        let children = with_descendants(busy.id());
        let _ = busy.kill();
        let _ = busy.wait();
        for child in children {
            let id = i32::try_from(child).ok().and_then(rustix::process::Pid::from_raw);
            let _ = id.map(|id| rustix::process::kill_process(id, rustix::process::Signal::KILL));
        }
        assert!(used[0].cpu_percent() > 0.0 && used[0].name == "sh", "{used:?}");
    }

    #[test]
    fn a_process_that_is_gone_is_left_out() {
        let gone = [Observed { process_id: u32::MAX / 4, environment: None, role: ProcessRole::IdleGuest }];
        let sample = ProcessSample::take(&gone);
        assert!(sample.until(&sample, &gone).is_empty());
    }
}

#[cfg(test)]
mod far_times_tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn use_is_what_was_used_between_two_instants() {
        let first = FarTimes { at: Instant::now(), user_ns: 7, kernel_ns: 9, processors: 4 };
        let later = FarTimes {
            at: first.at + Duration::from_secs(2),
            user_ns: 7 + 3_000_000_000,
            kernel_ns: 9 + 1_000_000_000,
            ..first
        };
        let used = first.until(&later);
        assert_eq!((used.cpu_percent, used.user_percent, used.processors), (200.0, 150.0, 4));
    }
}
