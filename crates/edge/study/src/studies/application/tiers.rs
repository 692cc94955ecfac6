//! Tiers of one application: who reaches whom, and what the paths between them cost.

use virtbench_lab::{RunningAppliance, TierLinks};
use virtbench_record::TierMeasured;

use super::sides::ApplicationFailure;
use crate::appliances::joined::Use;

/// Who reaches whom, the first being what the client loads: each reaches those that follow.
pub(super) fn uses(names: &[String]) -> Vec<Use> {
    let of = |from: usize| {
        let following = names.iter().enumerate().skip(from);
        following.map(move |(number, name)| Use { from, to: number + 1, name: name.clone() })
    };
    (0..names.len()).flat_map(of).collect()
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
        let path = path.map_err(|error| ApplicationFailure::failed(error.to_string()))?;
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
        let said: Vec<String> =
            uses(&names).iter().map(|one| format!("{} {} {}", one.from, one.to, one.name)).collect();
        assert_eq!(said, ["0 1 app", "0 2 db", "1 2 db"]);
    }
}
