//! dbench: clients that replay a loadfile, each in a folder of its own.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use virtbench_engine::{Buffers, Positioned, monotonic_ns};
use virtbench_host::free_bytes;
use virtbench_units::SeedSequence;
use virtbench_workload::files::{DbenchAction, DbenchOp, DbenchSpec, FileSpec};

use crate::files::board::{Board, Ended, FilesError, is_full};
use crate::files::calls::{is_of_folder, lock_range, open_folder, open_for_times, unlock_range};
use crate::files::folder::Folder;
use crate::files::threads::{Pacer, Phase, Threads, sleep_until};

/// Starts the clients.
pub(crate) fn start(
    spec: &FileSpec,
    seed: u64,
    load: &Arc<DbenchSpec>,
    folder: &Folder,
    phase: &Phase,
) -> Result<Threads, FilesError> {
    let mut threads = Threads::new(Arc::clone(&phase.board));
    for number in 0..load.clients {
        let client = Client::new(spec, seed, load, folder.path(), phase, number)?;
        threads.start(number, move |_| client.run())?;
    }
    Ok(threads)
}

/// The most files a client has open, as in dbench.
const MAX_OPEN: usize = 200;

/// The most bytes that one request moves.
const MAX_REQUEST: u32 = 1 << 24;

/// `FILE_DIRECTORY_FILE` of a create request's options.
const DIRECTORY: u32 = 0x1;

/// A create request's dispositions: make it, open or make it, empty it, empty or make it.
const CREATE: u32 = 2;

const OPEN_IF: u32 = 3;

const OVERWRITE: u32 = 4;

const OVERWRITE_IF: u32 = 5;

/// One client: what each request means to a file system, as a file server would do it.
pub(crate) struct Client {
    load: Arc<DbenchSpec>,
    board: Arc<Board>,
    pacer: Pacer,
    names: Names,
    buffers: Buffers,
    open: BTreeMap<u32, Open>,
}

struct Open {
    file: File,
    path: PathBuf,
}

/// The result of a request.
enum Outcome {
    /// It succeeded, and moved so many bytes.
    Moved(u64),
    /// It had no result that could be wrong.
    Looked,
}

impl Client {
    pub(crate) fn new(
        spec: &FileSpec,
        seed: u64,
        load: &Arc<DbenchSpec>,
        root: &Path,
        phase: &Phase,
        number: u32,
    ) -> Result<Self, FilesError> {
        let mut seeds = SeedSequence::new(seed ^ u64::from(number).rotate_left(32));
        let sizes = load.ops.iter().map(|op| match op.action {
            DbenchAction::ReadX { size, .. } | DbenchAction::WriteX { size, .. } => size,
            _ => 0,
        });
        let largest = sizes.max().unwrap_or(0).clamp(1, MAX_REQUEST);
        Ok(Self {
            load: Arc::clone(load),
            board: Arc::clone(&phase.board),
            pacer: Pacer::new(spec.pace, seed, number, load.clients, phase.start_ns),
            names: Names::new(root, number),
            buffers: Buffers::new(1, largest as usize, seeds.next_seed())
                .map_err(|source| FilesError::Resource { what: "memory for buffers", source })?,
            open: BTreeMap::new(),
        })
    }

