//! Another run of a platform in place of what is native: what is copied of it, and why some cannot be.

use std::collections::BTreeMap;

use virtbench_record::{PlatformDomain, PlatformPlan, PlatformReference, Provenance, SamplesRecord};

use super::score::figures;

/// The figures of a run of a platform, for a plan that measures the same as it.
///
/// # Errors
/// It has measured other domains or in another way, or nothing, in words.
pub fn reference_of(
    run: &str,
    provenance: &Provenance,
    records: &[SamplesRecord],
    plan: &PlatformPlan,
) -> Result<PlatformReference, String> {
    let other = provenance
        .plan
        .platform()
        .ok_or_else(|| format!("it is a run of study {}, not of study platform", provenance.plan.study()))?;
    if !other.environments.is_empty() {
        return Err("it compares two environments, and says nothing of one platform".into());
    }
    let executes = provenance.guest.as_ref().map(|guest| guest.accelerator.name.clone());
    if let Some(name) =
        executes.as_ref().filter(|name| plan.accelerator != "auto" && plan.accelerator != **name)
    {
        return Err(format!(
            "its guests were executed by {}, those of this run are to be by {}: name the same accelerator for both",
            name.to_uppercase(),
            plan.accelerator.to_uppercase()
        ));
    }
    let mut domains = BTreeMap::new();
    for domain in &plan.domains {
        let Some(same) = other.domains.iter().find(|one| one.name == domain.name) else {
            let names: Vec<&str> = other.domains.iter().map(|one| one.name.as_str()).collect();
            return Err(format!(
                "it has no domain {}, it has {}: choose the domains that both have",
                domain.name,
                names.join(", ")
            ));
        };
        if let Some(what) = difference(domain, same) {
            return Err(format!("its domain {} was measured in another way: {what}", domain.name));
        }
        let found = figures(records.iter().filter(|record| record.key.side == domain.name));
        if !found.is_empty() {
            domains.insert(domain.name.clone(), found);
        }
    }
    if domains.is_empty() {
        return Err("it has measured nothing".into());
    }
    let host = &provenance.host;
    let host = format!("{}, {} processors, Linux {}", host.cpu, host.processors, host.kernel);
    Ok(PlatformReference { run: run.to_owned(), host, accelerator: executes, domains })
}

/// The first word in which two domains differ, but for where they were measured.
fn difference(domain: &PlatformDomain, other: &PlatformDomain) -> Option<String> {
    let words = |domain: &PlatformDomain| -> Vec<String> {
        domain.runs.iter().flat_map(|run| run.words.clone()).collect()
    };
    let (one, two) = (words(domain), words(other));
    match one.iter().zip(&two).find(|(one, two)| one != two) {
        Some((one, two)) => Some(format!("{two} there, {one} here")),
        None => (one.len() != two.len()).then(|| "its command lines differ".into()),
    }
}
