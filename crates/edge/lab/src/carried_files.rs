//! What a program needs besides itself, so that it can run in a guest that has nothing: its libraries, as
//! the dynamic loader finds them, the interpreter of a script, and what the user names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;
use virtbench_units::format_bytes;

/// The most that is taken along, in bytes: a guest keeps it in memory.
const MOST_BYTES: u64 = 512 << 20;
/// The most files.
const MOST_FILES: usize = 20_000;
/// The most interpreters of interpreters.
const MOST_INTERPRETERS: usize = 4;

/// Why a program cannot be taken along.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum CarriedFilesError {
    /// No such program on the search path.
    #[error("{0} is no program on the search path: give its path")]
    NoProgram(String),
    /// A file cannot be read.
    #[error("{} cannot be taken into the guest: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A library is not on this host either.
    #[error("{} needs libraries that the loader does not find: {missing}", path.display())]
    Libraries {
        /// The program.
        path: PathBuf,
        missing: String,
    },
    /// It is too much.
    #[error(
        "more than {MOST_FILES} files or {} would go into the guest's memory: name fewer with --with, or put \
        data on its disk with --disk-from",
        format_bytes(MOST_BYTES)
    )]
    TooMuch,
}

/// A file as it will be in the guest, under the same name as here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedFile {
    /// Where it is, here and there.
    pub path: PathBuf,
    /// Whether it may be executed.
    pub executable: bool,
    /// What is in it.
    pub contents: Vec<u8>,
}

/// Finds the program `name` and everything that it and the files or folders `with` need.
///
/// # Errors
/// The program or a library is missing, or it is too much.
pub fn pack(name: &str, with: &[PathBuf]) -> Result<Vec<CarriedFile>, CarriedFilesError> {
    let program = which::which(name).map_err(|_| CarriedFilesError::NoProgram(name.to_owned()))?;
    let mut packing = Packing::default();
    packing.take(&absolute(&program)?, 0)?;
    for path in with {
        packing.take_all(&absolute(path)?, 0)?;
    }
    Ok(packing.files.into_values().collect())
}

fn absolute(path: &Path) -> Result<PathBuf, CarriedFilesError> {
    std::path::absolute(path)
        .map_err(|source| CarriedFilesError::Unreadable { path: path.to_owned(), source })
}

#[derive(Default)]
struct Packing {
    files: BTreeMap<PathBuf, CarriedFile>,
    bytes: u64,
    searched: BTreeSet<PathBuf>,
}

impl Packing {
    /// A file or everything in a folder.
    fn take_all(&mut self, path: &Path, depth: usize) -> Result<(), CarriedFilesError> {
        let unreadable = |source| CarriedFilesError::Unreadable { path: path.to_owned(), source };
        if !fs::metadata(path).map_err(unreadable)?.is_dir() {
            return self.take(path, 0);
        }
        if depth > 32 {
            return Err(CarriedFilesError::TooMuch);
        }
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            // A link that leads nowhere is not worth a failure.
            if entry.exists() {
                self.take_all(&entry, depth + 1)?;
            }
        }
        Ok(())
    }

    /// A file with what it needs.
    fn take(&mut self, path: &Path, depth: usize) -> Result<(), CarriedFilesError> {
        if self.files.contains_key(path) {
            return Ok(());
        }
        let unreadable = |source| CarriedFilesError::Unreadable { path: path.to_owned(), source };
        let facts = fs::metadata(path).map_err(unreadable)?;
        self.bytes += facts.len();
        if self.bytes > MOST_BYTES || self.files.len() >= MOST_FILES || !facts.is_file() {
            return Err(if facts.is_file() {
                CarriedFilesError::TooMuch
            } else {
                unreadable(io::Error::other("it is no plain file"))
            });
        }
        let mut contents = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut contents))
            .map_err(unreadable)?;
        let needs = match interpreter(&contents) {
            Some(Interpreter::Script(program)) if depth < MOST_INTERPRETERS => vec![program],
            Some(Interpreter::Loader(loader)) => {
                let mut libraries = libraries(&loader, path)?;
                libraries.push(loader);
                libraries
            }
            // A library has no loader of its own: that of programs finds what it needs.
            _ if contents.starts_with(b"\x7fELF") && self.searched.insert(path.to_owned()) => {
                let loader = self.files.keys().find(|path| is_loader(path)).cloned();
                loader.map_or(Ok(Vec::new()), |loader| libraries(&loader, path))?
            }
            _ => Vec::new(),
        };
        let executable = facts.permissions().mode() & 0o111 != 0;
        let file = CarriedFile { path: path.to_owned(), executable, contents };
        self.files.insert(path.to_owned(), file);
        needs.iter().try_for_each(|need| self.take(need, depth + 1))
    }
}

