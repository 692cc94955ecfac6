//! Whether other programs used the host while something was measured on it: one check for every study and
//! for loads.

use virtbench_record::HostUse;

/// Share of all processors' time that other programs may use before it counts.
pub const OTHERS_SHARE: f64 = 0.1;
/// Share of the measurements beside which they may do so before the run as a whole is called disturbed.
const DISTURBED_SHARE: f64 = 0.1;

/// How much of the host other programs used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusyHost {
    /// Processors that they used, on average over the measurements.
    pub mean: f64,
    /// Processors that they used beside the measurement that they disturbed most.
    pub most: f64,
    /// Processors of the host.
    pub processors: u32,
    /// Measurements of which the use is known.
    pub measurements: usize,
    /// Those beside which they used more than [`OTHERS_SHARE`] of the host.
    pub disturbed: usize,
}

impl BusyHost {
    /// In words, for a reader of the figures.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { mean, most, processors, measurements, disturbed } = self;
        let of = if *measurements == 1 {
            format!("{mean:.1} of the host's {processors} processors while this was measured")
        } else {
            format!(
                "{mean:.1} of the host's {processors} processors on average, {most:.1} at most, and more than a tenth \
                 of them beside {disturbed} of {measurements} measurements"
            )
        };
        format!("Other programs used {of}: the figures show that as well. Measure again on a quiet host.")
    }
}

/// Whether other programs used more of the host than may be left unsaid.
#[must_use]
pub fn is_busy(host: &HostUse) -> bool {
    host.others_percent.is_some_and(|percent| percent >= OTHERS_SHARE * all_percent(host))
}

/// Judges what was measured together; nothing where the host was quiet, or nobody looked.
#[must_use]
pub fn busy_host<'a>(hosts: impl IntoIterator<Item = &'a HostUse>) -> Option<BusyHost> {
    let known: Vec<(&HostUse, f64)> =
        hosts.into_iter().filter_map(|host| Some((host, host.others_percent? / 100.0))).collect();
    let (last, _) = known.last()?;
    let mean = known.iter().map(|(_, used)| used).sum::<f64>() / known.len() as f64;
    let disturbed = known.iter().filter(|(host, _)| is_busy(host)).count();
    let is_telling = mean * 100.0 >= OTHERS_SHARE * all_percent(last)
        || disturbed as f64 >= DISTURBED_SHARE * known.len() as f64;
    (disturbed > 0 && is_telling).then(|| BusyHost {
        mean,
        most: known.iter().map(|(_, used)| *used).fold(0.0, f64::max),
        processors: last.processors,
        measurements: known.len(),
        disturbed,
    })
}

fn all_percent(host: &HostUse) -> f64 {
    100.0 * f64::from(host.processors.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_samples::host::host_use;

    fn host(others_percent: Option<f64>) -> HostUse {
        HostUse { others_percent, ..host_use(150.0, 100.0, 50.0) }
    }

    #[test]
    fn two_spinning_programs_are_said_and_a_quiet_host_is_not() {
        assert_eq!(busy_host(&[host(Some(3.0)), host(Some(19.0))]), None);
        assert_eq!(busy_host(&[host(None)]), None, "nobody looked");
        assert_eq!(busy_host(&[]), None);
        let busy = busy_host(&[host(Some(200.0)), host(Some(100.0)), host(Some(0.0))]).unwrap();
        assert_eq!((busy.mean, busy.most, busy.measurements, busy.disturbed), (1.0, 2.0, 3, 2));
        assert!(busy.words().contains("1.0 of the host's 2 processors on average"), "{}", busy.words());
        let once = busy_host(&[host(Some(50.0))]).unwrap();
        assert!(once.words().starts_with("Other programs used 0.5 of the host's 2 processors while"));
    }

    #[test]
    fn one_disturbed_measurement_among_many_is_not_the_run() {
        let mut hosts = vec![host(Some(0.0)); 20];
        hosts[3] = host(Some(200.0));
        assert_eq!(busy_host(&hosts), None);
        hosts[7] = host(Some(50.0));
        assert_eq!(busy_host(&hosts).map(|busy| busy.disturbed), Some(2));
    }
}
