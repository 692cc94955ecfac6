//! The kinds of operations that a model counts.

use virtbench_workload::files::FileModel;

/// The kinds of operations that a model counts, each once.
pub(crate) fn kinds(model: &FileModel) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    let steps = model.processes.iter().flat_map(|process| &process.threads).flat_map(|thread| &thread.flow);
    for action in steps.map(|step| &step.action).filter(|action| action.is_counted()) {
        if !kinds.contains(&action.name()) {
            kinds.push(action.name());
        }
    }
    kinds
}
