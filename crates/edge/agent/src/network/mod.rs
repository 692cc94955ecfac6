//! A network path is measured between two agents: one answers, the other sends and counts.

mod far_end;
mod latencies;
mod near_end;

use std::net::Ipv4Addr;

use crate::interface::{set_address, set_mtu, set_up};
use crate::protocol::network::{JoinOrder, NetworkReply, NetworkRequest};
use crate::protocol::{FailureKind, Reply};

/// Does what takes no time; nothing where something is to be measured.
pub(crate) fn answer_at_once(request: &NetworkRequest) -> Option<Reply> {
    let done = match request {
        NetworkRequest::Join(order) => join(order).map(|()| NetworkReply::Joined),
        NetworkRequest::Serve { port } => far_end::serve(*port)
            .map(|port| NetworkReply::Served { port })
            .map_err(|error| format!("port {port} cannot be served: {error}")),
        NetworkRequest::Measure(_) => return None,
    };
    Some(reply(done))
}

/// Measures. `measuring` is called once what passes counts.
pub(crate) fn measure(
    request: &NetworkRequest,
    is_stopped: &dyn Fn() -> bool,
    measuring: impl FnOnce(),
) -> Reply {
    let NetworkRequest::Measure(order) = request else {
        return reply(Err("this is answered at once".to_owned()));
    };
    let [a, b, c, d] = order.address;
    let at = Ipv4Addr::new(a, b, c, d);
    let measured = near_end::measure(order, is_stopped, measuring);
    reply(measured.map(NetworkReply::Measured).map_err(|error| format!("the path to {at}: {error}")))
}

fn join(order: &JoinOrder) -> Result<(), String> {
    let failed = |error| format!("the interface {} cannot be used: {error}", order.interface);
    if let Some(mtu) = order.mtu {
        set_mtu(&order.interface, mtu).map_err(failed)?;
    }
    set_address(&order.interface, order.address.into(), order.prefix).map_err(failed)?;
    set_up(&order.interface).map_err(failed)
}

fn reply(done: Result<NetworkReply, String>) -> Reply {
    match done {
        Ok(reply) => Reply::Network(reply),
        Err(message) => Reply::Failed { kind: FailureKind::Run, message },
    }
}
