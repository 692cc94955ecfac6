//! Which of a domain's samples make its figure, and what each is compared with.

use virtbench_record::{Better, PlatformDomain, PlatformPlan, Sample};

/// What the name of a ratio has between the two that it is of.
pub(super) const OF: &str = " / ";
/// How a sample names what was measured beside guests.
const NATIVE: &str = "native";

/// A figure of a domain as a multiple of what it is compared with, turned so that more is better.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turned {
    pub(super) name: String,
    pub(super) better: Better,
    pub(super) ratio: f64,
}

/// The ratios of a domain's samples: those that its runs have made themselves, or to the figures of another run where the plan has one.
pub(super) fn ratios(plan: &PlatformPlan, domain: &PlatformDomain, samples: &[Sample]) -> Vec<Turned> {
    let turned = |sample: &Sample, value: f64| Turned {
        name: sample.name.clone(),
        better: sample.better,
        ratio: turned(value, sample.better),
    };
    if let Some(reference) = &plan.reference {
        let others = reference.domains.get(&domain.name).map(Vec::as_slice).unwrap_or_default();
        let against = samples.iter().filter(|one| is_own(one)).filter_map(|one| {
            let other = others.iter().find(|other| other.name == one.name && other.unit == one.unit)?;
            Some(turned(one, quotient(other.value, one.value, one.better)))
        });
        return against.collect();
    }
    let is_counted = |sample: &&Sample| !domain.absolute && is_ratio(sample);
    samples.iter().filter(is_counted).map(|sample| turned(sample, sample.value)).collect()
}

/// Whether a sample of a domain is a ratio of two that its runs have compared.
pub(super) fn is_ratio(sample: &Sample) -> bool {
    sample.unit.is_empty() && sample.better != Better::Neither && sample.name.contains(OF)
}

/// Whether a sample is a figure of guests by itself: neither a ratio nor of what was measured beside them.
pub(super) fn is_own(sample: &Sample) -> bool {
    let of = sample.name.rsplit_once(" (").map_or("", |(_, subject)| subject);
    sample.better != Better::Neither && !is_ratio(sample) && !of.starts_with(NATIVE)
}

/// How many times the first the second is. Where the second has done nothing, it is the worst there is.
pub(super) fn quotient(first: f64, second: f64, better: Better) -> f64 {
    match better {
        Better::Lower if second.is_infinite() => f64::MAX,
        _ if first > 0.0 => second / first,
        _ => f64::NAN,
    }
}

/// The value, or one divided by it, so that more is better.
pub(super) fn turned(ratio: f64, better: Better) -> f64 {
    match better {
        Better::Higher => ratio,
        Better::Lower if ratio > 0.0 => 1.0 / ratio,
        Better::Lower | Better::Neither => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_never_answered_is_the_worst_there_is() {
        assert_eq!(quotient(10.0, f64::INFINITY, Better::Lower), f64::MAX);
        assert_eq!(quotient(10.0, 0.0, Better::Higher), 0.0);
        assert!(quotient(0.0, 0.0, Better::Higher).is_nan());
    }

    #[test]
    fn what_is_native_and_what_is_a_ratio_is_no_figure_of_guests() {
        let own = |name: &str, unit: &str| is_own(&Sample::new(name, unit, Better::Higher, 1.0));
        assert!(own("throughput (vm, all points)", "B/s") && own("desktops (users content)", ""));
        assert!(!own("throughput (native, all points)", "B/s") && !own("requests (native)", "1/s"));
        assert!(!own("throughput (vm / native, all points)", ""));
    }
}