    /// Replays the file until the load is over, from its start again whenever it is through.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let (load, board) = (Arc::clone(&self.load), Arc::clone(&self.board));
        let mut tally = board.tally();
        // What the loadfile takes to be there.
        fs::create_dir_all(self.names.own())?;
        loop {
            let round_ns = monotonic_ns();
            let mut bytes = 0;
            for op in &load.ops {
                if op.due_ns.is_some_and(|due_ns| !sleep_until(&board, round_ns.saturating_add(due_ns))) {
                    return Ok(());
                }
                if !self.keep_rate(round_ns, bytes) {
                    return Ok(());
                }
                let Some(from_ns) = self.pacer.wait(&board) else { return Ok(()) };
                let result = self.act(op);
                let now_ns = monotonic_ns();
                match judge(op, result) {
                    Ok(moved) => {
                        bytes += moved;
                        tally.done(op.action.index(), now_ns, now_ns.saturating_sub(from_ns), moved);
                    }
                    Err(error) => {
                        tally.failed(op.action.index(), &error);
                        if is_full(&error) {
                            board.end(Ended::by("writing", &self.names.own(), &error));
                        }
                    }
                }
            }
            self.open.clear();
        }
    }

    /// Waits where the client may move only so many bytes a second; false if the load is over before.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn keep_rate(&self, round_ns: u64, bytes: u64) -> bool {
        let Some(rate) = self.load.client_bytes_per_second else { return true };
        sleep_until(&self.board, round_ns.saturating_add((bytes as f64 / rate * 1e9) as u64))
    }

    fn path(&self, name: u32) -> PathBuf {
        self.names.path(self.load.names.get(name as usize).map_or("", String::as_str))
    }

    fn file(&self, handle: u32) -> io::Result<&File> {
        self.open.get(&handle).map(|open| &open.file).ok_or_else(|| unexpected("the handle is not open"))
    }

    fn act(&mut self, op: &DbenchOp) -> io::Result<Outcome> {
        let moved = |()| Outcome::Moved(0);
        match op.action {
            DbenchAction::NtCreateX { name, options, disposition, handle } => {
                self.create(name, options, disposition, handle, op.succeeds).map(moved)
            }
            DbenchAction::Close { handle } => {
                self.open.remove(&handle).map(|_| Outcome::Moved(0)).ok_or_else(|| unexpected("not open"))
            }
            DbenchAction::ReadX { handle, offset, size } => self.read(handle, offset, size),
            DbenchAction::WriteX { handle, offset, size } => self.write(handle, offset, size),
            DbenchAction::Flush { handle } => self.file(handle)?.sync_all().map(moved),
            DbenchAction::LockX { handle, offset, size } => {
                // Clients share no file, so nobody waits.
                lock_range(self.file(handle)?, offset, size).map(moved)
            }
            DbenchAction::UnlockX { handle, offset, size } => {
                unlock_range(self.file(handle)?, offset, size).map(moved)
            }
            DbenchAction::QueryPathInformation { name } => {
                resolve(&self.path(name));
                Ok(Outcome::Looked)
            }
            DbenchAction::QueryFileInformation { handle } => {
                self.file(handle)?.metadata().map(|_| Outcome::Moved(0))
            }
            DbenchAction::QueryFsInformation => free_bytes(&self.names.own()).map(|_| Outcome::Moved(0)),
            DbenchAction::SetFileInformation { handle } => self.set_times(handle).map(moved),
            DbenchAction::FindFirst { name, most } => {
                find_first(&self.path(name), most);
                Ok(Outcome::Looked)
            }
            DbenchAction::Unlink { name } => {
                let path = self.path(name);
                resolve(&path);
                fs::remove_file(path).map(moved)
            }
            DbenchAction::Rename { from, to } => {
                let (from, to) = (self.path(from), self.path(to));
                resolve(&from);
                resolve(&to);
                fs::rename(from, to).map(moved)
            }
            DbenchAction::Mkdir { name } => {
                let path = self.path(name);
                resolve(&path);
                // Another client may have made it.
                let _ = fs::create_dir(path);
                Ok(Outcome::Looked)
            }
            DbenchAction::Rmdir { name } => fs::remove_dir(self.path(name)).map(moved),
            DbenchAction::Deltree { name } => {
                let path = self.path(name);
                // Only what is the client's own: others work beside it.
                if path.starts_with(self.names.own()) {
                    let _ = fs::remove_dir_all(&path);
                    fs::create_dir_all(self.names.own())?;
                }
                Ok(Outcome::Looked)
            }
        }
    }

    fn read(&mut self, handle: u32, offset: u64, size: u32) -> io::Result<Outcome> {
        let file = &self.open.get(&handle).ok_or_else(|| unexpected("not open"))?.file;
        let buffer = &mut self.buffers.slot(0)[..size.min(MAX_REQUEST) as usize];
        let mut done = 0;
        while done < buffer.len() {
            match file.read_at(&mut buffer[done..], offset + done as u64)? {
                0 => break,
                count => done += count,
            }
        }
        Ok(Outcome::Moved(done as u64))
    }

    fn write(&mut self, handle: u32, offset: u64, size: u32) -> io::Result<Outcome> {
        let size = size.min(MAX_REQUEST) as usize;
        let file = &self.open.get(&handle).ok_or_else(|| unexpected("not open"))?.file;
        self.buffers.renew(0, size);
        file.write_all_at(&self.buffers.slot(0)[..size], offset)?;
        Ok(Outcome::Moved(size as u64))
    }

    fn create(
        &mut self,
        name: u32,
        options: u32,
        disposition: u32,
        handle: u32,
        keep: bool,
    ) -> io::Result<()> {
        let path = self.path(name);
        resolve(&path);
        let file = if options & DIRECTORY != 0 {
            let _ = fs::create_dir(&path);
            open_folder(&path)?
        } else {
            let mut how = OpenOptions::new();
            how.read(true).write(true);
            how.create(matches!(disposition, CREATE | OPEN_IF | OVERWRITE | OVERWRITE_IF));
            how.truncate(matches!(disposition, OVERWRITE | OVERWRITE_IF));
            match how.open(&path) {
                Err(error) if is_of_folder(&error, &path) => open_folder(&path)?,
                other => other?,
            }
        };
        if keep {
            if self.open.len() >= MAX_OPEN {
                return Err(unexpected("more than 200 files open"));
            }
            file.metadata()?;
            self.open.insert(handle, Open { file, path });
        }
        Ok(())
    }

    /// Sets a file's times a little back, as its client asked.
    fn set_times(&self, handle: u32) -> io::Result<()> {
        let open = self.open.get(&handle).ok_or_else(|| unexpected("not open"))?;
        let facts = open.file.metadata()?;
        let back = |time: std::time::SystemTime, seconds| time.checked_sub(Duration::from_secs(seconds));
        let mut times = FileTimes::new();
        if let (Some(accessed), Some(modified)) = (back(facts.accessed()?, 10), back(facts.modified()?, 12)) {
            times = times.set_accessed(accessed).set_modified(modified);
        }
        // By its name, as dbench does: a name that is gone by now is no error.
        match open_for_times(&open.path) {
            Ok(file) => file.set_times(times),
            Err(_) => Ok(()),
        }
    }
}

