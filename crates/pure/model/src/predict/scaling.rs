//! The latency model with its parts told apart: T_V = U F_U + S F_S + B F_B + W F_W.
//!
//! [ESX Disk 2003] (section 5.3) adds what virtualization costs to computing and takes system code and I/O from
//! a model load. Where an application works through the page cache it has no I/O of its own that a load
//! could stand for: it spends user time (U), time in kernel code (S), time in which the kernel copies bytes
//! for it (B), and waits (W) until something is stable. While it waits the kernel's own threads compute for it
//! (journal, write-back); that part of the waiting is kernel code. What each of these takes longer on the subject is
//! measured by the same pieces of work on both machines ([`Costs`]); none of them is fitted to the application.
//!
//! Kernel code is the exception: a piece that is repeated over and over is hot in every cache, an application's kernel
//! code is not, and an emulator suffers more from that. So its factor is that of reference applications: of those whose
//! kernel time goes to the like ([`super::similar_references`]), where that was sampled, and then user code's too; else their mean,
//! copying left out.
//!
//! Several workers share processors. On the reference the waiting is what a closed network of that many
//! customers needs to be as fast as the application; on the subject the network has the subject's times. Processors that
//! are busy together slow each other down: by how much, pieces in several threads show. What several workers wait beyond
//! what the disk takes, they wait for each other (locks): it grows as the time does in which the others hold them.

use virtbench_record::{Cost, CostPart, Costs, Profile, Reference, ReferenceRun};

use super::queueing::{Network, Solved, Station, solve};
use super::sampling::{Factor, SAMPLES, draws};
use super::similar_references::{Alike, likened};
use super::{Breakdown, Part};

/// Below this share of its time an application's waiting says nothing of how fast it is.
const LEAST_WAIT: f64 = 0.02;
/// With fewer reference applications the pieces stand for kernel code.
const FEWEST_REFERENCES: usize = 5;
/// Steps of a bisection.
const STEPS: u32 = 40;
/// Rounds in which a rate and how busy it makes the subject are made to agree.
const ROUNDS: u32 = 4;

impl Factor {
    fn of_part(costs: &Costs, part: CostPart) -> Option<Self> {
        let ln = |cost: &Cost| (cost.subject_ns / cost.reference_ns).ln();
        Self::of_logarithms(&costs.costs.iter().filter(|cost| cost.part == part).map(ln).collect::<Vec<_>>())
    }

    /// Kernel code of reference applications; `None` where too few of them have any to speak of.
    fn of_references(costs: &Costs, [here_ns, there_ns]: [f64; 2]) -> Option<Self> {
        let ln = |reference: &Reference| -> Option<f64> {
            let here_s = kernel_code_s(&reference.reference, here_ns)?;
            let there_s = kernel_code_s(&reference.subject, there_ns)?;
            Some((there_s / here_s).ln())
        };
        let values: Vec<f64> = costs.references.iter().filter_map(ln).collect();
        if values.len() < FEWEST_REFERENCES { None } else { Self::of_logarithms(&values) }
    }
}

/// How many times as long user code takes in as many threads as the subject has processors, on either machine; 1 where
/// that was not measured.
fn crowding(costs: &Costs) -> [f64; 2] {
    [0, 1].map(|side: usize| {
        let values: Vec<f64> = costs.slowdowns().map(|(_, slower)| slower[side].ln()).collect();
        Factor::of_logarithms(&values).map_or(1.0, Factor::mean)
    })
}

/// Slowdown with so many of a machine's processors busy: `all` with all, none with one.
fn crowded(all: f64, busy: f64, processors: f64) -> f64 {
    if processors <= 1.0 {
        return 1.0;
    }
    1.0 + (all - 1.0) * ((busy - 1.0) / (processors - 1.0)).clamp(0.0, 1.0)
}

/// Kernel code of an operation without copying, in seconds. `None` where it is less than the accounts can tell, or less
/// than the copying.
fn kernel_code_s(run: &ReferenceRun, byte_ns: f64) -> Option<f64> {
    let all_s = run.cpu_s(1)?;
    let copy_s = run.footprint.copied_bytes as f64 * byte_ns / 1e9 / run.operations();
    (copy_s <= all_s / 2.0).then_some(all_s - copy_s)
}

/// Where kernel code's factor is from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KernelFrom {
    /// Pieces of work.
    Pieces,
    /// The mean of reference applications.
    References,
    /// Reference applications whose kernel time goes to the like.
    Alike(Alike),
}

/// Factors of all parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Factors {
    pub user: f64,
    pub system: f64,
    pub copy: f64,
    pub wait: f64,
}

