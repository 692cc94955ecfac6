//! What the path to an appliance costs by itself, measured between this process and the agent there.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use virtbench_agent::measure_path_cost;
use virtbench_record::PathCost;

use super::network::Reach;

/// Measures the path to `address`, where an agent answers: bytes for `flow` in each direction.
///
/// # Errors
/// It cannot be reached, or does not answer.
pub fn measure_path(reach: &Reach, address: SocketAddr, flow: Duration) -> io::Result<PathCost> {
    reach.within(|| measure_path_cost(address, flow))?
}
