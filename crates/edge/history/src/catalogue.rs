//! The catalogue: what is taken into its tables, and what is read from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use virtbench_model::history::HistoryRun;

use crate::error::CatalogueError;
use crate::filter::Filter;
use crate::found::{read_run, run_folders, state};
use crate::place::Place;
use crate::postgresql::PostgreSql;
use crate::sqlite::Sqlite;
use crate::store::{Change, Known, Row, Store};

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
}

/// A catalogue of run folders.
#[derive(Debug)]
pub struct Catalogue {
    store: Box<dyn Store>,
    /// This machine's name: folders of others are not looked at.
    machine: String,
}

impl Catalogue {
    /// Opens the catalogue, or makes an empty one. That of an earlier version is emptied, except for the folders that are to be
    /// looked through: each machine fills it again with its own.
    ///
    /// # Errors
    /// It is another program's file, a later version's, or cannot be opened.
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

    /// Opens the catalogue to read what it holds, and changes nothing; nothing where there is none, or one that another version
    /// filled.
    ///
    /// # Errors
    /// The database refuses.
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
    pub fn scan(&mut self, roots: &[PathBuf]) -> Result<Scanned, CatalogueError> {
        let mut folders = Vec::new();
        for root in roots {
            fs::read_dir(root).map_err(|source| CatalogueError::File { path: root.clone(), source })?;
            folders.extend(run_folders(root));
        }
        let mut changes: Vec<Change> =
            roots.iter().map(|root| Change::Root(root.display().to_string())).collect();
        let known = self.known()?;
        let scanned = self.compared(&folders, &known, &mut changes)?;
        self.store.change(&self.machine, &changes)?;
        Ok(scanned)
    }

    /// Looks through all folders that were ever named on this machine, and forgets runs that are gone.
    ///
    /// # Errors
    /// The database refuses.
    pub fn refresh(&mut self) -> Result<Scanned, CatalogueError> {
        let roots = self.store.roots(&self.machine)?;
        let mut folders: Vec<PathBuf> = roots.iter().flat_map(|root| run_folders(Path::new(root))).collect();
        folders.sort();
        folders.dedup();
        let (known, mut changes) = (self.known()?, Vec::new());
        let mut scanned = self.compared(&folders, &known, &mut changes)?;
        for (folder, Known { why, .. }) in &known {
            if !Path::new(folder).join("run.json").is_file() {
                changes.push(Change::Gone(folder.clone()));
                scanned.gone += usize::from(why.is_none());
            }
        }
        self.store.change(&self.machine, &changes)?;
        Ok(scanned)
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
    ) -> Result<Scanned, CatalogueError> {
        let mut scanned = Scanned::default();
        for folder in folders {
            let (name, state) = (folder.display().to_string(), state(folder));
            match known.get(&name).filter(|known| known.state == state) {
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
