//! What is not as the paper says: by how much, and what that hangs on.
//!
//! Nothing is said that was not measured with these settings: a value outside its band is read off again with one assumption
//! changed at a time, a sentence has the interval that it was judged by.

use serde::Serialize;
use virtbench_fence_evaluation::{Finding, PaperFigure, Published, Row, Verdict};
use virtbench_fence_sim::client::Personality;
use virtbench_report::FenceTable;

use super::explain::Explanation;

/// One value outside its band, or one sentence that does not hold.
#[derive(Debug, Serialize)]
pub struct Miss {
    figure: PaperFigure,
    workload: Personality,
    what: String,
    by_how_much: String,
    why: String,
    experiments: String,
}

/// A value outside its band, with what it is when assumptions are changed.
pub fn value(row: &Row, published: &Published, explanation: &Explanation) -> Miss {
    let (metric, unit) = (row.metric, row.metric.unit());
    let outside = published.outside(row.measured.mean);
    let side = if outside > 0.0 { "above" } else { "below" };
    let points = if unit == "%" { "points" } else { unit };
    let place = row.x.map_or_else(String::new, |x| format!(" at {x}"));
    let text = |(name, value): &(String, f64)| format!("{name}: {value:.1} {unit}");
    let experiments: Vec<String> = explanation.values.iter().map(text).collect();
    Miss {
        figure: row.figure,
        workload: row.workload,
        what: format!("{}{place}, {}, {}", row.system, row.machine.name(), metric.name()),
        by_how_much: format!("{:.1} {unit}, {:.1} {points} {side}", row.measured.mean, outside.abs()),
        why: why(row.measured.mean, published, explanation),
        experiments: experiments.join("; "),
    }
}

/// Which change brings the value into its band.
fn why(measured: f64, published: &Published, explanation: &Explanation) -> String {
    let values = || explanation.values.iter().filter(|(_, value)| value.is_finite());
    let within: Vec<&str> = values()
        .filter(|(_, value)| published.outside(*value) == 0.0)
        .map(|(name, _)| name.as_str())
        .collect();
    if !within.is_empty() {
        return format!("It hangs on an assumption: in its band with {}.", within.join("; or "));
    }
    let far = |value: f64| published.outside(value).abs();
    match values().min_by(|(_, a), (_, b)| far(*a).total_cmp(&far(*b))) {
        Some((name, value)) if far(*value) < far(measured) => {
            format!("No single change that was tried brings it into its band; nearest comes {name}.")
        }
        _ => "Not explained: no single change that was tried brings it nearer to its band.".to_owned(),
    }
}

/// A sentence that does not hold; nothing for one that does.
pub fn sentence(finding: &Finding) -> Option<Miss> {
    let why = match finding.verdict {
        Verdict::Held => return None,
        Verdict::NotHeld => {
            "Refuted: the 95 % interval of the differences by experiment lies on the other side."
        }
        Verdict::Undecided => {
            "Undecided: the 95 % interval of the differences by experiment has both signs, or there is none; more \
             --replications narrow it."
        }
    };
    Some(Miss {
        figure: finding.figure,
        workload: finding.workload,
        what: finding.claim.clone(),
        by_how_much: finding.measured.clone(),
        why: why.to_owned(),
        experiments: String::new(),
    })
}

/// As a table of the page and of the text.
pub fn table(misses: &[Miss]) -> Option<FenceTable> {
    let cells = |miss: &Miss| {
        vec![
            miss.figure.name().to_owned(),
            miss.workload.name().to_owned(),
            miss.what.clone(),
            miss.by_how_much.clone(),
            miss.why.clone(),
            miss.experiments.clone(),
        ]
    };
    (!misses.is_empty()).then(|| FenceTable {
        title: "What is not as published, and what that hangs on".to_owned(),
        caption: "Each value outside its band, measured again with one assumption changed at a time, and each sentence \
                  that does not hold or is undecided. docs/deviation.md discusses the misses of the default settings."
            .to_owned(),
        header: ["figure", "workload", "what", "by how much", "what it hangs on", "with one assumption changed"]
            .map(str::to_owned)
            .into(),
        rows: misses.iter().map(cells).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Published {
        let text = r#"{"figure": "1", "workload": "webserver", "system": "HDD", "machine": "low",
            "metric": "response_deviation", "at_least": 300, "at_most": 400, "quote": ""}"#;
        serde_json::from_str(text).unwrap()
    }

    fn said(values: &[(&str, f64)]) -> String {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        why(450.0, &published(), &Explanation { values })
    }

    #[test]
    fn an_explanation_is_what_the_changed_runs_say() {
        assert!(said(&[("one", 420.0), ("other", 350.0)]).ends_with("in its band with other."));
        assert!(said(&[("one", 420.0), ("other", 470.0)]).ends_with("nearest comes one."));
        assert!(said(&[("one", 480.0)]).starts_with("Not explained"));
        assert!(said(&[]).starts_with("Not explained"));
    }
}
