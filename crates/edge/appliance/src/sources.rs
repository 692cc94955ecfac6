//! The host's apt sources, in either of their forms (sources.list(5)).

use std::fs;
use std::path::PathBuf;

use crate::error::ApplianceError;
use crate::host::Distribution;

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
