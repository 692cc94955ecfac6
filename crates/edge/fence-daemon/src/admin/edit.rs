//! Changing a configuration file: the value that changes and nothing else, comments and order as they were.
//!
//! Two commands that change one file take turns, so that neither undoes what the other has changed. The lock is on the file
//! itself: nothing is left beside it, and who gets the lock of a file that has been replaced meanwhile opens the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike, value};

use crate::config::{Built, Config, DiskTable, LoadError, Pools};

/// How long to wait for a command that changes the file: it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

/// Why a configuration file is not changed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum EditError {
    /// What it would say cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It is no TOML.
    #[error("{path}: {source}", path = path.display())]
    Syntax { path: PathBuf, source: toml_edit::TomlError },
    /// No disk of that name.
    #[error("{path}: there is no [[disk]] {disk}", path = path.display())]
    NoDisk {
        path: PathBuf,
        /// Of that name.
        disk: String,
    },
    /// The fence would refuse it.
    #[error("{path}: {source}: nothing was changed", path = path.display())]
    Fence { path: PathBuf, source: virtbench_fence::ConfigError },
    /// It cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Another command does not come to its end.
    #[error(
        "{path}: another command has been changing it for {seconds} s: give this one again once that has ended, which holds a \
         lock (flock) on the file: nothing was changed in it", path = path.display()
    )]
    Busy {
        path: PathBuf,
        /// How long it was waited for.
        seconds: u64,
    },
}

/// New values of one disk, where there are any.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskEdit {
    /// Its name.
    pub disk: String,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
    /// Its part of the cache in bytes.
    pub cache_bytes: Option<u64>,
    /// Its slots.
    pub slots: Option<u32>,
    /// Its share.
    pub share: Option<f64>,
}

/// New values of the rotation, where there are any.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotationEdit {
    /// Length of a slot, milliseconds.
    pub slot_ms: Option<f64>,
    /// Slots that belong to no disk.
    pub spare_slots: Option<u32>,
}

/// Changes a configuration file, whole or not at all. The fences that it would make are checked first, but for the sizes of
/// devices. The rotation is that of `pool`, where the file has pools.
///
/// # Errors
/// It cannot be read, written, or used as changed.
pub fn edit(
    path: &Path,
    disks: &[DiskEdit],
    pool: Option<&str>,
    rotation: RotationEdit,
) -> Result<Config, EditError> {
    let Locked { mut document, file: _locked } = Locked::open(path, PATIENCE)?;
    for edit in disks {
        let tables = document.get_mut("disk").and_then(Item::as_array_of_tables_mut);
        let named = |table: &&mut Table| table.get("name").and_then(Item::as_str) == Some(&edit.disk);
        let table = tables.and_then(|tables| tables.iter_mut().find(named));
        let missing = || EditError::NoDisk { path: path.to_owned(), disk: edit.disk.clone() };
        let table = table.ok_or_else(missing)?;
        set(table, "size", edit.size_bytes.map(bytes));
        set(table, "cache", edit.cache_bytes.map(bytes));
        set(table, "slots", edit.slots.map(|slots| value(i64::from(slots))));
        set(table, "share", edit.share.map(value));
    }
    if (rotation.slot_ms.is_some() || rotation.spare_slots.is_some())
        && let Some(table) = scheduler(&mut document, pool)
    {
        set(table, "slot_ms", rotation.slot_ms.map(value));
        set(table, "spare_slots", rotation.spare_slots.map(|slots| value(i64::from(slots))));
    }
    keep(path, &document)
}

/// The table of the fence's own scheduler. A pool's goes before the file's, key by key.
fn scheduler<'a>(document: &'a mut DocumentMut, pool: Option<&str>) -> Option<&'a mut dyn TableLike> {
    let of: &mut dyn TableLike = match pool {
        None => document.as_table_mut(),
        Some(pool) => document.get_mut("pool")?.get_mut(pool)?.as_table_like_mut()?,
    };
    of.entry("scheduler").or_insert(Item::Table(Table::new())).as_table_like_mut()
}

