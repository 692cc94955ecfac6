//! What the runs of one domain come to: ratios of VMs to this host itself, and the figures behind them.

use virtbench_record::{Plan, Provenance, Records, Sample};

use super::score::{OF, is_own, is_ratio, quotient};
use crate::history::{Measure, measures};

/// Samples of a domain; or why its runs have no ratio, in words.
pub type Ratios = Result<Vec<Sample>, String>;

/// The figures of a domain. One run compares by itself, and its ratios to the first side are taken. Of two the second is compared with
/// the first, figure by figure.
///
/// # Errors
/// There is nothing to compare, or a figure of the first run is missing in the second. Of a domain that is `absolute` one figure will do.
pub fn samples_of_domain(runs: &[(String, &Provenance, &Records)], absolute: bool) -> Ratios {
    let samples = match runs {
        [(_, provenance, records)] => {
            let other = others_beside(&provenance.plan);
            let counts = |one: &&Measure| one.headline && !other.iter().any(|name| is_of(one, name));
            measures(provenance, records).iter().filter(counts).map(sample).collect()
        }
        [(first, provenance, records), (second, other_provenance, other_records)] => {
            let [first_figures, second_figures] =
                [measures(provenance, records), measures(other_provenance, other_records)];
            against((first, &first_figures), (second, &second_figures))?
        }
        _ => return Err("a domain has one run or two: a defect".into()),
    };
    // Of a side that did nothing there is no ratio to what did.
    let samples: Vec<Sample> = samples.into_iter().filter(|one: &Sample| !one.value.is_nan()).collect();
    match absolute {
        true if samples.iter().any(is_own) => Ok(samples),
        true => Err("nothing was measured".into()),
        false if samples.iter().any(is_ratio) => Ok(samples),
        false => Err("nothing was measured on both sides".into()),
    }
}

/// Where no accelerator is named, storage is measured in several guests beside this host. The first is what the other domains' guests are.
fn others_beside(plan: &Plan) -> &[String] {
    match plan {
        Plan::NativeVsVm(plan) => plan.environments.get(2..).unwrap_or_default(),
        _ => &[],
    }
}

/// Whether a measure is of an environment, or of it against another one.
fn is_of(measure: &Measure, environment: &str) -> bool {
    measure.subject.strip_prefix(environment).is_some_and(|rest| rest.starts_with([',', ' ']))
}

fn sample(measure: &Measure) -> Sample {
    let name = format!("{} ({})", measure.quantity, measure.subject);
    Sample { name, unit: measure.unit.clone(), better: measure.better, value: measure.value }
}

/// Each headline of the second run as a multiple of the same of the first.
fn against((first, figures): (&str, &[Measure]), (second, others): (&str, &[Measure])) -> Ratios {
    let mut samples = Vec::new();
    for figure in figures.iter().filter(|one| one.headline) {
        let is_same = |other: &&Measure| other.subject == figure.subject && other.quantity == figure.quantity;
        let what = named_by_machines(figure);
        let other =
            others.iter().find(is_same).ok_or_else(|| format!("{what} was not measured in {second}"))?;
        let named = |run: &str, value: f64| Sample {
            name: format!("{what} ({run})"),
            unit: figure.unit.clone(),
            better: figure.better,
            value,
        };
        samples.push(named(first, figure.value));
        samples.push(named(second, other.value));
        let value = quotient(figure.value, other.value, figure.better);
        samples.push(Sample {
            name: format!("{what} ({second}{OF}{first})"),
            unit: String::new(),
            better: figure.better,
            value,
        });
    }
    Ok(samples)
}

/// `throughput of 2 at once` instead of `throughput, mean of 2`.
fn named_by_machines(figure: &Measure) -> String {
    let Measure { quantity, subject, .. } = figure;
    match subject.strip_prefix("mean of ") {
        Some("1") => format!("{quantity} of one"),
        Some(machines) => format!("{quantity} of {machines} at once"),
        None => format!("{quantity}, {subject}"),
    }
}

#[cfg(test)]
mod tests {
    use virtbench_record::{Better, GridPlan};
    use virtbench_samples::samples as synthetic;

    use super::*;

    fn figure(subject: &str, better: Better, value: f64) -> Measure {
        Measure {
            subject: subject.into(),
            quantity: "throughput".into(),
            unit: "1/s".into(),
            better,
            headline: true,
            value,
        }
    }

    #[test]
    fn a_run_that_compares_by_itself_gives_its_ratios_to_the_first_side() {
        let plan = virtbench_record::Plan::Network(synthetic::plan());
        let provenance = virtbench_samples::grid::described(plan);
        let records = Records::Samples(synthetic::records());
        let samples = samples_of_domain(&[("network".into(), &provenance, &records)], false).unwrap();
        let ratios: Vec<&Sample> = samples.iter().filter(|one| is_ratio(one)).collect();
        assert!(ratios.iter().all(|one| one.name.ends_with("(tap / native)")), "{ratios:?}");
        assert!(ratios.iter().any(|one| one.name.starts_with("requests ") && (one.value - 0.1).abs() < 1e-9));
        let empty = Records::Samples(Vec::new());
        assert!(samples_of_domain(&[("network".into(), &provenance, &empty)], false).is_err());
    }

    #[test]
    fn of_several_guests_beside_this_host_the_first_is_counted() {
        let figure = |subject: &str| figure(subject, Better::Higher, 1.0);
        assert!(
            is_of(&figure("tcg, all points"), "tcg") && is_of(&figure("tcg / native, all points"), "tcg")
        );
        assert!(
            !is_of(&figure("uml / native, all points"), "tcg") && !is_of(&figure("tcg2, all points"), "tcg")
        );
        let grid = virtbench_samples::grid::small_plan();
        let plan = GridPlan { environments: ["native", "uml", "tcg"].map(String::from).into(), ..grid };
        assert_eq!(others_beside(&Plan::NativeVsVm(plan)), ["tcg"]);
        assert!(others_beside(&Plan::Network(synthetic::plan())).is_empty());
    }

    #[test]
    fn of_two_runs_the_second_is_compared_with_the_first_and_nothing_may_be_missing() {
        let native = [figure("mean of 1", Better::Higher, 100.0), figure("mean of 2", Better::Higher, 80.0)];
        let vm = [figure("mean of 1", Better::Higher, 50.0), figure("mean of 2", Better::Higher, 0.0)];
        let samples = against(("native", &native), ("vm", &vm)).unwrap();
        let ratios: Vec<f64> = samples.iter().filter(|one| is_ratio(one)).map(|one| one.value).collect();
        assert_eq!((ratios, samples.len()), (vec![0.5, 0.0], 6));
        let why = against(("native", &native), ("vm", &vm[..1])).unwrap_err();
        assert_eq!(why, "throughput of 2 at once was not measured in vm");
    }
}