/// An application as a network whose times are known by part.
#[derive(Debug, Clone)]
pub(super) struct Scaling {
    factors: [Factor; 4],
    kernel_from: KernelFrom,
    /// Slowdown of each machine's processors when all are busy.
    crowding: [f64; 2],
    /// Seconds of each in a second of the application's work on the reference.
    user_s: f64,
    system_s: f64,
    copy_s: f64,
    threads_s: f64,
    /// Of the time of the kernel's threads, what the application waits for.
    awaited_s: f64,
    wait_s: f64,
    /// What workers wait for each other.
    held_s: f64,
    customers: u32,
    processors: [f64; 2],
}

/// An application's times on the subject.
struct OnSubject {
    busy_s: f64,
    /// With what the kernel's threads compute meanwhile.
    all_busy_s: f64,
    wait_s: f64,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scaled {
    /// Subject's rate as a share of the reference's.
    pub ratio: f64,
    /// Draws of it, ascending.
    pub draws: Vec<f64>,
    /// Where the time goes, of a second of work on the reference.
    pub breakdown: [Breakdown; 2],
    /// Share of the subject's processors that is busy.
    pub busy: f64,
    /// The factors.
    pub factors: Factors,
    /// How far another application's kernel code may be from its factor: standard deviation as a factor.
    pub kernel_spread: f64,
    /// Where that is from.
    pub kernel_from: KernelFrom,
}

impl Scaling {
    /// # Errors
    /// What is needed: the application's CPU use, or a part of the costs.
    pub(super) fn new(profile: &Profile, costs: &Costs, vcpus: Option<u32>) -> Result<Self, &'static str> {
        const CPU_USE: &str = "the application's CPU use, user and system";
        const PARTS: &str = "what user code, kernel code and copying cost (`virtbench costs` again)";
        let share = |percent: Option<&f64>| percent.map(|percent| percent / 100.0);
        let user_s = share(profile.cpu_user_percent.value()).ok_or(CPU_USE)?;
        let all_system_s = share(profile.cpu_system_percent.value()).ok_or(CPU_USE)?;
        let mean_ns = |of: fn(&Cost) -> f64| {
            let copies = costs.costs.iter().filter(|cost| cost.part == CostPart::Copy);
            copies.clone().map(of).sum::<f64>() / copies.count().max(1) as f64
        };
        let byte_ns = [mean_ns(|cost| cost.reference_ns), mean_ns(|cost| cost.subject_ns)];
        let copied = profile.copied_bytes_per_second.value().copied().unwrap_or(0.0);
        let busy_s = user_s + all_system_s;
        let processors = f64::from(*profile.processors.value().unwrap_or(&1)).max(busy_s);
        let subject_processors = f64::from(vcpus.unwrap_or(costs.vcpus));
        let most = crowding(costs);
        let counts = [processors, f64::from(costs.vcpus)];
        let alike = profile
            .footprint
            .value()
            .and_then(|seen| likened(costs, seen, &|side, busy| crowded(most[side], busy, counts[side])));
        // Where applications are compared, those that copy much are compared with their like.
        let copy_s = if alike.is_some() { 0.0 } else { (copied * byte_ns[0] / 1e9).min(all_system_s) };
        let user = match alike.as_ref().and_then(|found| found.user) {
            Some(factor) => factor,
            None => Factor::of_part(costs, CostPart::User).ok_or(PARTS)?,
        };
        let (kernel, kernel_from) = match alike {
            Some(found) => (found.kernel, KernelFrom::Alike(found.from)),
            None => match Factor::of_references(costs, byte_ns) {
                Some(factor) => (factor, KernelFrom::References),
                None => (Factor::of_part(costs, CostPart::System).ok_or(PARTS)?, KernelFrom::Pieces),
            },
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // bounded
        let least = busy_s.ceil().clamp(1.0, 65_536.0) as u32;
        let customers = profile.workers.value().copied().unwrap_or(1).max(least);
        let copy = Factor::of_part(costs, CostPart::Copy).ok_or(PARTS)?;
        let wait = Factor::of_part(costs, CostPart::Wait);
        let mut scaling = Self {
            factors: [user, kernel, copy, wait.unwrap_or(Factor { ln: 0.0, deviation: 0.0 })],
            kernel_from,
            crowding: most,
            user_s,
            system_s: all_system_s - copy_s,
            copy_s,
            threads_s: share(profile.cpu_kernel_threads_percent.value()).unwrap_or(0.0),
            awaited_s: 0.0,
            wait_s: 0.0,
            held_s: 0.0,
            customers,
            processors: [processors, subject_processors],
        };
        let wait_s = scaling.fit_wait();
        // A thread that waits for a journal waits while the kernel's threads compute.
        scaling.awaited_s = scaling.threads_s.min(wait_s);
        scaling.wait_s = wait_s - scaling.awaited_s;
        // Of what is left the disk takes no more than it was busy.
        if let (true, Some(disk_s)) = (customers > 1, profile.outstanding_mean.value()) {
            scaling.held_s = (scaling.wait_s - disk_s).max(0.0);
            scaling.wait_s -= scaling.held_s;
        }
        if wait.is_none() && scaling.wait_s > LEAST_WAIT {
            return Err(
                "what waiting for the disk costs in the VM, which could not be measured there: flushed writes \
                 took processor time alone (measure the costs on another disk)",
            );
        }
        Ok(scaling)
    }

