//! `run.json` of earlier versions, brought into the form of this one.

use serde_json::{Map, Value};

/// Brings a `run.json` of format 1 into format 2. There every run had a grid, empty where none was measured, and beside it
/// what a study of several VMs or of predictions had planned.
pub(crate) fn from_format_1(mut run: Value) -> Value {
    let Some(fields) = run.as_object_mut() else { return run };
    let Some(study) = fields.remove("kind") else { return run };
    let mut grid = taken(fields, "plan");
    let colocation = taken(fields, "together");
    let predictions = taken(fields, "predictions");
    let mut plan = if !predictions.is_empty() {
        let moved = [("repetitions", "trials"), ("size_bytes", "size_bytes")];
        with(predictions, &mut grid, &moved)
    } else if !colocation.is_empty() {
        let moved = ["repetitions", "ramp_ns", "time_ns", "size_bytes", "seed"].map(|name| (name, name));
        with(colocation, &mut grid, &moved)
    } else {
        grid
    };
    plan.insert("study".into(), study);
    fields.insert("plan".into(), Value::Object(plan));
    fields.insert("format".into(), 2.into());
    run
}

/// An object that stood in another one; empty where there was none.
fn taken(fields: &mut Map<String, Value>, name: &str) -> Map<String, Value> {
    match fields.remove(name) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    }
}

/// A plan with what stood in the grid, under its name there and here.
fn with(
    mut plan: Map<String, Value>,
    grid: &mut Map<String, Value>,
    moved: &[(&str, &str)],
) -> Map<String, Value> {
    for (earlier, name) in moved {
        if let Some(value) = grid.remove(*earlier) {
            plan.insert((*name).to_owned(), value);
        }
    }
    plan
}
