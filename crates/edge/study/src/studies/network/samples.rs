//! Traffic as samples: how much passed, how long it took, and what it cost the host's processors.

use virtbench_lab::{Traffic, TrafficMeasured};
use virtbench_record::{Better, Sample, SamplesMeasured, TimeCounts};

const MICROSECOND_NS: f64 = 1e3;
const SECOND_NS: f64 = 1e9;
const GIGABYTE: f64 = 1e9;

/// Adds what one kind of traffic comes to. Of several kinds the host's use is that of the busiest.
pub(super) fn of_traffic(
    name: &str,
    traffic: Traffic,
    found: &TrafficMeasured,
    measured: &mut SamplesMeasured,
) {
    let outcome = &found.outcome;
    let seconds = (outcome.elapsed_ns as f64 / SECOND_NS).max(f64::MIN_POSITIVE);
    let processor_s = found.host.as_ref().map(|host| host.cpu_percent / 100.0 * seconds);
    let cost = |unit: &str, of: f64, scale: f64| {
        let each = processor_s.filter(|_| of > 0.0).map(|seconds| seconds / of * scale);
        each.map(|each| Sample::new(format!("{name}, CPU"), unit, Better::Lower, each))
    };
    let rate = |what: &str, unit: &str, of: u64| Sample::new(what, unit, Better::Higher, of as f64 / seconds);
    let samples = &mut measured.samples;
    match traffic {
        Traffic::To { .. } | Traffic::From { .. } => {
            samples.push(rate(name, "B/s", outcome.bytes));
            samples.extend(cost("s/GB", outcome.bytes as f64 / GIGABYTE, 1.0));
        }
        Traffic::Requests | Traffic::Connections => {
            samples.push(rate(&format!("{name}s"), "1/s", outcome.completed));
            for (part, words) in [(0.5, "median"), (0.99, "99 %")] {
                let time = percentile(&outcome.latencies, part).map(|ns| ns as f64 / MICROSECOND_NS);
                samples.extend(
                    time.map(|us| Sample::new(format!("{name} time, {words}"), "us", Better::Lower, us)),
                );
            }
            samples.extend(cost("us", outcome.completed as f64, 1e6));
            measured.times.push(TimeCounts { name: name.to_owned(), counts: outcome.latencies.clone() });
        }
        Traffic::Datagrams { .. } => {
            samples.push(rate("datagrams received", "1/s", outcome.completed));
            let lost = outcome.sent.saturating_sub(outcome.completed) as f64;
            let percent = 100.0 * lost / (outcome.sent.max(1) as f64);
            samples.push(Sample::new("datagrams lost", "%", Better::Lower, percent));
            samples.extend(cost("us", outcome.completed as f64, 1e6));
        }
    }
    let busiest = measured.host.as_ref().map_or(0.0, |host| host.cpu_percent);
    if found.host.as_ref().is_some_and(|host| host.cpu_percent > busiest) {
        measured.host.clone_from(&found.host);
    }
}

/// The time that so large a part of all does not exceed, in nanoseconds; nothing of none.
fn percentile(counts: &[(u64, u64)], part: f64) -> Option<u64> {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let mut below = 0;
    counts.iter().find_map(|(end, count)| {
        below += count;
        (below as f64 >= part * total as f64).then_some(*end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_lab::NetworkOutcome;
    use virtbench_samples::host::host_use;

    fn value(measured: &SamplesMeasured, name: &str) -> f64 {
        measured.samples.iter().find(|sample| sample.name == name).unwrap_or_else(|| panic!("{name}")).value
    }

    #[test]
    fn costs_are_the_hosts_processors_for_a_gigabyte_and_for_each_request() {
        let outcome = NetworkOutcome {
            elapsed_ns: 2_000_000_000,
            bytes: 4_000_000_000,
            completed: 100_000,
            sent: 125_000,
            latencies: vec![(10_000, 50_000), (20_000, 49_000), (900_000, 1000)],
        };
        let found = TrafficMeasured { outcome, host: Some(host_use(150.0, 100.0, 50.0)) };
        let mut measured = SamplesMeasured::default();
        for (name, traffic) in [
            ("TCP to, 1 stream", Traffic::To { streams: 1 }),
            ("request", Traffic::Requests),
            ("datagrams", Traffic::Datagrams { bytes: 64 }),
        ] {
            of_traffic(name, traffic, &found, &mut measured);
        }
        // 3 s of processors for 4 GB and for 100,000 requests.
        assert_eq!(value(&measured, "TCP to, 1 stream"), 2e9);
        assert_eq!(value(&measured, "TCP to, 1 stream, CPU"), 0.75);
        assert_eq!((value(&measured, "requests"), value(&measured, "request, CPU")), (50_000.0, 30.0));
        assert_eq!(value(&measured, "request time, median"), 10.0);
        assert_eq!(value(&measured, "request time, 99 %"), 20.0);
        assert_eq!((value(&measured, "datagrams lost"), measured.times.len()), (20.0, 1));
    }

    #[test]
    fn of_nothing_there_is_no_time_and_no_cost() {
        let found = TrafficMeasured { outcome: NetworkOutcome::default(), host: None };
        let mut measured = SamplesMeasured::default();
        of_traffic("request", Traffic::Requests, &found, &mut measured);
        assert_eq!(measured.samples.len(), 1);
        assert_eq!(measured.samples[0].value, 0.0);
    }
}