fn is_loader(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-linux"))
}

/// What runs a file.
#[derive(Debug, PartialEq, Eq)]
enum Interpreter {
    /// The program named in a script's first line.
    Script(PathBuf),
    /// The dynamic loader of a program.
    Loader(PathBuf),
}

/// What a file says of who runs it; nothing for data and static programs.
fn interpreter(contents: &[u8]) -> Option<Interpreter> {
    if let Some(rest) = contents.strip_prefix(b"#!") {
        let line = rest.split(|byte| *byte == b'\n').next()?;
        let word = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
        return Some(Interpreter::Script(Path::new(std::ffi::OsStr::from_bytes(word)).to_owned()));
    }
    // ELF, 64 bits, little endian; the loader is named by the program header of type 3 (PT_INTERP).
    if !contents.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let field = |at: usize, length: usize| -> Option<usize> {
        let bytes = contents.get(at..at.checked_add(length)?)?;
        let value = bytes.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    };
    let (table, size, count) = (field(32, 8)?, field(54, 2)?, field(56, 2)?);
    for index in 0..count {
        let header = table.checked_add(index.checked_mul(size)?)?;
        if field(header, 4)? == 3 {
            let (offset, length) = (field(header + 8, 8)?, field(header + 32, 8)?);
            let name = contents.get(offset..offset.checked_add(length)?)?;
            let name = name.split(|byte| *byte == 0).next()?;
            return Some(Interpreter::Loader(Path::new(std::ffi::OsStr::from_bytes(name)).to_owned()));
        }
    }
    None
}

/// The libraries of a program as its loader finds them. The program itself is not run.
fn libraries(loader: &Path, path: &Path) -> Result<Vec<PathBuf>, CarriedFilesError> {
    let output = Command::new(loader)
        .arg("--list")
        .arg(path)
        .output()
        .map_err(|source| CarriedFilesError::Unreadable { path: loader.to_owned(), source })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let missing: Vec<&str> = text.lines().filter(|line| line.contains("not found")).map(str::trim).collect();
    if !missing.is_empty() {
        return Err(CarriedFilesError::Libraries { path: path.to_owned(), missing: missing.join(", ") });
    }
    Ok(listed(&text))
}

/// Paths in lines such as `libc.so.6 => /lib/libc.so.6 (0x7f..)` and `/lib64/ld-linux-x86-64.so.2 (0x7f..)`.
fn listed(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let found = line.rsplit(" => ").next()?.trim().split(" (").next()?;
        found.starts_with('/').then(|| PathBuf::from(found))
    };
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_program_comes_with_its_loader_and_libraries_and_a_script_with_its_shell() {
        let files = pack("sh", &[]).unwrap();
        let has = |part: &str| files.iter().any(|file| file.path.to_string_lossy().contains(part));
        assert!(has("/sh") && has("libc.so") && has("ld-linux"), "{:?}", files.len());
        assert!(files.iter().all(|file| file.path.is_absolute() && !file.contents.is_empty()));
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/x"), "x").unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#! /bin/sh -e\necho\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let files = pack(&script.to_string_lossy(), &[folder.path().join("data")]).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.path.display().to_string()).collect();
        for part in ["/script", "/bin/sh", "libc.so", "/data/x"] {
            assert!(names.iter().any(|name| name.contains(part)), "{part}: {names:?}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (name, with, said) in
            [("no-such-program", None, "search path"), ("sh", Some("/nonexistent"), "/nonexistent")]
        {
            let with: Vec<PathBuf> = with.map(PathBuf::from).into_iter().collect();
            assert!(pack(name, &with).unwrap_err().to_string().contains(said));
        }
    }

    #[test]
    fn the_loader_s_list_is_read() {
        let text =
            "\tlinux-vdso.so.1 (0x7ffc)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\t/lib64/ld.so.2 (0x7f)\n";
        assert_eq!(listed(text), [PathBuf::from("/lib/libc.so.6"), PathBuf::from("/lib64/ld.so.2")]);
    }

    proptest! {
        #[test]
        fn no_file_panics_the_reader_of_programs(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut elf = b"\x7fELF\x02\x01".to_vec();
            elf.extend(&bytes);
            let _ = (interpreter(&bytes), interpreter(&elf));
        }
    }
}