/// Writes one disk more into a configuration file.
///
/// # Errors
/// As [`edit`].
pub fn add_to_file(path: &Path, disk: &DiskTable) -> Result<Config, EditError> {
    let Locked { mut document, file: _locked } = Locked::open(path, PATIENCE)?;
    let mut table = Table::new();
    set(&mut table, "name", Some(value(&disk.name)));
    set(&mut table, "size", Some(bytes(disk.size.0)));
    set(&mut table, "pool", disk.pool.as_ref().map(value));
    set(&mut table, "cache", disk.cache.map(|size| bytes(size.0)));
    set(&mut table, "bypass", disk.bypass.map(|size| bytes(size.0)));
    set(&mut table, "slots", (disk.slots != 1).then(|| value(i64::from(disk.slots))));
    set(&mut table, "share", disk.share.map(value));
    set(&mut table, "socket", disk.socket.as_ref().map(|path| value(path.display().to_string())));
    set(&mut table, "export", disk.export.as_ref().map(value));
    let disks = document.entry("disk").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    if let Some(disks) = disks.as_array_of_tables_mut() {
        disks.push(table);
    }
    keep(path, &document)
}

/// Takes a disk out of a configuration file.
///
/// # Errors
/// As [`edit`].
pub fn remove_from_file(path: &Path, name: &str) -> Result<Config, EditError> {
    let Locked { mut document, file: _locked } = Locked::open(path, PATIENCE)?;
    if let Some(disks) = document.get_mut("disk").and_then(Item::as_array_of_tables_mut) {
        disks.retain(|table| table.get("name").and_then(Item::as_str) != Some(name));
    }
    keep(path, &document)
}

/// A file's contents, which no other command changes as long as `file` is open.
struct Locked {
    document: DocumentMut,
    file: File,
}

impl Locked {
    /// Waits for its turn as long as `patience`.
    fn open(path: &Path, patience: Duration) -> Result<Self, EditError> {
        let io = |source| EditError::Io { path: path.to_owned(), source };
        let until = Instant::now() + patience;
        loop {
            let mut file = opened(path).map_err(io)?;
            if is_ours(&file, path).map_err(io)? {
                let mut text = String::new();
                file.read_to_string(&mut text).map_err(io)?;
                let document =
                    text.parse().map_err(|source| EditError::Syntax { path: path.to_owned(), source })?;
                return Ok(Self { document, file });
            }
            if Instant::now() >= until {
                return Err(EditError::Busy { path: path.to_owned(), seconds: patience.as_secs() });
            }
            thread::sleep(PAUSE);
        }
    }
}

/// A network file system locks for its writers alone; a file that nobody may write can be replaced all the same.
fn opened(path: &Path) -> io::Result<File> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path),
        opened => opened,
    }
}

/// Locks the file if it is free and still the one that the path names.
fn is_ours(file: &File, path: &Path) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
        locked => locked?,
    }
    let (ours, named) = (file.metadata()?, fs::metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino()))
}

/// Whole or not at all, and only what can be used.
fn keep(path: &Path, document: &DocumentMut) -> Result<Config, EditError> {
    let io = |source| EditError::Io { path: path.to_owned(), source };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = write(&temporary, path, &document.to_string()).map_err(io);
    let checked = written.and_then(|()| check(&temporary, path));
    match checked {
        Ok(config) => fs::rename(&temporary, path).map_err(io).map(|()| config),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
    }
}