    /// Waiting, with which the reference does a second of work in a second; 0 where it is slower without.
    fn fit_wait(&self) -> f64 {
        let rate = |wait_s| self.solve(self.busy([1.0; 3]), wait_s, self.processors[0]).per_second;
        if rate(0.0) <= 1.0 {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, f64::from(self.customers));
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if rate(middle) > 1.0 { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    }

    fn busy(&self, [user, system, copy]: [f64; 3]) -> f64 {
        self.user_s * user + (self.system_s + self.awaited_s) * system + self.copy_s * copy
    }

    fn solve(&self, busy_s: f64, wait_s: f64, processors: f64) -> Solved {
        let servers = processors.min(f64::from(self.customers));
        let stations = vec![Station { demand_s: busy_s, servers }];
        solve(&Network { customers: self.customers, think_s: wait_s, stations })
    }

    /// The subject's rate as a share of the reference's: what the network does there over what it does
    /// here, and no more than the processors allow with the kernel's own threads counted in.
    fn ratio(&self, factors: &Factors) -> (f64, OnSubject) {
        let on_reference =
            self.solve(self.busy([1.0; 3]), self.wait_s + self.held_s, self.processors[0]).per_second;
        let at = |slower: f64| {
            let on_subject = self.on_subject(factors, slower);
            let solved = self.solve(on_subject.busy_s, on_subject.wait_s, self.processors[1]).per_second;
            ((solved / on_reference).min(self.processors[1] / on_subject.all_busy_s.max(1e-12)), on_subject)
        };
        let mut found = at(1.0);
        // How busy the subject is decides how fast it is, and the other way round.
        for _ in 0..ROUNDS {
            found = at(self.slower(found.0 * found.1.all_busy_s));
        }
        found
    }

    /// What is added to factors where so many of the subject's processors are busy, over what the reference's times hold.
    fn slower(&self, busy: f64) -> f64 {
        let on_reference = self.busy([1.0; 3]) + self.threads_s - self.awaited_s;
        crowded(self.crowding[1], busy, self.processors[1])
            / crowded(self.crowding[0], on_reference, self.processors[0])
    }

    /// The application's times on the subject.
    fn on_subject(&self, factors: &Factors, slower: f64) -> OnSubject {
        let Factors { user, system, copy, wait } = *factors;
        let busy_s = self.busy([user, system, copy]) * slower;
        let rest_s = (self.threads_s - self.awaited_s) * system * slower;
        let disk_s = self.wait_s * wait;
        let held = (busy_s + disk_s) / (self.busy([1.0; 3]) + self.wait_s).max(1e-12);
        OnSubject { busy_s, all_busy_s: busy_s + rest_s, wait_s: disk_s + self.held_s * held }
    }

    pub(super) fn predict(&self, seed: u64) -> Scaled {
        let [user, system, copy, wait] = self.factors;
        let factors =
            Factors { user: user.mean(), system: system.mean(), copy: copy.mean(), wait: wait.mean() };
        let (ratio, times) = self.ratio(&factors);
        let draws = draws(SAMPLES, seed, |sample| {
            let [user, system, copy, wait] = self.factors.map(|factor| factor.drawn(sample));
            Some(self.ratio(&Factors { user, system, copy, wait }).0)
        });
        let plain = [self.user_s, self.system_s + self.awaited_s + self.copy_s, self.wait_s + self.held_s];
        let computing = times.busy_s;
        let ms = |seconds: f64| seconds * 1e3;
        let residence = self.solve(computing, times.wait_s, self.processors[1]).residence_s[0];
        let queue = (residence - computing).max(0.0);
        let of = |[user, system, wait]: [f64; 3], added: f64, queue: f64| {
            Breakdown::from_parts([
                (Part::User, ms(user)),
                (Part::System, ms(system)),
                (Part::Virtualization, ms(added)),
                (Part::SystemIo, ms(queue)),
                (Part::Disk, ms(wait)),
            ])
        };
        let added = (computing - plain[0] - plain[1]).max(0.0);
        let on_subject = [plain[0], plain[1], times.wait_s];
        Scaled {
            ratio,
            draws,
            breakdown: [of(plain, 0.0, 0.0), of(on_subject, added, queue)],
            busy: (ratio * times.all_busy_s / self.processors[1]).min(1.0),
            factors,
            kernel_spread: self.factors[1].deviation.exp(),
            kernel_from: self.kernel_from.clone(),
        }
    }
}

#[cfg(test)]
#[path = "scaling_tests.rs"]
mod tests;
