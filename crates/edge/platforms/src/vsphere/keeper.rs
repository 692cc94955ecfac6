//! A VM that is never started and says now and then that its run lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_lab::now_s;
use virtbench_mark::RunId;
use virtbench_record::FailureKind;
use virtbench_vsphere::{Cluster, Operation, Shape, Until, Vsphere};

use super::done::failure;
use super::owned::{KEEPER, Owned};
use crate::failure::Failure;
use crate::keeper::Keeper;

/// How long a sign, or the end of the VM, may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The least memory of a VM, in MiB.
const LEAST_MIB: u64 = 4;

/// Makes the VM.
pub(super) fn keeper(
    server: &Arc<Vsphere>,
    cluster: &Cluster,
    (label, run): (&str, &RunId),
    deadline: Instant,
) -> Result<Keeper, Failure> {
    let (mut owned, name) = (Owned::new(run, KEEPER), format!("{label}.shared"));
    let (text, host) = (owned.text(), &cluster.hosts[0]);
    let shape = Shape { memory_mib: Some(LEAST_MIB), disk_kib: None };
    let operation = Operation::Create { name: &name, own: owned.own(&text), shape, cluster, host };
    let made = server.perform(&operation, Until::Done, deadline).1.map_err(failure)?;
    let none = || Failure::new(FailureKind::Garbled, "a VM was made and not named");
    let machine = made.ok_or_else(none)?;
    let (signs, removes) = (Arc::clone(server), Arc::clone(server));
    let marked = machine.clone();
    let done = |server: &Vsphere, operation: &Operation<'_>| {
        server.perform(operation, Until::Done, Instant::now() + LIMIT).1.map(drop).map_err(failure)
    };
    let sign = move || {
        owned.sign.seen_s = now_s();
        done(&signs, &Operation::Mark { machine: &marked, text: &owned.text() })
    };
    Keeper::start(sign, move || done(&removes, &Operation::Destroy(&machine)))
}
