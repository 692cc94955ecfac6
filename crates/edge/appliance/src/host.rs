//! What this host's distribution is, and where its packages come from.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::error::ApplianceError;

/// The distribution that roots are made of: this host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Distribution {
    /// The code name of its release: `bookworm`.
    pub suite: String,
    /// Its name of this architecture: `amd64`.
    pub architecture: String,
}

/// The programs that a build calls, with their packages.
const PROGRAMS: [(&str, &str); 7] = [
    ("apt-get", "apt"),
    ("apt-cache", "apt"),
    ("mmdebstrap", "mmdebstrap"),
    ("unshare", "util-linux"),
    ("mke2fs", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("useradd", "passwd"),
];

/// Checks that all programs are there.
pub(crate) fn require_programs() -> Result<(), ApplianceError> {
    let paths = std::env::join_paths(search_path()).unwrap_or_default();
    let missing =
        PROGRAMS.into_iter().find(|(program, _)| which::which_in(program, Some(&paths), "/").is_err());
    missing.map_or(Ok(()), |(program, package)| Err(ApplianceError::Missing { program, package }))
}

/// Where programs are looked for: where Debian keeps those of administrators is not on every user's path.
fn search_path() -> Vec<PathBuf> {
    let own = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&own).chain(["/usr/sbin".into(), "/sbin".into()]).collect()
}

/// A command whose output is in English, and which finds what administrators use.
pub(crate) fn plain_command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C.UTF-8").env("PATH", std::env::join_paths(search_path()).unwrap_or_default());
    command.env_remove("APT_CONFIG");
    command
}

impl Distribution {
    /// This host's.
    pub fn of_host() -> Result<Self, ApplianceError> {
        let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
        Self::from_os_release(&text, std::env::consts::ARCH)
    }

    /// What `/etc/os-release` (os-release(5)) says.
    fn from_os_release(text: &str, architecture: &str) -> Result<Self, ApplianceError> {
        let plain = |value: &str| value.trim_matches(['"', '\'']).to_owned();
        let fields: BTreeMap<&str, String> = text
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key, plain(value)))
            .collect();
        let field = |key: &str| fields.get(key).cloned().unwrap_or_default();
        let families = format!("{} {}", field("ID"), field("ID_LIKE"));
        let suite = ["VERSION_CODENAME", "DEBIAN_CODENAME", "UBUNTU_CODENAME"]
            .map(field)
            .into_iter()
            .find(|name| !name.is_empty());
        let named = field("PRETTY_NAME");
        let is_debian = families.split(' ').any(|family| family == "debian");
        let (true, Some(suite)) = (is_debian, suite) else {
            return Err(ApplianceError::Host(format!(
                "appliances are made of the packages of Debian, or of a release that is made of it, by apt-get and mmdebstrap; \
                 this host runs {}: build on a Debian host, and copy its folder {} here",
                if named.is_empty() { "something without /etc/os-release" } else { &named },
                virtbench_lab::cache_directory().join("appliances").display()
            )));
        };
        let architecture = match architecture {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "i386",
            other => other,
        };
        Ok(Self { suite, architecture: architecture.to_owned() })
    }

    /// Whether a release of apt's sources belongs to it: itself, and what is updated beside it.
    pub fn has(&self, release: &str) -> bool {
        release.strip_prefix(&self.suite).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '/']))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read_and_other_distributions_are_told_what_to_do() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        let debian = Distribution::from_os_release(text, "x86_64").unwrap();
        assert_eq!(debian, Distribution { suite: "bookworm".into(), architecture: "amd64".into() });
        assert!(debian.has("bookworm") && debian.has("bookworm-security") && debian.has("bookworm/updates"));
        assert!(!debian.has("bookworms") && !debian.has("trixie"));
        let ubuntu = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n";
        assert_eq!(Distribution::from_os_release(ubuntu, "aarch64").unwrap().architecture, "arm64");
        let error =
            Distribution::from_os_release("ID=fedora\nPRETTY_NAME=\"Fedora 42\"\n", "x86_64").unwrap_err();
        assert!(error.to_string().contains("Fedora 42"), "{error}");
        assert!(Distribution::from_os_release("", "x86_64").is_err());
    }
}
