//! apt with lists and an archive of packages of our own, so that a build needs neither root for them nor the network twice,
//! and nothing of the host's apt changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_lab::{CommandError, run_command_followed};

use crate::apt_words::{Resolved, Trouble, close_names, download_status, resolved, trouble};
use crate::digest::digest_of;
use crate::error::ApplianceError;
use crate::host::{Distribution, plain_command};
use crate::sources::host_sources;

/// Patterns of apt: every package without which the distribution does not work.
const ESSENTIAL: &str = "?essential";
/// How the host's apt reaches its servers. The rest of its configuration is for its own system.
const KEPT: [&str; 6] = [
    "Acquire::http::",
    "Acquire::https::",
    "Acquire::Check-",
    "Acquire::Retries",
    "Acquire::ForceIPv",
    "Dir::Etc::netrc",
];

/// apt for a distribution's release, with a state of its own.
pub(crate) struct Apt<'a> {
    pub folder: PathBuf,
    pub limit: Duration,
    pub stop: &'a AtomicBool,
    suite: String,
}

impl<'a> Apt<'a> {
    /// Sets one up below `folder`, with the host's sources of this release.
    pub fn set_up(
        folder: &Path,
        distribution: &Distribution,
        limit: Duration,
        stop: &'a AtomicBool,
    ) -> Result<Self, ApplianceError> {
        let sources = host_sources(distribution)?;
        let Distribution { suite, architecture } = distribution;
        let sum = digest_of(&sources);
        let folder = folder.join(format!("{suite}-{architecture}-{}", &sum[..8]));
        let apt = Self { folder, limit, stop, suite: suite.clone() };
        for below in ["lists/partial", "archives/partial", "none/partial", "sources"] {
            let path = apt.folder.join(below);
            fs::create_dir_all(&path).map_err(ApplianceError::file("make", &path))?;
        }
        let folder = fs::canonicalize(&apt.folder).map_err(ApplianceError::file("find", &apt.folder))?;
        let apt = Self { folder, ..apt };
        // apt reads all lists anew where one of its files is newer than what it keeps of them.
        let write = |name: &str, text: &str| {
            let path = apt.folder.join(name);
            if fs::read_to_string(&path).is_ok_and(|now| now == text) {
                return Ok(());
            }
            fs::write(&path, text).map_err(ApplianceError::file("write", &path))
        };
        for (name, text) in &sources {
            write(&format!("sources/{name}"), text)?;
        }
        write("status", "")?;
        let kept = apt.followed(dump_command(), "apt-config dump")?;
        let kept = kept.lines().filter(|line| KEPT.iter().any(|name| line.starts_with(name)));
        write("apt.conf", &(kept.collect::<Vec<_>>().join("\n") + &apt.configuration(architecture)))?;
        Ok(apt)
    }

    fn configuration(&self, architecture: &str) -> String {
        let folder = self.folder.display();
        format!(
            r#"
APT::Architecture "{architecture}";
APT::Architectures {{ "{architecture}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{folder}/sources";
Dir::State "{folder}";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}";
Dir::Cache::archives "{folder}/archives";
"#
        )
    }

    /// Files with its sources, as mmdebstrap takes them too.
    pub fn sources(&self) -> Result<Vec<PathBuf>, ApplianceError> {
        let folder = self.folder.join("sources");
        let entries = fs::read_dir(&folder).map_err(ApplianceError::file("read", &folder))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        Ok(paths)
    }

    /// Whether lists of packages are here.
    pub fn has_lists(&self) -> bool {
        self.folder.join("listed").exists()
    }

    /// Fetches lists of packages.
    pub fn update(&self) -> Result<(), ApplianceError> {
        let mut command = self.command("apt-get");
        command.args(["-q", "--error-on=any", "update"]);
        self.followed(command, "apt-get update")?;
        let path = self.folder.join("listed");
        fs::write(&path, "").map_err(ApplianceError::file("write", &path))
    }

    /// What these packages come to, with all that they need, by the lists that are here.
    pub fn resolve(&self, packages: &[String]) -> Result<Resolved, ApplianceError> {
        let mut command = self.command("apt-get");
        // With an archive that is empty it names those too that are here.
        command.arg("-o").arg(format!("Dir::Cache::archives={}/none", self.folder.display()));
        command.args(["-q", "-y", "--print-uris", "install", ESSENTIAL]).args(packages);
        Ok(resolved(&self.followed(command, "apt-get")?))
    }

    /// Bytes of packages that are not here yet.
    pub fn missing_bytes(&self, wanted: &Resolved) -> u64 {
        let is_here = |file: &str, bytes| {
            fs::metadata(self.folder.join("archives").join(file)).is_ok_and(|facts| facts.len() == bytes)
        };
        wanted.debs.iter().filter(|deb| !is_here(&deb.file, deb.bytes)).map(|deb| deb.bytes).sum()
    }

    /// Fetches the packages that are not here yet.
    pub fn download(
        &self,
        packages: &[String],
        told: &mut dyn FnMut(f64, &str),
    ) -> Result<(), ApplianceError> {
        let mut command = self.command("apt-get");
        command.args(["-q", "-y", "-o", "APT::Status-Fd=1", "--download-only", "install", ESSENTIAL]);
        command.args(packages);
        self.run(command, "apt-get", &mut |line| {
            if let Some((percent, what)) = download_status(line) {
                told(percent / 100.0, what);
            }
        })?;
        Ok(())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = plain_command(program);
        command.env("APT_CONFIG", self.folder.join("apt.conf")).env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn followed(&self, command: Command, what: &str) -> Result<String, ApplianceError> {
        self.run(command, what, &mut |_| {})
    }

    /// Runs a program of apt's; its failures in words that help. Gives what it said.
    fn run(
        &self,
        command: Command,
        what: &str,
        told: &mut dyn FnMut(&str),
    ) -> Result<String, ApplianceError> {
        let mut said = String::new();
        let follow = &mut |line: &str| {
            said.push_str(line);
            said.push('\n');
            told(line);
        };
        match run_command_followed(command, what, self.limit, self.stop, follow) {
            Ok(()) => Ok(said),
            Err(CommandError::Failed { .. }) => Err(self.explained(&said)),
            Err(other) => Err(other.into()),
        }
    }

    fn explained(&self, said: &str) -> ApplianceError {
        match trouble(said) {
            Trouble::NoPackage(name) => {
                let mut names = self.command("apt-cache");
                names.arg("pkgnames");
                // Without them the name alone is said.
                let names = names.output().map(|output| output.stdout).unwrap_or_default();
                let names = String::from_utf8_lossy(&names);
                let close = close_names(&name, names.lines());
                ApplianceError::NoPackage { name, suite: self.suite.clone(), close }
            }
            Trouble::NoNetwork(said) => ApplianceError::NoNetwork { said },
            Trouble::Outdated => ApplianceError::Outdated,
            Trouble::Other(said) => ApplianceError::Packages { said },
        }
    }
}

fn dump_command() -> Command {
    let mut command = plain_command("apt-config");
    command.arg("dump");
    command
}
