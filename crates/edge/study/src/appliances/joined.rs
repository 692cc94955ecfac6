//! Appliances that reach others by name: each has a network of its own, and a cable to each other; and which names they may have.

use virtbench_lab::{ApplianceError, Network, NetworkNamespace, TierLinks};

/// One appliance that reaches another, each by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Use {
    /// Who reaches the other.
    pub(crate) from: usize,
    /// Whom it reaches.
    pub(crate) to: usize,
    /// The other's name there.
    pub(crate) name: String,
}

/// The network and the links of each of so many appliances before any of them starts. `vm` says whether they are guests.
///
/// # Errors
/// There are no sockets left, or natively no cable; root is needed for that.
pub(crate) fn joined(
    count: usize,
    uses: &[Use],
    vm: bool,
) -> Result<Vec<(Network, TierLinks)>, ApplianceError> {
    let is_joined = |place: usize| uses.iter().any(|one| one.from == place || one.to == place);
    let network = |place| match !vm && is_joined(place) {
        true => Ok(Network::Namespace(NetworkNamespace::new()?)),
        false => Ok(Network::User),
    };
    let networks = (0..count).map(network).collect::<Result<Vec<_>, ApplianceError>>()?;
    let mut links = vec![TierLinks::default(); count];
    let no_socket = |source| ApplianceError::Network { action: "there is no cable", source };
    for (one, number) in uses.iter().zip(numbers(count, uses)) {
        let mut own = std::mem::take(&mut links[one.from]);
        match (&networks[one.from], &networks[one.to]) {
            (Network::Namespace(here), Network::Namespace(there)) => {
                own.connect_natively(&one.name, (here, there), number)?;
            }
            _ => own.connect(&one.name, &mut links[one.to], number).map_err(no_socket)?,
        }
        links[one.from] = own;
    }
    Ok(networks.into_iter().zip(links).collect())
}

/// A number for each cable that no other one of either of its ends has: the smallest.
fn numbers(count: usize, uses: &[Use]) -> Vec<u8> {
    let mut taken: Vec<Vec<u8>> = vec![Vec::new(); count];
    let mut number = |one: &Use| {
        let is_free = |number: &u8| !taken[one.from].contains(number) && !taken[one.to].contains(number);
        let number = (0..=u8::MAX).find(is_free).unwrap_or(u8::MAX);
        taken[one.from].push(number);
        taken[one.to].push(number);
        number
    };
    uses.iter().map(&mut number).collect()
}

/// The most characters of a part of a host's name (RFC 1035, section 2.3.4).
const MOST_CHARACTERS: usize = 63;

/// Whether an appliance can know another one by this name: a-z, 0-9 and -, a letter first.
pub(crate) fn is_host_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    begins && name.chars().all(is_plain) && name.len() <= MOST_CHARACTERS && name != "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(pairs: &[(usize, usize, &str)]) -> Vec<Use> {
        pairs.iter().map(|(from, to, name)| Use { from: *from, to: *to, name: (*name).to_owned() }).collect()
    }

    #[test]
    fn everyone_reaches_those_that_it_uses_and_nobody_else() {
        let uses = uses(&[(0, 1, "app"), (0, 2, "db"), (1, 2, "db")]);
        let made = joined(4, &uses, true).unwrap();
        let text: Vec<String> = made.iter().map(|(_, links)| format!("{links:?}")).collect();
        let cables: Vec<usize> = text.iter().map(|one| one.matches("CableEnd").count()).collect();
        assert_eq!(cables, [2, 2, 2, 0]);
        assert!(text[0].contains("\"app\"") && text[0].contains("\"db\""));
        assert!(text[1].contains("\"db\"") && !text[2].contains("\"db\""));
    }

    #[test]
    fn cables_of_one_appliance_have_numbers_of_their_own() {
        let uses = uses(&[(0, 9, "db"), (1, 9, "db"), (2, 9, "db"), (3, 8, "db"), (9, 8, "db")]);
        assert_eq!(numbers(10, &uses), [0, 1, 2, 0, 3]);
    }
}
