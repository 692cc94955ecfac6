//! A whole load on files: made ready, then measured.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_engine::monotonic_ns;
use virtbench_workload::files::{CacheControl, DbenchAction, FileLoad, FileSpec};

use crate::board::{Board, Ended, Report};
use crate::cache::{Reach, settle};
use crate::error::FilesError;
use crate::folder::Folder;
use crate::model::FileTree;
use crate::trials::Trials;
use crate::{bonnie, dbench, iozone, model, pace};

/// What the threads of a load share.
pub(crate) struct Phase {
    /// When threads begin, on the monotonic clock.
    pub start_ns: u64,
    /// Where they write what they did.
    pub board: Arc<Board>,
}

/// A load whose files are there. They go when this value does.
pub struct FileRun {
    spec: FileSpec,
    folder: Folder,
    reach: Reach,
    trees: Vec<Arc<FileTree>>,
}

impl FileRun {
    /// Makes a folder in `directory` and the files that the load begins with.
    ///
    /// # Errors
    /// The load makes no sense, the directory cannot be used or has no room, or `stop` was set.
    pub fn prepare(
        spec: &FileSpec,
        directory: &Path,
        reach: Reach,
        stop: &AtomicBool,
    ) -> Result<Self, FilesError> {
        spec.validate()?;
        let folder = Folder::make(directory)?;
        let mut trees = Vec::new();
        match &spec.load {
            FileLoad::Bonnie(bonnie) => folder.check_room(bonnie.file_bytes)?,
            FileLoad::Iozone(iozone) => folder.check_room(iozone.file_bytes)?,
            FileLoad::Model(model) => trees = model::prepare(model, spec.seed, &folder, stop)?,
            FileLoad::Dbench(_) => {}
        }
        settle(folder.path(), spec.cache, reach).map_err(FilesError::io("sync", folder.path()))?;
        Ok(Self { spec: spec.clone(), folder, reach, trees })
    }

    /// Performs it. Threads begin when the monotonic clock shows `start_at_ns`, or now if that has
    /// passed; `on_measuring` is called with the clock when warm-up is over. What was measured before
    /// `stop` was set, or before the file system filled, is in the report.
    ///
    /// # Errors
    /// The kernel refuses memory or threads.
    pub fn run(
        &self,
        stop: &AtomicBool,
        start_at_ns: u64,
        on_measuring: impl FnOnce(u64),
    ) -> Result<Report, FilesError> {
        let spec = &self.spec;
        match &spec.load {
            FileLoad::Bonnie(bonnie) => {
                Ok(self.tests(stop, start_at_ns, on_measuring, |trials| bonnie::perform(bonnie, trials)))
            }
            FileLoad::Iozone(iozone) => {
                Ok(self.tests(stop, start_at_ns, on_measuring, |trials| iozone::perform(iozone, trials)))
            }
            FileLoad::Model(model) => {
                self.timed(&model::kinds(model), stop, start_at_ns, on_measuring, |phase| {
                    model::start(spec, model, &self.trees, phase)
                })
            }
            FileLoad::Dbench(load) => {
                self.timed(&DbenchAction::NAMES, stop, start_at_ns, on_measuring, |phase| {
                    dbench::start(spec, load, &self.folder, phase)
                })
            }
        }
    }

    /// Tests that follow one another.
    fn tests(
        &self,
        stop: &AtomicBool,
        start_at_ns: u64,
        on_measuring: impl FnOnce(u64),
        perform: impl FnOnce(&mut Trials<'_>) -> Result<(), Ended>,
    ) -> Report {
        let waiting = Board::new(&[], 0, u64::MAX, 1);
        wait_until(start_at_ns, &waiting, stop);
        on_measuring(monotonic_ns());
        let mut trials = Trials::new(&self.spec, &self.folder, self.reach, stop);
        if let Err(ended) = perform(&mut trials) {
            trials.end(ended);
        }
        trials.finish()
    }

    /// A load of threads that run for a time.
    fn timed(
        &self,
        kinds: &[&str],
        stop: &AtomicBool,
        start_at_ns: u64,
        on_measuring: impl FnOnce(u64),
        start: impl FnOnce(&Phase) -> Result<crate::crew::Crew, FilesError>,
    ) -> Result<Report, FilesError> {
        let start_ns = start_at_ns.max(monotonic_ns());
        let begin_ns = start_ns + self.spec.warmup_ns;
        let end_ns = begin_ns + self.spec.time_ns;
        let board = Arc::new(Board::new(kinds, begin_ns, end_ns, self.spec.interval_ns));
        let phase = Phase { start_ns, board: Arc::clone(&board) };
        let crew = start(&phase)?;
        wait_until(begin_ns, &board, stop);
        on_measuring(monotonic_ns());
        crew.gather(&|| stop.load(Ordering::Relaxed), &|| board.is_over(monotonic_ns()));
        Ok(board.take())
    }

    /// What a reader of the figures should know.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![self.reach.note(self.spec.cache).to_owned()];
        let characters = matches!(&self.spec.load, FileLoad::Bonnie(bonnie) if bonnie.characters.is_some());
        if characters && self.spec.cache == CacheControl::Direct {
            notes.push("tests of single characters are left out: O_DIRECT moves whole blocks".into());
        }
        notes
    }

    /// The folder that the load works in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether a report tells of a load that was stopped from outside.
#[must_use]
pub fn was_interrupted(report: &Report) -> bool {
    report.ended == Some(Ended::Interrupted)
}

/// Waits until the clock shows `at_ns`, or `stop` is set, or the load is over.
fn wait_until(at_ns: u64, board: &Board, stop: &AtomicBool) {
    while monotonic_ns() < at_ns && !stop.load(Ordering::Relaxed) && !board.is_over(monotonic_ns()) {
        pace::sleep_until(board, at_ns.min(monotonic_ns() + 20_000_000));
    }
}
