//! Where the time of one operation goes, on both sides ([ESX Disk 2003], Figure 9).

use virtbench_model::predict::{Breakdown, Part as Spent};

use super::stacked::{Part, stacked};
use super::{Drawing, Figure, Values, Variant};

/// Parts in the order in which they are spent, each with its colour: the disk as what is
/// native to the question, virtualization as what the VM adds, waiting elsewhere in grey.
const PARTS: [(Spent, u8); 7] = [
    (Spent::Compute, 4),
    (Spent::User, 4),
    (Spent::System, 2),
    (Spent::Elsewhere, 7),
    (Spent::Virtualization, 1),
    (Spent::SystemIo, 5),
    (Spent::Disk, 0),
];

/// The figure: a bar for each side, and one for what was measured where the prediction was tried.
pub(crate) fn breakdown(names: [&str; 2], sides: &[Breakdown; 2], measured_ms: Option<f64>) -> Figure {
    let mut bars = names.map(str::to_owned).to_vec();
    bars.extend(measured_ms.map(|_| format!("{}, in fact", names[1])));
    let parts = PARTS.into_iter().map(|(part, colour)| {
        let of =
            |side: &Breakdown| side.0.iter().find(|(known, _)| *known == part).map_or(0.0, |(_, ms)| *ms);
        let of_each = sides.iter().map(of).chain(measured_ms.map(|_| 0.0)).collect();
        Part { name: part.name().into(), colour, of_each }
    });
    let whole = measured_ms.map(|ms| Part {
        name: "measured, not told apart".into(),
        colour: 6,
        of_each: vec![0.0, 0.0, ms],
    });
    let parts: Vec<Part> = parts.chain(whole).collect();
    let label =
        "Time of one operation on both sides, by what it is spent on; the table below holds the values.";
    let chart = stacked("ms an operation", "ms", &bars, &parts);
    Figure {
        title: "Where the time of one operation goes".into(),
        caption:
            "C is computing between operations, V what virtualization adds to it, S the system code of the \
                  operation and waiting for a processor, L the operation itself ([ESX Disk 2003], Figure 9)."
                .into(),
        drawings: vec![Drawing::only("breakdown", label.into(), Variant::chart("", chart))],
        values: Values::Own,
    }
}
