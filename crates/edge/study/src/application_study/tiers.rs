//! Tiers of one application: what each knows of the others, and what the paths between them cost.

use virtbench_lab::{RunningAppliance, TierLinks};
use virtbench_record::TierMeasured;

use super::sides::ApplicationFailure;

/// The links of every tier before any of them boots, the first being what the client loads: each reaches those that follow, by a
/// cable where guests share no network.
///
/// # Errors
/// There are no sockets left.
pub(super) fn cables(names: &[String]) -> std::io::Result<Vec<TierLinks>> {
    let mut links = vec![TierLinks::default(); names.len() + 1];
    let mut number = 0;
    for from in 0..links.len() {
        for to in from + 1..links.len() {
            let (before, rest) = links.split_at_mut(to);
            before[from].connect(&names[to - 1], &mut rest[0], number)?;
            number += 1;
        }
    }
    Ok(links)
}

/// The links of one that shares a network with those that follow it, which run already.
pub(super) fn names(following: &[(String, &RunningAppliance)]) -> TierLinks {
    let mut links = TierLinks::default();
    for (name, appliance) in following {
        if let Some(address) = appliance.shared_address() {
            links.name(name, address);
        }
    }
    links
}

/// What the path from the first to each of the others costs.
///
/// # Errors
/// One is not reached.
pub(super) fn measured(
    names: &[String],
    appliances: &mut [RunningAppliance],
) -> Result<Vec<TierMeasured>, ApplicationFailure> {
    let Some((first, others)) = appliances.split_first_mut() else { return Ok(Vec::new()) };
    let one = |(name, other): (&String, &mut RunningAppliance)| {
        let path = first.measure_path_to(name, other);
        let path = path.map_err(|error| ApplicationFailure::measurement(error.to_string()))?;
        Ok(TierMeasured { name: name.clone(), path, appliance: other.facts().clone() })
    };
    names.iter().zip(others).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tier_reaches_those_that_follow() {
        let names = ["app", "db"].map(str::to_owned);
        let links = cables(&names).unwrap();
        let text: Vec<String> = links.iter().map(|one| format!("{one:?}")).collect();
        assert_eq!(text.iter().map(|one| one.matches("CableEnd").count()).collect::<Vec<_>>(), [2, 2, 2]);
        assert!(text[0].contains("\"app\"") && text[0].contains("\"db\""));
        assert!(text[1].contains("\"db\"") && !text[2].contains("\"app\""));
    }
}
