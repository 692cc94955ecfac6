//! Whether a domain was measured on the host and in the guests that the run began with. What was not does not count.

use std::path::{Path, PathBuf};

use virtbench_lab::host_facts;
use virtbench_record::{PlatformDomain, Provenance};
use virtbench_runs::read_provenance;

use crate::study_error::StudyError;

/// What changed since the platform's run began, or since an earlier repetition of the domain, in words. `runs` are those of the domain's studies,
/// in the order of the plan.
pub(super) fn change(
    folder: &Path,
    domain: &PlatformDomain,
    repetition: u32,
    runs: &[&Provenance],
) -> Option<String> {
    let begun = read_provenance(folder).ok()?;
    let of_host = runs.iter().map(|run| &run.host).find_map(|host| host.change_since(&begun.host));
    let now = || host_facts(folder).change_since(&begun.host);
    let of_guests = || {
        let pairs = domain.runs.iter().zip(runs);
        pairs.into_iter().find_map(|(run, measured)| {
            let guest = measured.guest.as_ref()?;
            let earlier = (0..repetition).map(|earlier| folder.join(run.folder(&domain.name, earlier)));
            let earlier = earlier.filter_map(|folder| read_provenance(&folder).ok());
            earlier.filter_map(|run| run.guest).find_map(|before| guest.change_since(&before))
        })
    };
    let of_versions = || {
        let other = runs.iter().find(|run| run.version != begun.version)?;
        Some(format!("virtbench was {} before and is {} now", begun.version, other.version))
    };
    of_host.or_else(now).or_else(of_versions).or_else(of_guests)
}

/// Moves the run folders of a repetition aside, so that the next try measures anew and they can still be read.
///
/// # Errors
/// They cannot be moved.
pub(super) fn set_aside(folder: &Path, domain: &str, repetition: u32) -> Result<PathBuf, StudyError> {
    let own = folder.join(domain);
    let number = repetition + 1;
    let (from, mut times) = (own.join(number.to_string()), 1);
    let aside = |times: u32| own.join(format!("{number}-void-{times}"));
    while aside(times).exists() {
        times += 1;
    }
    let to = aside(times);
    std::fs::rename(&from, &to)
        .map_err(|source| StudyError::input(format!("{} cannot be moved: {source}", from.display())))?;
    Ok(to)
}
