//! What this host's distribution is, and where its packages come from: apt's sources, in either of their forms (sources.list(5)).

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

const FOLDER: &str = "/etc/apt";

/// The files in which the distribution's release stands, each with the name that it gets. They are taken whole.
pub(crate) fn host_sources(distribution: &Distribution) -> Result<Vec<(String, String)>, ApplianceError> {
    let below = fs::read_dir(format!("{FOLDER}/sources.list.d")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
    paths.push(format!("{FOLDER}/sources.list").into());
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // There need not be a sources.list, and what apt cannot read it does not use either.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if releases(&name, &text).iter().any(|release| distribution.has(release)) {
            found.push((if name == "sources.list" { "host.list".into() } else { name }, text));
        }
    }
    if found.is_empty() {
        return Err(ApplianceError::Host(format!(
            "apt's sources on this host name no packages of {0}: put a line such as \
             `deb http://deb.debian.org/debian {0} main` into {FOLDER}/sources.list.d/{0}.list",
            distribution.suite
        )));
    }
    Ok(found)
}

/// The releases whose packages a file of sources names.
fn releases(name: &str, text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    if name.ends_with(".list") {
        return lines.filter_map(release_of_line).collect();
    }
    if !name.ends_with(".sources") {
        return Vec::new();
    }
    let lines: Vec<&str> = lines.collect();
    lines.split(|line| line.trim().is_empty()).flat_map(releases_of_stanza).collect()
}

/// `deb [options] URI release components`
fn release_of_line(line: &str) -> Option<String> {
    let rest = line.trim().strip_prefix("deb")?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let rest = if rest.starts_with('[') { rest.split_once(']')?.1 } else { rest };
    rest.split_whitespace().nth(1).map(str::to_owned)
}

fn releases_of_stanza(lines: &[&str]) -> Vec<String> {
    let field = |wanted: &str| {
        let mut words = Vec::new();
        let mut is_in_it = false;
        for line in lines {
            let goes_on = line.starts_with([' ', '\t']);
            let value = if goes_on {
                line
            } else {
                let Some((name, value)) = line.split_once(':') else { continue };
                is_in_it = name.eq_ignore_ascii_case(wanted);
                value
            };
            if is_in_it {
                words.extend(value.split_whitespace().map(str::to_owned));
            }
        }
        words
    };
    let is_off = field("Enabled").iter().any(|word| ["no", "false", "off", "0"].contains(&word.as_str()));
    let has_packages = field("Types").iter().any(|kind| kind == "deb");
    if is_off || !has_packages { Vec::new() } else { field("Suites") }
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

    #[test]
    fn releases_are_found_in_both_forms() {
        let list = "# deb http://d old main\ndeb [arch=amd64 signed-by=/k] http://d bookworm main\n\
            deb-src http://d src main\n deb\thttp://d\tbookworm-updates main\ndebris http://d no main\n";
        assert_eq!(releases("sources.list", list), ["bookworm", "bookworm-updates"]);
        let sources = "Types: deb\n# Suites: old\nURIs: http://d\nSuites: bookworm\n bookworm-updates\nComponents: main\n\
            \nTypes: deb-src\nSuites: src\n\nTypes: deb\nsuites: bookworm-security\n\nEnabled: no\nTypes: deb\nSuites: off\n";
        assert_eq!(
            releases("debian.sources", sources),
            ["bookworm", "bookworm-updates", "bookworm-security"]
        );
        assert!(releases("debian.sources.disabled", sources).is_empty());
    }
}
