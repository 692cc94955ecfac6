//! Operations on a fake OpenStack: the client's own share, and the memory of a long list.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use virtbench_openstack::{Address, Limit, LocalOpenStack, NewServer, OpenStack, Operation};

use crate::footprint;
use crate::pairs::{Verdict, median};

/// Times that a server is stopped and started.
const TIMES: usize = 20;
/// How long each task of the fake takes, in seconds.
const TASK_S: f64 = 0.1;
/// The median share of the client in a latency, in milliseconds, at most.
const MOST_OWN_MS: f64 = 2.0;
/// Servers of a long list, and the memory that it may take, in MiB.
const LONG: u32 = 10_000;
const MOST_MEMORY_MIB: f64 = 200.0;

fn limit() -> Limit {
    Limit::at(Instant::now() + Duration::from_secs(120))
}

fn connect(local: &LocalOpenStack) -> Result<OpenStack> {
    Ok(OpenStack::connect(&Address::parse(&local.argument())?, limit())?)
}

/// Holds what is promised.
pub fn check(_: usize, _: &Path) -> Result<Vec<Verdict>> {
    println!("operations on a fake OpenStack");
    Ok(vec![own_share()?, memory()?])
}

fn own_share() -> Result<Verdict> {
    let local = LocalOpenStack::start(TASK_S)?;
    let (cloud, metadata) = (connect(&local)?, BTreeMap::new());
    let new = NewServer::new("bench", "", &metadata, ["f1", "i1"]);
    let server = cloud.perform("", &Operation::Create(new), limit()).1?.context("it names no server")?;
    let mut own = Vec::new();
    for _ in 0..TIMES {
        for operation in [Operation::Stop, Operation::Start] {
            let (times, done) = cloud.perform(&server, &operation, limit());
            done?;
            own.push(times.client.as_secs_f64() * 1e3);
        }
    }
    Ok(footprint::line("openstack: own share of a latency (ms)", median(own), MOST_OWN_MS))
}

/// What a long list adds to this process, read and kept.
fn memory() -> Result<Verdict> {
    let local = LocalOpenStack::start(0.0)?;
    local.control(&json!({ "fill": LONG }))?;
    let cloud = connect(&local)?;
    fs::write("/proc/self/clear_refs", "5").context("the peak of the memory cannot be set back")?;
    let before = footprint::resident("VmRSS:")?;
    let (begun, mut servers) = (Instant::now(), Vec::new());
    cloud.each_server(limit(), |server| servers.push(server))?;
    println!("{} servers were read in {:.1} s", servers.len(), begun.elapsed().as_secs_f64());
    let most = footprint::resident("VmHWM:")? - before;
    ensure!(servers.len() == LONG as usize, "it shows {} servers", servers.len());
    Ok(footprint::line("openstack: memory of 10,000 servers' list (MiB)", most, MOST_MEMORY_MIB))
}
