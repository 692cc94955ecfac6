//! Why a transaction takes more cycles on one side: slower instructions and more of them ([Platform 2014], Table 5).

use virtbench_model::ApplicationAnalysis;
use virtbench_record::Quantity;

use super::stacked::{Part, stacked};
use super::{Drawing, Figure, Values, Variant};

/// A bar for each side: the reference's cycles, what more instructions add to them, and what slower ones add. Nothing where
/// the three figures are not known.
pub(crate) fn growth(analysis: &ApplicationAnalysis) -> Option<Figure> {
    let base = analysis.sides.first()?.known.get(&Quantity::CyclesPerTransaction)?.mean;
    let mut names = vec![analysis.sides[0].name.clone()];
    let mut sides = vec![[base, 0.0, 0.0]];
    for against in &analysis.ratios {
        let growth = against.growth?;
        names.push(analysis.sides[against.side].name.clone());
        let further = base * (growth.instructions - 1.0);
        let slower = base * (growth.cycles - growth.instructions);
        sides.push([base + further.min(0.0) + slower.min(0.0), further.max(0.0), slower.max(0.0)]);
    }
    let parts = [("as on the reference", 0), ("more instructions", 2), ("slower instructions", 1)];
    let parts = parts.into_iter().enumerate().map(|(index, (name, colour))| Part {
        name: name.into(),
        colour,
        of_each: sides.iter().map(|side| side[index]).collect(),
    });
    let chart = stacked("cycles a transaction", "cycles", &names, &parts.collect::<Vec<_>>());
    let label = "Cycles a transaction on each side, split into those of the reference, of further instructions and of slower ones; \
                 the table below holds the values.";
    Some(Figure {
        title: "Cycles of a transaction".into(),
        caption: "Cycles are cycles an instruction (CPI) times instructions (path length). What CPI adds is counted at \
                  the longer path ([Platform 2014], Table 5)."
            .into(),
        drawings: vec![Drawing::only("growth", label.into(), Variant::chart("", chart))],
        values: Values::Own,
    })
}
