//! apt with lists and an archive of packages of our own, so that a build needs neither root for them nor changes this host's; and what it says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use virtbench_lab::{CommandError, run_command_followed};

use crate::error::ApplianceError;
use crate::host::{Distribution, host_sources, plain_command};
use crate::store::digest_of;

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

/// A package that is to be installed, as apt names its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Deb {
    /// The file's name: `redis-server_5%3a7.0.15-1_amd64.deb`.
    pub file: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Its digest, as apt writes it: `SHA256:...`.
    pub sum: String,
}

/// What an installation would bring.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Resolved {
    /// The packages, by file name.
    pub debs: Vec<Deb>,
    /// What they take once they are unpacked, in bytes.
    pub installed_bytes: u64,
}

/// Reads the output of `apt-get install --print-uris -q`.
pub(crate) fn resolved(output: &str) -> Resolved {
    let mut resolved = Resolved::default();
    for line in output.lines() {
        if let Some(size) = line.strip_prefix("After this operation, ") {
            resolved.installed_bytes = size.split_once(" of ").map_or(0, |(size, _)| decimal_bytes(size));
        }
        let Some(rest) = line.strip_prefix('\'').and_then(|line| line.split_once("' ")).map(|(_, rest)| rest)
        else {
            continue;
        };
        let mut words = rest.split(' ');
        if let (Some(file), Some(Ok(bytes)), sum) = (words.next(), words.next().map(str::parse), words.next())
        {
            resolved.debs.push(Deb { file: file.into(), bytes, sum: sum.unwrap_or_default().into() });
        }
    }
    resolved.debs.sort();
    resolved
}

/// `177 MB` in bytes: apt's units are decimal.
fn decimal_bytes(text: &str) -> u64 {
    let (number, unit) = text.trim().split_once(' ').unwrap_or((text, "B"));
    let factor = match unit {
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => 1.0,
    };
    let number: f64 = number.replace(',', "").parse().unwrap_or(0.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of packages")]
    let bytes = (number.max(0.0) * factor) as u64;
    bytes
}

/// Percent and name of what is downloaded, from a line on apt's status descriptor.
pub(crate) fn download_status(line: &str) -> Option<(f64, &str)> {
    let mut parts = line.strip_prefix("dlstatus:")?.splitn(3, ':');
    let percent = parts.nth(1)?.parse().ok()?;
    Some((percent, parts.next()?))
}

/// What apt's errors come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No such package.
    NoPackage(String),
    /// The servers cannot be reached.
    NoNetwork(String),
    /// The lists of packages are older than what the servers still have.
    Outdated,
    /// Anything else, in its words.
    Other(String),
}

/// What of a server's words means that it was not reached.
const UNREACHED: [&str; 9] = [
    "Temporary failure resolving",
    "Could not resolve",
    "Could not connect",
    "Cannot initiate the connection",
    "Unable to connect",
    "Connection failed",
    "Connection timed out",
    "Network is unreachable",
    "Something wicked happened resolving",
];

/// Reads everything that apt-get said when it failed.
pub(crate) fn trouble(said: &str) -> Trouble {
    let lines = || said.lines().map(str::trim);
    let quoted = |line: &str| line.split('\'').nth(1).map(str::to_owned);
    for line in lines() {
        if let Some(name) = line.strip_prefix("E: Unable to locate package ") {
            return Trouble::NoPackage(name.to_owned());
        }
        let has_none =
            line.ends_with("has no installation candidate") || line.contains("Couldn't find any package by");
        if line.starts_with("E: ")
            && (has_none || line.starts_with("E: Version "))
            && let Some(name) = quoted(line)
        {
            let version = line.strip_prefix("E: Version '").and_then(|_| line.split('\'').nth(3));
            return Trouble::NoPackage(version.map_or(name.clone(), |package| format!("{package}={name}")));
        }
    }
    if let Some(line) = lines().find(|line| UNREACHED.iter().any(|words| line.contains(words))) {
        return Trouble::NoNetwork(line.trim_start_matches("W: ").trim_start_matches("E: ").to_owned());
    }
    if lines().any(|line| line.contains("404") && line.contains("Not Found")) {
        return Trouble::Outdated;
    }
    let unmet = lines().skip_while(|line| !line.contains("unmet dependencies")).skip(1);
    let unmet: Vec<&str> =
        unmet.take_while(|line| !line.starts_with("E:")).filter(|line| !line.is_empty()).collect();
    let errors = lines().filter(|line| line.starts_with("E: ")).map(|line| &line[3..]);
    let words: Vec<&str> = unmet.into_iter().chain(errors).take(6).collect();
    Trouble::Other(if words.is_empty() { said.trim().to_owned() } else { words.join("; ") })
}

/// Up to three names that are spelt most like `wanted`.
pub(crate) fn close_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let far = 1 + wanted.len() / 6;
    let mut close: Vec<(usize, &str)> = names
        .filter(|name| name.len().abs_diff(wanted.len()) <= far)
        .map(|name| (strsim::damerau_levenshtein(wanted, name), name))
        .filter(|(distance, _)| *distance <= far)
        .collect();
    close.sort_unstable();
    close.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_sizes_and_progress_are_read() {
        let output = "After this operation, 177 MB of additional disk space will be used.\n\
            'http://d/r_5%3a7.0_amd64.deb' redis-server_5%3a7.0_amd64.deb 73900 SHA256:ab\n\
            'http://d/a.deb' adduser_3.134_all.deb 105000 MD5Sum:cd\n";
        let found = resolved(output);
        assert_eq!(found.installed_bytes, 177_000_000);
        let files: Vec<&str> = found.debs.iter().map(|deb| deb.file.as_str()).collect();
        assert_eq!(files, ["adduser_3.134_all.deb", "redis-server_5%3a7.0_amd64.deb"]);
        assert_eq!((found.debs[1].bytes, found.debs[1].sum.as_str()), (73900, "SHA256:ab"));
        assert_eq!(decimal_bytes("1,024 kB"), 1_024_000);
        let status = download_status("dlstatus:95:99.6467:Retrieving file 95 of 95");
        assert_eq!(status, Some((99.6467, "Retrieving file 95 of 95")));
        assert_eq!(download_status("Get:1 http://d"), None);
    }

    #[test]
    fn errors_are_told_apart() {
        let none = |name: &str| Trouble::NoPackage(name.into());
        assert_eq!(
            trouble("Reading...\nE: Unable to locate package redis-servr\nE: more"),
            none("redis-servr")
        );
        assert_eq!(trouble("E: Version '1.2' for 'redis' was not found"), none("redis=1.2"));
        assert_eq!(trouble("E: Package 'x' has no installation candidate"), none("x"));
        let offline = "Err:1 http://d InRelease\n  Temporary failure resolving 'd'\n";
        assert_eq!(trouble(offline), Trouble::NoNetwork("Temporary failure resolving 'd'".into()));
        assert_eq!(trouble("E: Failed to fetch http://d/a.deb  404  Not Found"), Trouble::Outdated);
        let unmet =
            "The following packages have unmet dependencies:\n a : Conflicts: b\nE: held broken packages.\n";
        assert_eq!(trouble(unmet), Trouble::Other("a : Conflicts: b; held broken packages.".into()));
    }

    #[test]
    fn misspelt_names_are_told_what_is_like_them() {
        let names = ["redis-server", "redis-sentinel", "nginx", "xserver"];
        assert_eq!(close_names("redis-servr", names.into_iter()), ["redis-server"]);
        assert!(close_names("mongodb", names.into_iter()).is_empty());
    }
}
