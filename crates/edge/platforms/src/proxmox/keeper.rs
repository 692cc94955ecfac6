//! A VM that is never started and says now and then that its run lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_lab::now_s;
use virtbench_mark::RunId;
use virtbench_proxmox::{Limit, NewMachine, Operation, Place, Proxmox};

use super::failure::failure;
use super::numbers::Numbers;
use super::owned::{KEEPER, Owned, TAG};
use crate::failure::Failure;
use crate::keeper::Keeper;

/// How long a sign, or the end of the VM, may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The least memory of a VM, in MiB.
const LEAST_MIB: u64 = 16;

/// Makes the VM.
pub(super) fn keeper(
    server: &Arc<Proxmox>,
    (node, pool): (&str, Option<&str>),
    (label, run): (&str, &RunId),
    numbers: &Numbers,
    limit: Limit,
) -> Result<Keeper, Failure> {
    let name = format!("{label}.shared");
    let at = |vmid| Place { node: node.to_owned(), vmid };
    let (vmid, made) = numbers.take(|vmid| {
        let description = Owned::new(run, KEEPER, vmid, &name).text();
        let memory_mib = LEAST_MIB;
        let (name, description) = (name.as_str(), description.as_str());
        let new = NewMachine { name, description, tag: TAG, memory_mib, disk: None, bridge: None, pool };
        server.perform(&at(vmid), &Operation::Create(new), limit).1
    });
    made.map_err(failure)?;
    let mut owned = Owned::new(run, KEEPER, vmid, &name);
    let (signs, removes) = (Arc::clone(server), Arc::clone(server));
    let (marked, place) = (at(vmid), at(vmid));
    let done = |server: &Proxmox, place: &Place, operation: &Operation<'_>| {
        server.perform(place, operation, Limit::at(Instant::now() + LIMIT)).1.map_err(failure)
    };
    let sign = move || {
        owned.sign.seen_s = now_s();
        done(&signs, &marked, &Operation::Describe { description: &owned.text(), tags: None })
    };
    Keeper::start(sign, move || done(&removes, &place, &Operation::Delete))
}
