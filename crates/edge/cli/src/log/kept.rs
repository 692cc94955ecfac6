//! The file of a run folder: of bounded size, each line written at once, so that a kill loses none.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use virtbench_runs::LOG;

/// When a file is as large as this, its older half goes.
const MOST_BYTES: usize = 1 << 20;
/// What happens before there is a folder is kept for it as far as this.
const MOST_WAITING_BYTES: usize = 64 << 10;

/// Where lines go.
#[derive(Debug)]
enum Destination {
    /// There is no folder yet.
    Waiting(Vec<u8>),
    File(Bounded),
}

static DESTINATION: Mutex<Destination> = Mutex::new(Destination::Waiting(Vec::new()));

/// From now on everything is kept in this folder, also what has happened before. A folder that takes no file has none: that is
/// no reason to measure nothing.
pub fn keep_in(folder: &Path) {
    let mut place = DESTINATION.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(mut file) = Bounded::open(&folder.join(LOG), MOST_BYTES) else { return };
    if let Destination::Waiting(lines) = &*place {
        let _ = file.add(lines);
    }
    *place = Destination::File(file);
}

/// The writer of the layer that keeps.
pub struct Kept;

impl Write for Kept {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &mut *DESTINATION.lock().unwrap_or_else(PoisonError::into_inner) {
            Destination::Waiting(lines) if lines.len() + line.len() > MOST_WAITING_BYTES => {}
            Destination::Waiting(lines) => lines.extend_from_slice(line),
            Destination::File(file) => drop(file.add(line)),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that is appended to and keeps its newest lines.
#[derive(Debug)]
struct Bounded {
    path: PathBuf,
    file: File,
    bytes: usize,
    most_bytes: usize,
}

impl Bounded {
    fn open(path: &Path, most_bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        Ok(Self { path: path.to_owned(), file, bytes, most_bytes })
    }

    fn add(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.bytes.saturating_add(lines.len()) > self.most_bytes {
            self.halve()?;
        }
        self.file.write_all(lines)?;
        self.bytes += lines.len();
        Ok(())
    }

    /// Leaves the newer half, in whole lines; the file is whole at any moment.
    fn halve(&mut self) -> io::Result<()> {
        let all = fs::read(&self.path)?;
        let newer = &all[all.len().saturating_sub(self.most_bytes / 2)..];
        let begin = newer.iter().position(|byte| *byte == b'\n').map_or(newer.len(), |end| end + 1);
        let beside = self.path.with_extension("log.new");
        fs::write(&beside, &newer[begin..])?;
        fs::rename(&beside, &self.path)?;
        *self = Self::open(&self.path, self.most_bytes)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_newest_lines_and_does_not_grow_beyond_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOG);
        let mut file = Bounded::open(&path, 1000).unwrap();
        for number in 0..500 {
            file.add(format!("line {number}\n").as_bytes()).unwrap();
            assert!(fs::metadata(&path).unwrap().len() <= 1000);
        }
        drop(file);
        Bounded::open(&path, 1000).unwrap().add(b"line 500\n").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let first: usize = lines[0].strip_prefix("line ").unwrap().parse().unwrap();
        let expected: Vec<String> = (first..=500).map(|number| format!("line {number}")).collect();
        assert!(lines == expected && lines.len() > 40, "{text}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-made is left");
    }
}
