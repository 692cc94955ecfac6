//! Performs a model: makes its files, starts its threads, waits for them.

mod files;
mod flow;

use std::sync::Arc;

use virtbench_units::SeedSequence;
use virtbench_workload::files::{FileModel, FileSpec};

use crate::files::board::FilesError;
use crate::files::folder::Folder;
use crate::files::threads::{Phase, Threads};
pub(crate) use files::{FileTree, shuffle};
pub(crate) use flow::kinds;
use flow::{Flow, Limits};

/// Makes the model's files.
pub(crate) fn prepare(
    model: &FileModel,
    seed: u64,
    folder: &Folder,
    is_over: &dyn Fn() -> bool,
) -> Result<Vec<Arc<FileTree>>, FilesError> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    folder.check_room(model.initial_bytes() as u64)?;
    let mut seeds = SeedSequence::new(seed);
    let make = |set| FileTree::make(set, folder.path(), seeds.next_seed(), is_over).map(Arc::new);
    model.filesets.iter().map(make).collect()
}

/// Starts the model's threads at the phase's moments.
pub(crate) fn start(
    spec: &FileSpec,
    seed: u64,
    model: &FileModel,
    trees: &[Arc<FileTree>],
    phase: &Phase,
) -> Result<Threads, FilesError> {
    let mut seeds = SeedSequence::new(!seed);
    let limits = Arc::new(Limits::new(model.event_rate, phase.start_ns));
    let count = u32::try_from(model.threads()).unwrap_or(u32::MAX);
    let mut threads = Threads::new(Arc::clone(&phase.board));
    let mut number = 0;
    for process in &model.processes {
        for thread in (0..process.instances).flat_map(|_| &process.threads) {
            for _ in 0..thread.instances {
                let flow =
                    Flow::new(spec, model, thread, trees, &limits, phase, number, count, seeds.next_seed());
                threads.start(number, move |_| flow.run())?;
                number += 1;
            }
        }
    }
    Ok(threads)
}
