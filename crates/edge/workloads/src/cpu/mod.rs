//! A suite of computations ([Multi-VM 2010], section 3): operations per minute of each, the geometric mean of
//! them, and how long the processors were idle meanwhile.

#[cfg(feature = "suite")]
mod crypto;
#[cfg(feature = "suite")]
mod dense;
mod kernel;
#[cfg(feature = "suite")]
mod suite;
#[cfg(not(feature = "suite"))]
#[path = "small_suite.rs"]
mod suite;
#[cfg(feature = "suite")]
mod text;

use virtbench_engine::{monotonic_ns, process_cpu_ns};
use virtbench_record::{Better, idle_percent};
use virtbench_workload::{CpuKernel, CpuSpec, MAX_THREADS};

use crate::runner::{RunError, Runner, Sheet, Watch, each, threads_meant};
use kernel::Kernel;
use suite::build;

/// The unit of scores.
const UNIT: &str = "operations/min";

/// The suite, with data for each thread.
pub(crate) struct Cpu {
    threads: u32,
    kernel_ns: u64,
    /// Kernel by kernel one instance a thread.
    suite: Vec<(CpuKernel, Vec<Box<dyn Kernel>>)>,
}

/// What a thread did.
struct Share {
    operations: u64,
    wrong: u64,
    elapsed_ns: u64,
}

impl Cpu {
    /// Makes the data of every kernel, one instance a thread.
    pub(crate) fn new(spec: &CpuSpec) -> Result<Self, RunError> {
        let threads = threads_meant(spec.threads).min(MAX_THREADS);
        let suite = spec.kernels.iter().map(|kernel| {
            let instances: Option<Vec<Box<dyn Kernel>>> =
                each(0..threads, |_| build(*kernel))?.into_iter().collect();
            let left_out = || {
                let name = kernel.name();
                RunError::Misfit(format!(
                    "the computation {name} is not in this build, which `make study` made and which has monte-carlo, sor and sparse: \
                     `make install` builds all of virtbench"
                ))
            };
            Ok((*kernel, instances.ok_or_else(left_out)?))
        });
        let suite = suite.collect::<Result<_, RunError>>()?;
        Ok(Self { threads, kernel_ns: spec.kernel_ns, suite })
    }
}

impl Runner for Cpu {
    fn threads(&self) -> u32 {
        self.threads
    }

    fn round(&mut self, watch: &Watch<'_>, sheet: &mut Sheet) -> Result<(), RunError> {
        let mut rates = Vec::new();
        for (kernel, instances) in &mut self.suite {
            let cpu_before = process_cpu_ns();
            let kernel_ns = self.kernel_ns;
            let shares = each(instances, |instance| repeat(&mut **instance, kernel_ns, watch))?;
            let cpu = process_cpu_ns();
            let wrong = shares.iter().map(|share| share.wrong).sum();
            if wrong > 0 {
                sheet.errors(&format!("wrong result of {}", kernel.name()), wrong);
            }
            if shares.iter().any(|share| share.elapsed_ns < kernel_ns) {
                return Ok(());
            }
            let per_minute = |share: &Share| share.operations as f64 * 60e9 / share.elapsed_ns as f64;
            let rate = shares.iter().map(per_minute).sum();
            sheet.sample(kernel.name(), UNIT, Better::Higher, rate);
            rates.push(rate);
            let used_ns = (cpu[0] + cpu[1]).saturating_sub(cpu_before[0] + cpu_before[1]);
            let all_ns = shares.iter().map(|share| share.elapsed_ns).sum();
            let idle = idle_percent(used_ns, 1, all_ns);
            sheet.sample(&format!("{} idle", kernel.name()), "%", Better::Neither, idle);
        }
        sheet.lead("score", UNIT, Better::Higher, geometric_mean(&rates));
        Ok(())
    }
}

/// Repeats a kernel for `time_ns`, at least once.
fn repeat(kernel: &mut dyn Kernel, time_ns: u64, watch: &Watch<'_>) -> Share {
    let begin_ns = monotonic_ns();
    let mut share = Share { operations: 0, wrong: 0, elapsed_ns: 0 };
    loop {
        if kernel.operation() {
            share.operations += 1;
            watch.count(1, 0);
        } else {
            share.wrong += 1;
        }
        share.elapsed_ns = monotonic_ns() - begin_ns;
        if share.elapsed_ns >= time_ns || watch.is_over() {
            return share;
        }
    }
}

/// The `n`-th root of the product; zero if any is.
fn geometric_mean(values: &[f64]) -> f64 {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    (logarithms / values.len().max(1) as f64).exp()
}

#[cfg(test)]
#[path = "cpu_tests.rs"]
mod tests;
