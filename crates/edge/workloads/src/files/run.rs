//! A load on files: made ready once, then run as often as wanted.

use std::path::Path;
use std::sync::Arc;

use virtbench_engine::monotonic_ns;
use virtbench_host::memory_bytes;
use virtbench_workload::files::{
    BonnieSpec, CacheControl, DbenchAction, DbenchSpec, FileLoad, FileSpec, IozoneSpec,
};

use crate::files::board::{Board, Ended, FilesError, Report};
use crate::files::calls;
use crate::files::folder::Folder;
use crate::files::model::FileTree;
use crate::files::threads::{Outside, Phase, Threads};
use crate::files::trials::{Reach, Trials, settle};
use crate::files::{bonnie, dbench, iozone, model};

/// A load whose files are there. They go when this value does.
pub struct FileRun {
    spec: FileSpec,
    folder: Folder,
    reach: Reach,
    trees: Vec<Arc<FileTree>>,
    /// A copy for clients, which may outlive a run.
    loadfile: Option<Arc<DbenchSpec>>,
}

impl FileRun {
    /// Makes a folder in `directory` and the files that the load begins with. Runs do not make them
    /// anew: each finds what the one before has left, as users of a file server do.
    ///
    /// # Errors
    /// The load makes no sense, the directory cannot be used or has no room, or `is_over` said so.
    pub fn prepare(
        spec: &FileSpec,
        seed: u64,
        directory: &Path,
        reach: Reach,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self, FilesError> {
        let mut spec = spec.clone();
        if let FileLoad::Bonnie(BonnieSpec { file_bytes, .. })
        | FileLoad::Iozone(IozoneSpec { file_bytes, .. }) = &mut spec.load
            && *file_bytes == 0
        {
            *file_bytes = memory_bytes().saturating_mul(2);
        }
        spec.validate()?;
        calls::check(&spec)?;
        let folder = Folder::make(directory)?;
        let (mut trees, mut loadfile) = (Vec::new(), None);
        match &spec.load {
            FileLoad::Bonnie(bonnie) => folder.check_room(bonnie.file_bytes)?,
            FileLoad::Iozone(iozone) => folder.check_room(iozone.file_bytes)?,
            FileLoad::Model(model) => trees = model::prepare(model, seed, &folder, is_over)?,
            FileLoad::Dbench(dbench) => loadfile = Some(Arc::new(dbench.clone())),
        }
        Ok(Self { spec, folder, reach, trees, loadfile })
    }

    /// Runs it once: tests to their end, threads for the time of a run. What was measured before it was
    /// over, or before the file system filled, is in the report.
    ///
    /// # Errors
    /// The files cannot be synced, or the kernel refuses memory or threads.
    pub fn run(&self, seed: u64, outside: &Outside<'_>) -> Result<Report, FilesError> {
        let spec = &self.spec;
        match (&spec.load, &self.loadfile) {
            (FileLoad::Bonnie(bonnie), _) => {
                Ok(self.tests(seed, outside, |trials| bonnie::perform(bonnie, trials)))
            }
            (FileLoad::Iozone(iozone), _) => {
                Ok(self.tests(seed, outside, |trials| iozone::perform(iozone, trials)))
            }
            (FileLoad::Model(model), _) => self.timed(&model::kinds(model), outside, |phase| {
                model::start(spec, seed, model, &self.trees, phase)
            }),
            (FileLoad::Dbench(_), loadfile) => self.timed(&DbenchAction::NAMES, outside, |phase| {
                loadfile.iter().try_fold(Threads::new(Arc::clone(&phase.board)), |_, load| {
                    dbench::start(spec, seed, load, &self.folder, phase)
                })
            }),
        }
    }

    /// Tests that follow one another.
    fn tests<'a>(
        &'a self,
        seed: u64,
        outside: &'a Outside<'a>,
        perform: impl FnOnce(&mut Trials<'a>) -> Result<(), Ended>,
    ) -> Report {
        let mut trials = Trials::new(&self.spec, seed, &self.folder, self.reach, outside);
        if let Err(ended) = perform(&mut trials) {
            trials.end(ended);
        }
        // What a test that was cut left behind; the next run begins with nothing.
        if let Err(error) = self.folder.empty() {
            trials.end(Ended::by("clearing", self.folder.path(), &error));
        }
        trials.finish()
    }

    /// A load of threads that run for a time.
    fn timed(
        &self,
        kinds: &[&str],
        outside: &Outside<'_>,
        start: impl FnOnce(&Phase) -> Result<Threads, FilesError>,
    ) -> Result<Report, FilesError> {
        settle(self.folder.path(), self.spec.cache, self.reach)
            .map_err(FilesError::io("sync", self.folder.path()))?;
        let start_ns = monotonic_ns();
        let board = Arc::new(Board::new(kinds, start_ns, start_ns + self.spec.run_ns));
        let threads = start(&Phase { start_ns, board: Arc::clone(&board) })?;
        threads.gather(outside);
        Ok(board.take())
    }

    /// What a reader of the figures should know.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![self.reach.note(self.spec.cache)];
        let characters = matches!(&self.spec.load, FileLoad::Bonnie(bonnie) if bonnie.characters.is_some());
        if characters && self.spec.cache == CacheControl::Direct {
            let direct = calls::DIRECT;
            notes.push(format!("tests of single characters are left out: {direct} moves whole blocks"));
        }
        notes.extend(calls::remark(&self.spec).map(str::to_owned));
        notes
    }

    /// The load.
    #[must_use]
    pub fn spec(&self) -> &FileSpec {
        &self.spec
    }

    /// The folder that it works in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
