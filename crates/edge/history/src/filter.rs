//! Which runs of a catalogue are meant.

use std::path::PathBuf;

/// What a run must be to be shown. An empty filter means every run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// It lies in one of these folders, if any are named. Absolute paths.
    pub folders: Vec<PathBuf>,
    /// It is of this study.
    pub study: Option<String>,
    /// Its host's description contains this, in whatever case.
    pub host: Option<String>,
    /// It has all these tags.
    pub tags: Vec<String>,
    /// It began at this time or later, in seconds since 1970.
    pub since_unix_s: u64,
}

impl Filter {
    /// Whether the filter selects a run.
    pub(crate) fn takes(&self, run: &virtbench_model::history::HistoryRun) -> bool {
        let inside = |folder: &PathBuf| std::path::Path::new(&run.folder).starts_with(folder);
        (self.folders.is_empty() || self.folders.iter().any(inside))
            && self.study.as_ref().is_none_or(|study| *study == run.study)
            && self.host.as_ref().is_none_or(|host| run.host.to_lowercase().contains(&host.to_lowercase()))
            && self.tags.iter().all(|tag| run.tags.contains(tag))
            && run.started_unix_s >= self.since_unix_s
    }
}
