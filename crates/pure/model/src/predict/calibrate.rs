//! The think time with which a model load does as many operations as the application ([ESX Disk 2003], 5.2).
//!
//! The search runs nothing itself:
//!
//! ```text
//! next_probe() -> think time -> the caller runs the load -> observe(think time, rate) -> ... -> None
//! ```
//!
//! A worker's cycle is its think time and everything else, workers / rate in all. What the last run
//! shows of "everything else" gives the next think time; it changes little with it, so that few runs
//! are needed. Where a step would leave what earlier runs have shown to bracket the answer, the middle
//! of the bracket is tried instead.

/// The result of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Calibration {
    /// A think time whose rate is near enough.
    Found {
        /// The think time, in nanoseconds.
        think_ns: f64,
        /// Its rate, per second.
        per_second: f64,
    },
    /// Even without any think time the load is slower than the application.
    OutOfReach {
        /// The rate it reached.
        most_per_second: f64,
    },
    /// The runs were used up.
    Nearest {
        /// The think time that came nearest, in nanoseconds.
        think_ns: f64,
        /// Its rate, per second.
        per_second: f64,
    },
}

/// The search.
#[derive(Debug, Clone)]
pub struct ThinkSearch {
    workers: f64,
    target: f64,
    tolerance: f64,
    most_runs: usize,
    runs: Vec<(f64, f64)>,
    next_ns: f64,
    result: Option<Calibration>,
}

impl ThinkSearch {
    /// For a load of `workers` that shall do `per_second` operations, within the share `tolerance`, in at
    /// most `most_runs` runs. `response_ns` is what an operation is believed to take; 0 if unknown.
    #[must_use]
    pub fn new(workers: u32, per_second: f64, response_ns: f64, tolerance: f64, most_runs: usize) -> Self {
        let workers = f64::from(workers);
        let next_ns = (workers / per_second * 1e9 - response_ns).max(0.0);
        Self { workers, target: per_second, tolerance, most_runs, runs: Vec::new(), next_ns, result: None }
    }

    /// The think time to try next, in nanoseconds; `None` once the search has ended.
    #[must_use]
    pub fn next_probe(&self) -> Option<f64> {
        self.result.is_none().then_some(self.next_ns)
    }

    /// Takes in what a run with a think time did.
    pub fn observe(&mut self, think_ns: f64, per_second: f64) {
        if self.result.is_some() {
            return;
        }
        self.runs.push((think_ns, per_second));
        let off = |per_second: f64| (per_second / self.target - 1.0).abs();
        if off(per_second) <= self.tolerance {
            self.result = Some(Calibration::Found { think_ns, per_second });
        } else if think_ns <= 0.0 && per_second < self.target {
            self.result = Some(Calibration::OutOfReach { most_per_second: per_second });
        } else if self.runs.len() >= self.most_runs {
            let nearest = self.runs.iter().min_by(|a, b| off(a.1).total_cmp(&off(b.1)));
            self.result = nearest.map(|(think_ns, per_second)| Calibration::Nearest {
                think_ns: *think_ns,
                per_second: *per_second,
            });
        } else {
            self.next_ns = self.step(think_ns, per_second);
        }
    }

    fn step(&self, think_ns: f64, per_second: f64) -> f64 {
        let cycle_ns = |per_second: f64| self.workers / per_second.max(1e-9) * 1e9;
        let wanted = (cycle_ns(self.target) - (cycle_ns(per_second) - think_ns)).max(0.0);
        // A longer think time never makes a load faster.
        let too_fast = self.runs.iter().filter(|(_, rate)| *rate > self.target).map(|(think, _)| *think);
        let too_slow = self.runs.iter().filter(|(_, rate)| *rate < self.target).map(|(think, _)| *think);
        let low = too_fast.fold(0.0, f64::max);
        let high = too_slow.fold(f64::INFINITY, f64::min);
        if low < wanted && wanted < high || (wanted == 0.0 && low == 0.0) || low >= high {
            wanted
        } else if high.is_finite() {
            f64::midpoint(low, high)
        } else {
            low * 2.0 + 1e3
        }
    }

    /// What came of it, once it has ended.
    #[must_use]
    pub fn result(&self) -> Option<Calibration> {
        self.result
    }
}
