//! A VM that is never started and says now and then that its run lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_lab::{BEAT, Beat, now_s};
use virtbench_mark::RunId;
use virtbench_record::FailureKind;
use virtbench_vsphere::{Cluster, Operation, Reference, Shape, Until, Vsphere};

use super::done::failure;
use super::owned::{KEEPER, Owned};
use crate::failure::Failure;

/// How long a sign, or the end of the VM, may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The least memory of a VM, in MiB.
const LEAST_MIB: u64 = 4;

/// The VM, until this is dropped.
pub(super) struct Keeper {
    server: Arc<Vsphere>,
    machine: Reference,
    beat: Option<Beat>,
}

impl Keeper {
    /// Makes the VM.
    pub(super) fn make(
        server: &Arc<Vsphere>,
        cluster: &Cluster,
        (label, run): (&str, &RunId),
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let (mut owned, name) = (Owned::new(run, KEEPER), format!("{label}.shared"));
        let (text, host) = (owned.text(), &cluster.hosts[0]);
        let shape = Shape { memory_mib: Some(LEAST_MIB), disk_kib: None };
        let operation = Operation::Create { name: &name, own: owned.own(&text), shape, cluster, host };
        let made = server.perform(&operation, Until::Done, deadline).1.map_err(failure)?;
        let none = || Failure::new(FailureKind::Garbled, "a VM was made and not named");
        let machine = made.ok_or_else(none)?;
        let (its, marked) = (Arc::clone(server), machine.clone());
        let beat = Beat::every(BEAT, move || {
            owned.sign.seen_s = now_s();
            let sign = Operation::Mark { machine: &marked, text: &owned.text() };
            if let Err(error) = its.perform(&sign, Until::Done, Instant::now() + LIMIT).1 {
                tracing::debug!(%error, "no sign of life could be given");
            }
        });
        let no_thread = |error: std::io::Error| Failure::new(FailureKind::Refused, error.to_string());
        Ok(Self { server: Arc::clone(server), machine, beat: Some(beat.map_err(no_thread)?) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It has ended before its VM goes.
        drop(self.beat.take());
        let destroy = Operation::Destroy(&self.machine);
        if let Err(error) = self.server.perform(&destroy, Until::Done, Instant::now() + LIMIT).1 {
            tracing::warn!(%error, "a VM that is never started is left for the next run to remove");
        }
    }
}
