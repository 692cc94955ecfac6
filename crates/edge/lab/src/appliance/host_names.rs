//! Other tiers as the agent gets them.

use virtbench_agent::protocol::appliance::HostName;

use super::tiers::TierLinks;

/// The names of those that an appliance reaches.
pub(crate) fn host_names(tiers: &TierLinks) -> Vec<HostName> {
    let host = |(name, address): &(String, std::net::Ipv4Addr)| HostName {
        name: name.clone(),
        address: address.octets(),
    };
    tiers.hosts.iter().map(host).collect()
}
