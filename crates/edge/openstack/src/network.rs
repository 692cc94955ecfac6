//! Networks, by Neutron.

use serde::Deserialize;
use virtbench_https::Limit;

use crate::error::OpenStackError;
use crate::session::{Call, Service, Session, encoded};

#[derive(Deserialize)]
struct Networks {
    networks: Vec<Network>,
}

#[derive(Deserialize)]
struct Network {
    id: String,
}

/// The id of the network of this name or id; `auto` and `none` stand for themselves.
pub(crate) fn find(session: &Session, wanted: &str, limit: Limit) -> Result<String, OpenStackError> {
    if matches!(wanted, "auto" | "none") {
        return Ok(wanted.to_owned());
    }
    for field in ["id", "name"] {
        let path = format!("networks?fields=id&{field}={}", encoded(wanted));
        let call = Call { service: Service::Network, ..Call::get(path) };
        let mut found = session.get::<Networks>(&call, limit)?.0.networks;
        match (found.pop(), found.len()) {
            (Some(network), 0) => return Ok(network.id),
            (Some(_), _) => {
                let why =
                    format!("several networks are named {wanted}: give the id in network= of the address");
                return Err(OpenStackError::Settings(why));
            }
            _ => {}
        }
    }
    let why = format!(
        "there is no network {wanted}: see `openstack network list` and network= of the address, which takes auto and none as well"
    );
    Err(OpenStackError::Settings(why))
}
