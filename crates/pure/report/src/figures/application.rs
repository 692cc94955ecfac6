//! An application's metrics: a bar for each side, alone and beside neighbours.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Series, Shape, look};
use virtbench_model::application::{ApplicationSideFound, ApplicationStudyAnalysis};
use virtbench_record::{ApplicationPlan, ApplicationRecord};

use super::style::{INK, ends, rows};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{scaled, significant, with_unit};

/// A drawing for each metric. Nothing where nothing was measured.
pub(crate) fn application(
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
    records: &[ApplicationRecord],
) -> Vec<Figure> {
    if records.iter().all(|record| record.measured().is_none()) {
        return Vec::new();
    }
    let drawings = (0..plan.metrics.len()).map(|index| drawing(plan, analysis, records, index)).collect();
    vec![Figure {
        title: "Each metric on each side".into(),
        caption:
            "Bars are means with their 95 % intervals; each mark is a repetition, which had a boot and a copy of the data of its own."
                .into(),
        drawings,
        values: Values::Own,
    }]
}

fn drawing(
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
    records: &[ApplicationRecord],
    index: usize,
) -> Drawing {
    let metric = &plan.metrics[index];
    let (factor, unit) = scaled(&metric.unit);
    let company = plan.company();
    let named = |side: &str, neighbours: u32| match neighbours {
        0 if company.len() == 1 => side.to_owned(),
        0 => format!("{side}, alone"),
        neighbours => format!("{side}, beside {neighbours}"),
    };
    let of_side = |side: &ApplicationSideFound| -> Vec<String> {
        company.iter().map(|neighbours| named(&side.side.name, *neighbours)).collect()
    };
    let names: Vec<String> = analysis.sides.iter().flat_map(of_side).collect();
    let row = |side: &str, neighbours: u32| names.iter().position(|name| *name == named(side, neighbours));
    let mut series = Vec::new();
    for (number, neighbours) in company.iter().enumerate() {
        let bar = |side: &ApplicationSideFound| {
            let found = &side.metrics[index];
            let found = if *neighbours == 0 { found.alone } else { found.beside }?;
            let row = row(&side.side.name, *neighbours)?;
            let interval = found.span().map(|span| ends(span.map(|value| value * factor)));
            let hover = format!("{}: {}", names[row], with_unit(found.mean, &metric.unit));
            let point = Point::new(found.mean * factor, row as f64).between(interval);
            Some(point.hover(hover).label(significant(found.mean * factor)))
        };
        let name = if *neighbours == 0 { "alone".to_owned() } else { format!("beside {neighbours}") };
        let points = analysis.sides.iter().filter_map(bar).collect();
        series.push(Series { name, look: look(number), form: Form::Bars, points });
    }
    let repetition = |record: &ApplicationRecord| {
        let row = row(&record.key.side, record.key.neighbours)?;
        let value = record.measured()?.values.get(&metric.name)? * factor;
        let hover =
            format!("{}, repetition {}: {}", names[row], record.key.repetition + 1, significant(value));
        Some(Point::new(value, row as f64).hover(hover))
    };
    let look = Look::of_colour(INK).shaped(Shape::Diamond);
    let points = records.iter().filter_map(repetition).collect();
    series.push(Series { name: "a repetition".into(), look, form: Form::Marks, points });
    let title = if unit.is_empty() { metric.name.clone() } else { format!("{}, {unit}", metric.name) };
    let chart = Chart { series, ..Chart::new(Axis::from_zero(title), rows(&names)) };
    let label = format!("{} on each side; the table below holds the values.", metric.name);
    Drawing::only(&format!("metric-{index}"), label, Variant::chart(&metric.name, chart))
}
