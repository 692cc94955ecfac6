//! What a run of predictions keeps beside its trials: costs, profiles, and what applications begin with. Each is made
//! under a name that begins with a point, and gets its own only when it is whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_formats::read_profile;
use virtbench_lab::run_command;
use virtbench_record::{Case, Costs, Profile};

use super::costs::parse_costs;
use super::error::ApplicationsError;
use virtbench_runs::{FolderError, write_whole};

/// How long the script of a case may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(600);
/// What a killed run leaves of its machines, by how the names begin.
const LEFTOVERS: [&str; 3] = ["virtbench-vm-", "virtbench-native-", "virtbench-references-"];

/// The files and folders beside the results in a run folder.
#[derive(Debug, Clone)]
pub(super) struct Kept(PathBuf);

impl Kept {
    pub(super) fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// What work costs, as it was measured at first; nothing before that.
    pub(super) fn costs(&self) -> Result<Option<Costs>, ApplicationsError> {
        read_costs(&self.0.join("costs.json"))
    }

    pub(super) fn keep_costs(&self, costs: &Costs) -> Result<(), ApplicationsError> {
        Ok(write_whole(&self.0.join("costs.json"), costs)?)
    }

    /// The costs with references as they were natively at a trial.
    pub(super) fn costs_at(&self, trial: u32) -> Result<Option<Costs>, ApplicationsError> {
        read_costs(&self.costs_path(trial))
    }

    pub(super) fn keep_costs_at(&self, trial: u32, costs: &Costs) -> Result<(), ApplicationsError> {
        Ok(write_whole(&self.costs_path(trial), costs)?)
    }

    fn costs_path(&self, trial: u32) -> PathBuf {
        self.0.join(format!("costs-{trial}.json"))
    }

    /// The profile of a case at a trial.
    pub(super) fn profile(&self, case: &str, trial: u32) -> Result<Option<Profile>, ApplicationsError> {
        let path = self.profile_path(case, trial);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        read_profile(&bytes).map(Some).map_err(|error| damaged(&path, &error.to_string()))
    }

    pub(super) fn keep_profile(
        &self,
        case: &str,
        trial: u32,
        profile: &Profile,
    ) -> Result<(), ApplicationsError> {
        let path = self.profile_path(case, trial);
        make_folder(&self.0.join("profiles"))?;
        Ok(write_whole(&path, profile)?)
    }

    fn profile_path(&self, case: &str, trial: u32) -> PathBuf {
        self.0.join("profiles").join(format!("{case}-{trial}.json"))
    }

    /// What a case begins with: made by its script, once and wholly.
    pub(super) fn prepared(&self, case: &Case, stop: &AtomicBool) -> Result<PathBuf, ApplicationsError> {
        let all = self.0.join("prepared");
        let whole = all.join(&case.name);
        if whole.exists() {
            return Ok(whole);
        }
        let half = all.join(format!(".{}.new", case.name));
        remove(&half)?;
        make_folder(&half)?;
        if let Some(script) = &case.prepare {
            let mut command = Command::new("sh");
            command.args(["-ec", script]).current_dir(&half);
            let what = format!("the script that prepares {}", case.name);
            if let Err(error) = run_command(command, &what, PREPARE_LIMIT, stop) {
                remove(&half)?;
                return Err(error.into());
            }
        }
        let finish = || -> io::Result<()> {
            rustix::fs::syncfs(File::open(&half)?)?;
            fs::rename(&half, &whole)?;
            File::open(&all)?.sync_all()
        };
        finish().map_err(|source| folder_error("keep", &whole, source))?;
        Ok(whole)
    }

    /// Removes what a killed run has left of its machines.
    pub(super) fn sweep(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if LEFTOVERS.iter().any(|start| name.to_string_lossy().starts_with(start)) {
                let _ = remove(&entry.path());
            }
        }
    }
}

fn folder_error(action: &'static str, path: &Path, source: io::Error) -> ApplicationsError {
    ApplicationsError::Folder(FolderError::Io { action, path: path.to_owned(), source })
}

fn damaged(path: &Path, why: &str) -> ApplicationsError {
    let source = io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    folder_error("read", path, source)
}

fn make_folder(path: &Path) -> Result<(), ApplicationsError> {
    fs::create_dir_all(path).map_err(|source| folder_error("make", path, source))
}

/// Removes a file or a folder, if there is one.
fn remove(path: &Path) -> Result<(), ApplicationsError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(|source| folder_error("remove", path, source))
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, ApplicationsError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(folder_error("read", path, error)),
    }
}

fn read_costs(path: &Path) -> Result<Option<Costs>, ApplicationsError> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    parse_costs(&bytes).map(Some).map_err(|why| damaged(path, &why))
}
