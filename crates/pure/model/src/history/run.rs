//! A run in a history: with which others it is comparable, of which it is a copy, and how busy its hosts were.

use std::collections::BTreeMap;

use serde::Serialize;
use virtbench_record::{HostUse, Records};

use super::measures::Measure;
use crate::host_load::LoadSample;

/// A run in a history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryRun {
    /// Its folder.
    pub folder: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// Which study, such as `native-vs-vm`.
    pub study: String,
    /// What must be alike for runs to be compared, by name: what it set out to measure, and on what.
    #[serde(skip)]
    pub parts: BTreeMap<String, String>,
    /// The host, in words.
    pub host: String,
    /// What else may explain a change, by name: virtbench's version, kernels, QEMU's version, devices.
    pub versions: BTreeMap<String, String>,
    /// What a user called it.
    pub tags: Vec<String>,
    /// What else the hosts were busy with; nothing where it was not sampled.
    pub load: Option<LoadSample>,
    /// The same for copies of a run, and for nothing else.
    #[serde(skip)]
    pub identity: String,
    /// Its numbers.
    #[serde(skip)]
    pub measures: Vec<Measure>,
}

/// Runs that are compared with each other, in the order of time.
pub(super) type Comparable = Vec<HistoryRun>;

/// A part in which groups of a study differ, so that they are not compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Split {
    /// Which study.
    pub study: String,
    /// The part's name.
    pub part: String,
    /// Each of its values, and how many runs have it; the most frequent first.
    pub values: Vec<(String, usize)>,
}

/// A run folder that holds the same run as another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Copied {
    /// What is left out.
    pub copy: String,
    /// What counts.
    pub of: String,
}

/// Leaves out copies: of each run the folder counts in which most was measured.
pub(super) fn without_copies(mut runs: Vec<HistoryRun>) -> (Vec<HistoryRun>, Vec<Copied>) {
    runs.sort_by(|one, other| {
        let most = |run: &HistoryRun| std::cmp::Reverse(run.measures.len());
        (&one.identity, most(one), &one.folder).cmp(&(&other.identity, most(other), &other.folder))
    });
    let mut copies = Vec::new();
    runs.dedup_by(|copy, of| {
        let is_copy = copy.identity == of.identity;
        if is_copy {
            copies.push(Copied { copy: copy.folder.clone(), of: of.folder.clone() });
        }
        is_copy
    });
    runs.sort_by(|one, other| (one.started_unix_s, &one.folder).cmp(&(other.started_unix_s, &other.folder)));
    (runs, copies)
}

/// Runs of a study whose parts are alike, but for those that are joined; the largest group first. A joined part may explain a change, as
/// a version does.
pub(super) fn groups(runs: Vec<HistoryRun>, joined: &[String]) -> Vec<Comparable> {
    let mut groups: BTreeMap<(String, BTreeMap<String, String>), Comparable> = BTreeMap::new();
    for mut run in runs {
        let is_joined = |name: &String| joined.contains(name);
        let (open, key): (BTreeMap<_, _>, BTreeMap<_, _>) =
            run.parts.clone().into_iter().partition(|(name, _)| is_joined(name));
        run.versions.extend(open);
        groups.entry((run.study.clone(), key)).or_default().push(run);
    }
    let mut groups: Vec<Comparable> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

/// The parts in which the groups of each study differ.
pub(super) fn splits(groups: &[Comparable], joined: &[String]) -> Vec<Split> {
    let mut studies: BTreeMap<&str, Vec<&Comparable>> = BTreeMap::new();
    for group in groups {
        studies.entry(&group[0].study).or_default().push(group);
    }
    let mut found = Vec::new();
    for (study, groups) in studies.into_iter().filter(|(_, groups)| groups.len() > 1) {
        let names: std::collections::BTreeSet<&String> = groups
            .iter()
            .flat_map(|group| group[0].parts.keys())
            .filter(|name| !joined.contains(name))
            .collect();
        for name in names {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for group in &groups {
                let value = group[0].parts.get(name).map_or("none", String::as_str);
                *counts.entry(value).or_default() += group.len();
            }
            if counts.len() > 1 {
                let mut values: Vec<_> =
                    counts.into_iter().map(|(value, runs)| (value.to_owned(), runs)).collect();
                values.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
                found.push(Split { study: study.to_owned(), part: name.clone(), values });
            }
        }
    }
    found
}

/// On average beside all that was measured; nothing where it was not sampled.
#[must_use]
pub fn run_load(records: &Records) -> Option<LoadSample> {
    let hosts: Vec<&HostUse> = match records {
        Records::Points(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Sets(all) => all.iter().filter_map(|one| one.host.as_ref()).collect(),
        Records::Trials(all) => all.iter().filter_map(|one| one.machine_host.as_ref()).collect(),
        Records::Oltp(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Operations(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Application(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Desktops(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Samples(all) => all.iter().filter_map(|one| one.measured()?.host.as_ref()).collect(),
        Records::Tiles(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
    };
    LoadSample::mean(&hosts.into_iter().filter_map(LoadSample::of).collect::<Vec<_>>())
}
