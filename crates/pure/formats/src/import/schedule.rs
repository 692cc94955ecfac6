//! When a job starts and what ends it, where a file says so.

use serde::{Deserialize, Serialize};
use virtbench_workload::{LoadSpec, Placement};

use super::error::Remark;

/// When a job starts, what must be so before, and what ends it early.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// How long the job waits once it could start, in nanoseconds.
    pub delay_ns: u64,
    /// Jobs of the same file, by index from 0, that must have ended before.
    pub after: Vec<usize>,
    /// Whether its target must exist: none is made.
    pub must_exist: bool,
    /// Whether the page cache's copy of the target is dropped before the job begins.
    pub drop_cache: bool,
    /// The least that reads and writes together must reach over each second, in bytes per second.
    pub least_bytes_per_second: Option<u64>,
    /// When the figures count as steady, which ends the job.
    pub steady: Option<SteadyEnd>,
    /// With which other jobs it keeps the number of its operations in proportion.
    #[serde(default)]
    pub flow: Option<FlowPart>,
    /// What else ends when this job does.
    pub ends: Option<Ends>,
}

impl Schedule {
    /// Whether the job starts at once and ends by itself.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let Self { delay_ns, after, least_bytes_per_second, steady, flow, ends, .. } = self;
        *delay_ns == 0
            && after.is_empty()
            && least_bytes_per_second.is_none()
            && steady.is_none()
            && flow.is_none()
            && ends.is_none()
    }
}

/// A job's part in a flow (fio's `flow`): workers of the same flow that run at the same time start operations
/// in the ratio of their weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowPart {
    /// Which flow.
    pub id: u64,
    /// The weight of each of the job's workers, from 1.
    pub weight: u32,
    /// How long a worker that is ahead sleeps, once nothing of its is in flight, in nanoseconds.
    pub sleep_ns: u64,
}

/// What ends with a job (fio's `exitall` and `exit_what`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// Every job that runs; later phases still do.
    Phase,
    /// Everything.
    All,
}

/// Which figure is to be steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyMetric {
    /// Operations per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency, in nanoseconds.
    Latency,
}

/// When a job's figures count as steady (fio's `steadystate`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SteadyEnd {
    /// Which figure.
    pub figure: SteadyMetric,
    /// Whether the trend over the window counts, per check; otherwise the furthest check from the mean.
    pub slope: bool,
    /// The most it may be: in percent of the window's mean, or in the figure's own unit.
    pub limit: f64,
    /// Whether the limit is in percent.
    pub percent: bool,
    /// The window, in nanoseconds.
    pub window_ns: u64,
    /// Time before the window may begin, in nanoseconds.
    pub ramp_ns: u64,
    /// How often the figure is taken, in nanoseconds.
    pub check_ns: u64,
}

impl SteadyEnd {
    /// Checks of a window.
    #[must_use]
    pub fn checks(&self) -> usize {
        usize::try_from(self.window_ns / self.check_ns.max(1)).unwrap_or(usize::MAX).max(2)
    }

    /// Whether these figures, one a check and as many as [`SteadyEnd::checks`], are steady.
    #[must_use]
    pub fn is_steady(&self, figures: &[f64]) -> bool {
        let count = figures.len() as f64;
        let mean = figures.iter().sum::<f64>() / count;
        let found = if self.slope {
            let middle = (count - 1.0) / 2.0;
            let points = || figures.iter().enumerate().map(|(index, figure)| (index as f64 - middle, figure));
            let spread: f64 = points().map(|(x, _)| x * x).sum();
            (points().map(|(x, figure)| x * (figure - mean)).sum::<f64>() / spread).abs()
        } else {
            figures.iter().map(|figure| (figure - mean).abs()).fold(0.0, f64::max)
        };
        let found = if self.percent { 100.0 * found / mean } else { found };
        figures.len() >= self.checks() && found.is_finite() && found < self.limit
    }
}

/// What a file's text can refer to: the reader itself looks at nothing.
pub struct Surroundings<'a> {
    /// The value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The size of a target, in bytes, where it exists.
    pub size_of: &'a dyn Fn(&str) -> Option<u64>,
    /// The sector of the device that a target is or lies on, in bytes, where that is known.
    pub sector_of: &'a dyn Fn(&str) -> Option<u64>,
    /// The text of another file that is named in this one.
    pub text_of: &'a dyn Fn(&str) -> Result<String, String>,
    /// Processors of this machine.
    pub processors: u64,
    /// Its memory, in bytes.
    pub memory_bytes: u64,
    /// The size of a page of memory, in bytes.
    pub page_bytes: u64,
}

impl Default for Surroundings<'_> {
    /// A machine of one processor of which nothing is known.
    fn default() -> Self {
        Self {
            variable: &|_| None,
            size_of: &|_| None,
            sector_of: &|_| None,
            text_of: &|_| Err("no file can be read here".into()),
            processors: 1,
            memory_bytes: 1 << 30,
            page_bytes: 4096,
        }
    }
}

/// One job of a file: one load on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedJob {
    /// Its name in the file.
    pub name: String,
    /// The load. Its region is `size_bytes`, or a stand-in of 1 GiB where that is absent: the
    /// target's own size takes its place.
    pub load: LoadSpec,
    /// The target, as the file names it.
    pub target: Option<String>,
    /// How much of the target is used from its start, in bytes; the whole of it where absent.
    pub size_bytes: Option<u64>,
    /// Jobs of one group run at the same time in the tool the file was written for; groups run one
    /// after another, from 0.
    pub group: u32,
    /// When it starts and what ends it, beside that.
    #[serde(default)]
    pub schedule: Schedule,
}

/// What a file asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportedLoad {
    /// The jobs, in the file's order; at least one.
    pub jobs: Vec<ImportedJob>,
    /// What differs between the tool the file was written for and this one, and what was left out
    /// because it changes no load.
    pub notes: Vec<String>,
    /// What was not understood; always empty unless the import was lenient.
    pub ignored: Vec<Remark>,
}

/// The coarsest alignment with which a placement's strides can be kept: other tools let a stride be
/// any multiple of a sector, whatever the block size.
pub(super) fn common_alignment(align_bytes: u64, placement: Placement) -> u64 {
    let (Placement::Strided { stride_bytes } | Placement::Backward { stride_bytes }) = placement else {
        return align_bytes;
    };
    let (mut larger, mut smaller) = (align_bytes, stride_bytes);
    while smaller > 0 {
        (larger, smaller) = (smaller, larger % smaller);
    }
    larger
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_steady_is_judged_as_in_fio() {
        let rule = |slope, percent, limit| SteadyEnd {
            figure: SteadyMetric::Iops,
            slope,
            limit,
            percent,
            window_ns: 4,
            ramp_ns: 0,
            check_ns: 1,
        };
        // The mean is 100, the furthest from it 10, the trend 6 a check.
        let figures = [90.0, 98.0, 102.0, 110.0];
        assert!(rule(false, true, 10.1).is_steady(&figures) && !rule(false, true, 10.0).is_steady(&figures));
        assert!(rule(false, false, 10.1).is_steady(&figures));
        assert!(rule(true, true, 6.5).is_steady(&figures) && !rule(true, true, 6.3).is_steady(&figures));
        assert!(!rule(false, true, 50.0).is_steady(&figures[..3]), "the window is not full");
        assert!(!rule(false, true, 50.0).is_steady(&[0.0; 4]), "nothing is not steady");
    }
}
