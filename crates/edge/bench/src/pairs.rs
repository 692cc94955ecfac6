//! Ratios of paired measurements, and what was promised of them.

/// One measurement of one tool.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Operations per second.
    pub iops: f64,
    /// Mean latency, in nanoseconds.
    pub mean_latency_ns: f64,
    /// CPU time of the load generator an operation, in nanoseconds.
    pub cpu_per_io_ns: f64,
}

/// Both sides of a round: which comes first alternates, so that neither always finds the machine as the other left it.
///
/// # Errors
/// What either side fails with.
pub fn alternated<T, E>(
    round: usize,
    ours: impl FnOnce() -> Result<T, E>,
    theirs: impl FnOnce() -> Result<T, E>,
) -> Result<(T, T), E> {
    if round.is_multiple_of(2) {
        let ours = ours()?;
        Ok((ours, theirs()?))
    } else {
        let theirs = theirs()?;
        Ok((ours()?, theirs))
    }
}

/// Whether a promise was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Kept,
    /// It was not.
    Broken,
}

/// A promise about the ratio of a figure, ours to fio's.
pub struct Claim {
    figure: &'static str,
    of: fn(&Sample) -> f64,
    unit: f64,
    least: f64,
    most: f64,
}

impl Claim {
    /// At least this many times fio's IOPS.
    pub fn iops(least: f64) -> Self {
        Self { figure: "kIOPS", of: |sample| sample.iops, unit: 1e3, least, most: f64::INFINITY }
    }

    /// A rate within 5 % of the other tool's.
    pub fn rate() -> Self {
        Self { figure: "k/s", of: |sample| sample.iops, unit: 1e3, least: 0.95, most: 1.05 }
    }

    /// A throughput within 5 % of the other tool's.
    pub fn bytes() -> Self {
        Self { figure: "MB/s", of: |sample| sample.iops, unit: 1e6, least: 0.95, most: 1.05 }
    }

    /// No more CPU time an operation than fio.
    pub fn cpu_per_io() -> Self {
        Self { figure: "CPU us/IO", of: |sample| sample.cpu_per_io_ns, unit: 1e3, least: 0.0, most: 1.0 }
    }

    /// A mean latency within 5 % of fio's.
    pub fn mean_latency() -> Self {
        Self { figure: "mean us", of: |sample| sample.mean_latency_ns, unit: 1e3, least: 0.95, most: 1.05 }
    }

    /// Prints the line of this figure and judges the median ratio.
    pub fn hold(&self, case: &str, pairs: &[(Sample, Sample)]) -> Verdict {
        let ratios: Vec<f64> =
            pairs.iter().map(|(ours, theirs)| (self.of)(ours) / (self.of)(theirs)).collect();
        let ours = median(pairs.iter().map(|(ours, _)| (self.of)(ours)).collect());
        let theirs = median(pairs.iter().map(|(_, theirs)| (self.of)(theirs)).collect());
        let ratio = median(ratios.clone());
        let (low, high) = ratios.iter().fold((f64::MAX, f64::MIN), |(l, h), r| (l.min(*r), h.max(*r)));
        let kept = (self.least..=self.most).contains(&ratio);
        let promise = match (self.least, self.most) {
            (least, f64::INFINITY) => format!(">= {least}"),
            (0.0, most) => format!("<= {most}"),
            (least, most) => format!("{least}-{most}"),
        };
        println!(
            "{:<56} {:>10.2} {:>10.2} {:>8.3} {:>15}  {:<9} {}",
            format!("{case}: {}", self.figure),
            ours / self.unit,
            theirs / self.unit,
            ratio,
            format!("{low:.2} to {high:.2}"),
            promise,
            if kept { "kept" } else { "BROKEN" }
        );
        if kept { Verdict::Kept } else { Verdict::Broken }
    }
}

/// Prints the line of a promise about IOPS alone, where there is no other tool to compare with, and
/// judges the median.
pub fn hold_floor(case: &str, samples: &[Sample], least_iops: f64) -> Verdict {
    let iops = median(samples.iter().map(|sample| sample.iops).collect());
    let (low, high) =
        samples.iter().fold((f64::MAX, f64::MIN), |(l, h), sample| (l.min(sample.iops), h.max(sample.iops)));
    let kept = iops >= least_iops;
    println!(
        "{:<56} {:>10.2} {:>10} {:>8} {:>15}  {:<9} {}",
        format!("{case}: kIOPS"),
        iops / 1e3,
        "-",
        "-",
        format!("{:.0} to {:.0}", low / 1e3, high / 1e3),
        format!(">= {}", least_iops / 1e3),
        if kept { "kept" } else { "BROKEN" }
    );
    if kept { Verdict::Kept } else { Verdict::Broken }
}

/// The value in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn a_claim_is_judged_by_the_median_of_the_ratios() {
        let sample = |iops| Sample { iops, mean_latency_ns: 100.0, cpu_per_io_ns: 10.0 };
        let pairs = [(sample(3.0), sample(1.0)), (sample(2.5), sample(1.0)), (sample(1.0), sample(1.0))];
        assert_eq!(Claim::iops(2.0).hold("x", &pairs), Verdict::Kept);
        assert_eq!(Claim::iops(2.6).hold("x", &pairs), Verdict::Broken);
        assert_eq!(Claim::mean_latency().hold("x", &pairs), Verdict::Kept);
        let samples = pairs.map(|(ours, _)| ours);
        assert_eq!(hold_floor("x", &samples, 2.5), Verdict::Kept);
        assert_eq!(hold_floor("x", &samples, 2.6), Verdict::Broken);
    }
}
