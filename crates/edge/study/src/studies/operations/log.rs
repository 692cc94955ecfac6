//! The log of a run: a file for each piece, a line for each operation.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use virtbench_record::OperationLine;

use virtbench_runs::FolderError;

/// The folder of the logs, in the run folder.
const FOLDER: &str = "operations";

/// The log of a piece. One that is begun again replaces what was there.
pub(crate) struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    /// The first line that could not be written.
    failed: Option<io::Error>,
}

impl Log {
    /// Begins the log of a piece.
    pub(super) fn begin(run: &Path, vms: u32, piece: u32) -> Result<Self, FolderError> {
        let path = run.join(FOLDER).join(format!("{vms}-vms-{piece:04}.jsonl"));
        let begun = fs::create_dir_all(run.join(FOLDER)).and_then(|()| File::create(&path));
        match begun {
            Ok(file) => Ok(Self { path, file: BufWriter::new(file), failed: None }),
            Err(source) => Err(FolderError::Io { action: "write", path, source }),
        }
    }

    /// Adds an operation.
    pub(super) fn add(&mut self, line: &OperationLine) {
        if self.failed.is_some() {
            return;
        }
        let written = serde_json::to_writer(&mut self.file, line).map_err(io::Error::from);
        self.failed = written.and_then(|()| self.file.write_all(b"\n")).err();
    }

    /// Ends it, on the disk.
    pub(super) fn end(mut self) -> Result<(), FolderError> {
        let ended = match self.failed.take() {
            Some(error) => Err(error),
            None => self.file.flush().and_then(|()| self.file.get_ref().sync_data()),
        };
        ended.map_err(|source| FolderError::Io { action: "write", path: self.path, source })
    }
}
