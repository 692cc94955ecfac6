//! A prediction for people.

use std::io::{self, Write};

use virtbench_model::predict::{Breakdown, Part};
use virtbench_report::PredictionPage;

use crate::text_table::{TextTable, left, right};

/// Characters of the longest bar.
const WIDTH: f64 = 50.0;

/// Writes it.
pub fn write(out: &mut impl Write, page: &PredictionPage<'_>) -> io::Result<()> {
    let prediction = page.prediction;
    let takeaway = page.takeaway();
    for sentence in std::iter::once(&takeaway.headline).chain(&takeaway.details) {
        writeln!(out, "{sentence}")?;
    }
    if let Some([reference, subject]) = &prediction.breakdown {
        writeln!(out, "\nWhere the time of one operation goes, in ms")?;
        let longest = reference.total_ms().max(subject.total_ms());
        for (name, breakdown) in [(page.from, reference), (page.to, subject)] {
            bars(out, name, breakdown, longest)?;
        }
    }
    writeln!(out, "\nBottleneck: {}", prediction.bottleneck)?;
    if !prediction.what_if.is_empty() {
        let mut table = TextTable::new(2, &[left(68), right(12), left(0)]);
        for what in &prediction.what_if {
            let change = 100.0 * (what.capacity / prediction.capacity() - 1.0);
            table.row([what.change.clone(), format!("{:.1}", what.capacity), format!("({change:+.1} %)")]);
        }
        writeln!(out, "{table}")?;
    }
    for caution in &takeaway.cautions {
        writeln!(out, "caution: {caution}")?;
    }
    Ok(())
}

fn bars(out: &mut impl Write, name: &str, breakdown: &Breakdown, longest_ms: f64) -> io::Result<()> {
    writeln!(out, "{name}: {:.3}", breakdown.total_ms())?;
    for (part, ms) in &breakdown.0 {
        writeln!(out, "  {:<36}{ms:>10.3}  {}", Part::name(*part), "#".repeat(length(*ms, longest_ms)))?;
    }
    Ok(())
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to WIDTH
fn length(ms: f64, longest_ms: f64) -> usize {
    (ms / longest_ms.max(1e-12) * WIDTH).round().clamp(0.0, WIDTH) as usize
}