fn write(temporary: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(temporary)?;
    file.set_permissions(fs::metadata(path)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn check(temporary: &Path, path: &Path) -> Result<Config, EditError> {
    let pools = Pools::load(temporary)?;
    let sizes = [u64::MAX / 2; 2];
    for config in pools.all() {
        let home = config.home().unwrap_or(Built::Slow);
        config
            .fence(home, sizes, &[0; 16], [0; 16])
            .map_err(|source| EditError::Fence { path: path.to_owned(), source })?;
    }
    Ok(pools.into_file())
}

/// Keeps what stands around the value.
fn set(table: &mut dyn TableLike, key: &str, new: Option<Item>) {
    let Some(mut new) = new else { return };
    if let (Some(old), Some(new)) = (table.get(key).and_then(Item::as_value), new.as_value_mut()) {
        *new.decor_mut() = old.decor().clone();
    }
    table.insert(key, new);
}

fn bytes(bytes: u64) -> Item {
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    if bytes.is_multiple_of(GIB) && bytes > 0 {
        value(format!("{} GiB", bytes / GIB))
    } else if bytes.is_multiple_of(MIB) && bytes > 0 {
        value(format!("{} MiB", bytes / MIB))
    } else {
        value(i64::try_from(bytes).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# ours\n[slow]\ndevice = 'null:1 GiB' # nothing\n[scheduler]\nname = 'HDD+NWC'\n\n\
        [[disk]]\nname = 'a'\nsize = '1 MiB' # small\nsocket = '/a'\n[[disk]]\nname = 'b'\nsize = 4096\nsocket = '/b'\n";

    #[test]
    fn what_changes_is_changed_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fence.toml");
        fs::write(&path, TEXT).unwrap();
        let a =
            DiskEdit { disk: "a".into(), size_bytes: Some(3 << 20), slots: Some(2), ..DiskEdit::default() };
        let rotation = RotationEdit { spare_slots: Some(1), ..RotationEdit::default() };
        let config = edit(&path, &[a], None, rotation).unwrap();
        assert_eq!(
            (config.disks[0].slots, config.disks[0].size.0, config.scheduler.spare_slots),
            (2, 3 << 20, 1)
        );
        let expected = TEXT
            .replace("'1 MiB' # small\nsocket = '/a'\n", "\"3 MiB\" # small\nsocket = '/a'\nslots = 2\n")
            .replace("name = 'HDD+NWC'\n", "name = 'HDD+NWC'\nspare_slots = 1\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);

        let refused = |disk: &str, slots| {
            let one = DiskEdit { disk: disk.into(), slots: Some(slots), ..DiskEdit::default() };
            edit(&path, &[one], None, RotationEdit::default()).unwrap_err().to_string()
        };
        assert!(refused("c", 1).contains("no [[disk]] c"));
        assert!(refused("b", 0).contains("none of the"), "{}", refused("b", 0));
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn edits_at_once_are_all_in_the_file() {
        const AT_ONCE: usize = 8;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fence.toml");
        fs::write(&path, TEXT).unwrap();
        let begin = std::sync::Barrier::new(AT_ONCE);
        let add = |number: usize| {
            let name = format!("new{number}");
            let socket = Some(folder.path().join(&name));
            begin.wait();
            add_to_file(&path, &DiskTable { socket, ..DiskTable::new(name.clone(), 4096) }).unwrap();
            if number.is_multiple_of(2) {
                remove_from_file(&path, &name).unwrap();
            } else {
                let more = DiskEdit { disk: name, slots: Some(2), ..DiskEdit::default() };
                edit(&path, &[more], None, RotationEdit::default()).unwrap();
            }
        };
        thread::scope(|scope| {
            (0..AT_ONCE).for_each(|number| drop(scope.spawn(move || add(number))));
        });
        let config = Config::load(&path).unwrap();
        let mut found: Vec<_> = config.disks.iter().map(|disk| (disk.name.as_str(), disk.slots)).collect();
        found.sort_unstable();
        assert_eq!(found, [("a", 1), ("b", 1), ("new1", 2), ("new3", 2), ("new5", 2), ("new7", 2)]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn an_edit_waits_for_another_as_long_as_is_said_and_leaves_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fence.toml");
        fs::write(&path, TEXT).unwrap();
        let other = Locked::open(&path, Duration::ZERO).unwrap();
        let Err(busy) = Locked::open(&path, Duration::ZERO) else { panic!("both have it") };
        assert!(busy.to_string().contains("another command has been changing it"), "{busy}");
        assert_eq!(fs::read_to_string(&path).unwrap(), TEXT);
        drop(other);
        assert!(Locked::open(&path, Duration::ZERO).is_ok());
    }
}
