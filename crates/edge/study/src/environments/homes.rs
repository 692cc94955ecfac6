//! Which machine of a set lives in which environment.

use virtbench_record::Home;

use super::uri::{EnvironmentUri, NamedEnvironment, UriError};

/// The most machines that one environment is named for.
const MAX_MACHINES: usize = 64;

/// Parts `ENVIRONMENT*N` into the environment and how many machines in a row live in it: one where it does not say.
///
/// # Errors
/// It is no such number.
pub fn split_machines(text: &str) -> Result<(&str, usize), UriError> {
    let Some((environment, number)) = text.rsplit_once('*') else { return Ok((text, 1)) };
    // An asterisk may stand in a path.
    if number.is_empty() || !number.chars().all(|digit| digit.is_ascii_digit()) {
        return Ok((text, 1));
    }
    let machines = number.parse().ok().filter(|machines| (1..=MAX_MACHINES).contains(machines));
    machines.map(|machines| (environment, machines)).ok_or_else(|| UriError::Machines(text.to_owned()))
}

/// Where each of these machines lives: `places` in order, round and round.
///
/// # Errors
/// There are more places than machines, or two environments have one name.
pub(crate) fn homes(vms: &[String], places: &[NamedEnvironment]) -> Result<Vec<Home>, UriError> {
    for (index, place) in places.iter().enumerate() {
        if places[..index].iter().any(|other| other.name == place.name && other.uri != place.uri) {
            return Err(UriError::Twice(place.name.clone()));
        }
    }
    if !places.is_empty() && places.len() > vms.len() {
        return Err(UriError::Room { places: places.len(), machines: vms.len() });
    }
    let each = vms.iter().zip(places.iter().cycle());
    let home = |(vm, place): (&String, &NamedEnvironment)| Home {
        vm: vm.clone(),
        environment: place.name.clone(),
        uri: place.uri.to_string(),
    };
    Ok(each.map(home).collect())
}

/// The machines themselves, each an environment of its own name: agents that share a folder have one each in it.
pub(crate) fn housed(vms: &[String], places: &[NamedEnvironment]) -> Vec<NamedEnvironment> {
    let each = vms.iter().zip(places.iter().cycle());
    let machine = |(vm, place): (&String, &NamedEnvironment)| NamedEnvironment {
        name: vm.clone(),
        uri: match &place.uri {
            EnvironmentUri::Ssh(address) => EnvironmentUri::Ssh(address.clone().with_agent_name(vm)),
            other => other.clone(),
        },
    };
    each.map(machine).collect()
}

/// In words: `vm1 and vm3 in metal, vm2 in vm`.
pub(crate) fn in_words(homes: &[Home]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for home in homes {
        if !names.contains(&home.environment.as_str()) {
            names.push(&home.environment);
        }
    }
    let of_one = |name: &&str| {
        let vms = homes.iter().filter(|home| home.environment == **name).map(|home| home.vm.as_str());
        let (uri, vms) = (homes.iter().find(|home| home.environment == **name), vms.collect::<Vec<_>>());
        format!("{} in {name} ({})", vms.join(", "), uri.map_or("", |home| &home.uri))
    };
    names.iter().map(of_one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(texts: &[&str]) -> Vec<NamedEnvironment> {
        let place = |text: &&str| {
            let (environment, machines) = split_machines(text).unwrap();
            vec![NamedEnvironment::parse(environment).unwrap(); machines]
        };
        texts.iter().flat_map(place).collect()
    }

    fn spread(machines: usize, texts: &[&str]) -> Result<String, String> {
        let vms: Vec<String> = (1..=machines).map(|number| format!("vm{number}")).collect();
        homes(&vms, &places(texts)).map(|homes| in_words(&homes)).map_err(|error| error.to_string())
    }

    #[test]
    fn machines_are_spread_in_order_round_and_round() {
        let both = ["a=ssh://metal/srv", "b=native:"];
        assert_eq!(spread(2, &both).unwrap(), "vm1 in a (ssh://metal/srv); vm2 in b (native:)");
        assert_eq!(spread(3, &both).unwrap(), "vm1, vm3 in a (ssh://metal/srv); vm2 in b (native:)");
        let repeated = ["a=ssh://metal/srv*2", "b=native:"];
        assert_eq!(spread(4, &repeated).unwrap(), "vm1, vm2, vm4 in a (ssh://metal/srv); vm3 in b (native:)");
        assert_eq!(spread(2, &[]).unwrap(), "");
    }

    #[test]
    fn what_cannot_be_spread_is_said() {
        assert!(spread(2, &["native:*3"]).unwrap_err().contains("room for 3 machines"));
        assert!(spread(2, &["a=native:", "a=qemu:"]).unwrap_err().contains("two environments are called a"));
        assert!(spread(2, &["a=native:", "a=native:"]).is_ok(), "the same twice");
        for text in ["native:*0", "native:*65", "native:*99999999999999999999"] {
            assert!(split_machines(text).unwrap_err().to_string().contains("*1 to *64"), "{text}");
        }
        assert_eq!(split_machines("native:/srv/*").unwrap(), ("native:/srv/*", 1));
        assert_eq!(split_machines("native:/a*b").unwrap(), ("native:/a*b", 1));
    }

    #[test]
    fn agents_that_share_a_folder_have_one_each() {
        let vms = ["vm1".to_owned(), "vm2".to_owned()];
        let machines = housed(&vms, &places(&["a=ssh://metal/srv"]));
        assert_eq!(machines.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["vm1", "vm2"]);
        assert_ne!(machines[0].uri, machines[1].uri);
        assert_eq!(machines[0].uri.to_string(), "ssh://metal/srv");
    }
}
