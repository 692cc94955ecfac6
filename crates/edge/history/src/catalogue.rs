//! The catalogue: what is taken into its tables, and what is read from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use virtbench_model::history::HistoryRun;

use crate::error::{CatalogueError, Filter, Place};
use crate::found::{read_run, run_folders, state};
use crate::postgresql::PostgreSql;
use crate::sqlite::Sqlite;
use crate::store::{Change, Known, Row, Store, VERSION};

/// What a scan found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Runs that were read, for the first time or because they changed.
    pub read: usize,
    /// Runs that have not changed.
    pub unchanged: usize,
    /// Runs whose folders are gone.
    pub gone: usize,
    /// Run folders that cannot be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    /// It was stopped: what was read until then is kept, and the rest is looked at next time.
    pub stopped: bool,
}

/// Is told before each folder how many were looked at and how many there are; answers whether to go on.
pub type Watch<'a> = &'a mut dyn FnMut(usize, usize) -> bool;

/// A catalogue of run folders.
#[derive(Debug)]
pub struct Catalogue {
    store: Box<dyn Store>,
    /// This machine's name: folders of others are not looked at.
    machine: String,
}

impl Catalogue {
    /// Opens the catalogue, or makes an empty one. The tables of an earlier version become those of this one with what is in them.
    ///
    /// # Errors
    /// It is another program's file, a later version's, cannot be opened, or its tables have to be made or changed by a role that may
    /// not do that.
    pub fn open(place: impl Into<Place>) -> Result<Self, CatalogueError> {
        Self::open_as(place.into(), machine())
    }

    /// The same on a machine of this name.
    pub(crate) fn open_as(place: Place, machine: String) -> Result<Self, CatalogueError> {
        let store: Box<dyn Store> = match place {
            Place::File(path) => Box::new(Sqlite::open(&path, &machine)?),
            Place::Server(connect) => Box::new(PostgreSql::open(&connect)?),
        };
        Ok(Self { store, machine })
    }

    /// Opens the catalogue to read what it holds, and changes nothing; nothing where there is none, or one of a version that is too
    /// early.
    ///
    /// # Errors
    /// A later version made it, or the database refuses.
    pub fn open_to_read(place: impl Into<Place>) -> Result<Option<Self>, CatalogueError> {
        let store = match place.into() {
            Place::File(path) => Sqlite::open_to_read(&path)?.map(|store| Box::new(store) as Box<dyn Store>),
            Place::Server(connect) => {
                PostgreSql::open_to_read(&connect)?.map(|store| Box::new(store) as Box<dyn Store>)
            }
        };
        Ok(store.map(|store| Self { store, machine: machine() }))
    }