/// Whether a request ended as it did when it was recorded.
fn judge(op: &DbenchOp, result: io::Result<Outcome>) -> io::Result<u64> {
    match result {
        Ok(Outcome::Looked) => Ok(0),
        Ok(Outcome::Moved(bytes)) if op.succeeds => Ok(bytes),
        Ok(Outcome::Moved(_)) => Err(unexpected("it succeeded and should not")),
        // A full file system is never what was recorded.
        Err(error) if op.succeeds || is_full(&error) => Err(error),
        Err(_) => Ok(0),
    }
}

fn unexpected(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn find_first(path: &Path, most: u32) {
    resolve(path);
    let pattern = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !pattern.contains(['<', '>', '*', '?', '"']) {
        return;
    }
    if let Some(Ok(entries)) = path.parent().map(fs::read_dir) {
        let _ = entries.take(most as usize).count();
    }
}

/// The client whose requests were recorded.
const RECORDED: &str = "client1";

/// Turns names into paths below the folder, with the client's own name in the place of the recorded one.
#[derive(Debug)]
pub(crate) struct Names {
    root: PathBuf,
    client: String,
}

impl Names {
    /// The names of client number `number`, counted from 0.
    pub(crate) fn new(root: &Path, number: u32) -> Self {
        Self { root: root.to_owned(), client: format!("client{}", number + 1) }
    }

    /// The path of a name.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name.replace(RECORDED, &self.client).trim_start_matches('/'))
    }

    /// The client's own folder.
    pub(crate) fn own(&self) -> PathBuf {
        self.root.join("clients").join(&self.client)
    }
}

/// What a file server does to find a name that may be written in other letters: it looks it up, and
/// where it is not there goes through the whole folder. Says whether it is there as written.
pub(crate) fn resolve(path: &Path) -> bool {
    if fs::metadata(path).is_ok() {
        return true;
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    if let Ok(entries) = fs::read_dir(folder) {
        let same = |entry: &fs::DirEntry| entry.file_name().eq_ignore_ascii_case(name);
        // What is found is not used: dbench measures the way there.
        let _ = entries.flatten().find(same);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_names_of_its_own() {
        let names = Names::new(Path::new("/d"), 6);
        assert_eq!(names.path("/clients/client1/~dmtmp/a.doc"), Path::new("/d/clients/client7/~dmtmp/a.doc"));
        assert_eq!(names.own(), Path::new("/d/clients/client7"));
    }
}