    /// Whether it can only be read, as by a role of a team's database that may do no more.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.store.is_read_only()
    }

    /// Looks through folders, and remembers them for the next [`refresh`](Self::refresh).
    ///
    /// # Errors
    /// A folder is not there, or the database refuses.
    pub fn scan(&mut self, roots: &[PathBuf], watch: Watch<'_>) -> Result<Scanned, CatalogueError> {
        let folders = folders_in(roots)?;
        let (known, mut changes) = (self.known()?, named(roots));
        let scanned = self.compared(&folders, &known, &mut changes, watch)?;
        self.store.change(&self.machine, &changes)?;
        Ok(scanned)
    }

    /// Looks through all folders that were ever named on this machine, and forgets runs that are gone.
    ///
    /// # Errors
    /// The database refuses.
    pub fn refresh(&mut self, watch: Watch<'_>) -> Result<Scanned, CatalogueError> {
        let folders = self.folders_ever_named()?;
        let (known, mut changes) = (self.known()?, Vec::new());
        let mut scanned = self.compared(&folders, &known, &mut changes, watch)?;
        scanned.gone = gone(&known, &mut changes);
        self.store.change(&self.machine, &changes)?;
        Ok(scanned)
    }

    /// Reads every run of this machine again, in these folders or, where there are none, in all that were ever named, and forgets
    /// runs that are gone. Other machines' runs stay as they are.
    ///
    /// # Errors
    /// A folder is not there, or the database refuses.
    pub fn rebuild(&mut self, roots: &[PathBuf], watch: Watch<'_>) -> Result<Scanned, CatalogueError> {
        let folders = if roots.is_empty() { self.folders_ever_named()? } else { folders_in(roots)? };
        let (known, mut changes) = (self.known()?, named(roots));
        let mut scanned = self.compared(&folders, &BTreeMap::new(), &mut changes, watch)?;
        scanned.gone = gone(&known, &mut changes);
        self.store.change(&self.machine, &changes)?;
        Ok(scanned)
    }

    fn folders_ever_named(&mut self) -> Result<Vec<PathBuf>, CatalogueError> {
        let roots = self.store.roots(&self.machine)?;
        let mut folders: Vec<PathBuf> = roots.iter().flat_map(|root| run_folders(Path::new(root))).collect();
        folders.sort();
        folders.dedup();
        Ok(folders)
    }

    /// The runs that a filter takes, in the order of time. Folders of other machines have their machine's name before them.
    ///
    /// # Errors
    /// The database refuses, or is damaged.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<HistoryRun>, CatalogueError> {
        let runs = self.store.rows()?.into_iter().map(|row| self.run(row)).collect::<Result<Vec<_>, _>>()?;
        Ok(runs.into_iter().filter(|run| filter.takes(run)).collect())
    }

    fn known(&mut self) -> Result<BTreeMap<String, Known>, CatalogueError> {
        let known = self.store.known(&self.machine)?;
        Ok(known.into_iter().map(|known| (known.folder.clone(), known)).collect())
    }

    /// What is new of folders, and what of it changes the catalogue.
    fn compared(
        &self,
        folders: &[PathBuf],
        known: &BTreeMap<String, Known>,
        changes: &mut Vec<Change>,
        watch: Watch<'_>,
    ) -> Result<Scanned, CatalogueError> {
        let mut scanned = Scanned::default();
        for (place, folder) in folders.iter().enumerate() {
            if !watch(place, folders.len()) {
                scanned.stopped = true;
                break;
            }
            let (name, state) = (folder.display().to_string(), state(folder));
            match known.get(&name).filter(|known| known.state == state && known.read_by == VERSION) {
                Some(Known { why: None, .. }) => scanned.unchanged += 1,
                Some(Known { why: Some(why), .. }) => scanned.unreadable.push((folder.clone(), why.clone())),
                None => match read_run(folder) {
                    Ok(run) => {
                        changes.push(Change::Run(Box::new(self.row(run, state)?)));
                        scanned.read += 1;
                    }
                    Err(error) => {
                        let why = error.to_string();
                        scanned.unreadable.push((folder.clone(), why.clone()));
                        changes.push(Change::Unreadable { folder: name, state, why });
                    }
                },
            }
        }
        Ok(scanned)
    }

    fn row(&self, run: HistoryRun, state: String) -> Result<Row, CatalogueError> {
        Ok(Row {
            machine: self.machine.clone(),
            state,
            started_unix_s: i64::try_from(run.started_unix_s).unwrap_or(i64::MAX),
            parts: serde_json::to_string(&run.parts)?,
            load: serde_json::to_string(&run.load)?,
            versions: serde_json::to_string(&run.versions)?,
            tags: serde_json::to_string(&run.tags)?,
            measures: serde_json::to_string(&run.measures)?,
            folder: run.folder,
            study: run.study,
            identity: run.identity,
            host: run.host,
        })
    }

    fn run(&self, row: Row) -> Result<HistoryRun, CatalogueError> {
        let is_here = row.machine == self.machine;
        Ok(HistoryRun {
            folder: if is_here { row.folder } else { format!("{}:{}", row.machine, row.folder) },
            started_unix_s: u64::try_from(row.started_unix_s).unwrap_or(0),
            study: row.study,
            parts: serde_json::from_str(&row.parts)?,
            identity: row.identity,
            load: serde_json::from_str(&row.load)?,
            host: row.host,
            versions: serde_json::from_str(&row.versions)?,
            tags: serde_json::from_str(&row.tags)?,
            measures: serde_json::from_str(&row.measures)?,
        })
    }
}

/// The run folders in all of these.
fn folders_in(roots: &[PathBuf]) -> Result<Vec<PathBuf>, CatalogueError> {
    let mut folders = Vec::new();
    for root in roots {
        fs::read_dir(root).map_err(|source| CatalogueError::File { path: root.clone(), source })?;
        folders.extend(run_folders(root));
    }
    Ok(folders)
}

/// That these folders are to be looked through from now on.
fn named(roots: &[PathBuf]) -> Vec<Change> {
    roots.iter().map(|root| Change::Root(root.display().to_string())).collect()
}

/// Has runs forgotten whose folders are gone; returns how many of them could be read once.
fn gone(known: &BTreeMap<String, Known>, changes: &mut Vec<Change>) -> usize {
    let is_gone = |folder: &str| !Path::new(folder).join("run.json").is_file();
    let gone = known.iter().filter(|(folder, _)| is_gone(folder));
    gone.map(|(folder, Known { why, .. })| {
        changes.push(Change::Gone(folder.clone()));
        usize::from(why.is_none())
    })
    .sum()
}

/// The name that the kernel gives this machine.
fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "postgresql_tests.rs"]
mod postgresql_tests;

#[cfg(test)]
#[path = "dashboard_tests.rs"]
mod dashboard_tests;
