//! What became of operations that nobody was told the end of.

use std::sync::{MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use roxmltree::Node;
use virtbench_https::Limit;

use crate::client::{OperationTimes, Vsphere};
use crate::error::{FaultKind, VsphereError};
use crate::inventory::Machine;
use crate::operation::Operation;
use crate::outage::through_outages;
use crate::properties::{self, PropertySet};
use crate::reply;
use crate::reply::Reference;

/// How long a server that is back may take to show what it has done.
const SETTLE: Duration = Duration::from_secs(3);
/// How soon it is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Tasks of a VM that are open, or were over a short while ago.
const RECENT: PropertySet = PropertySet { kind: "VirtualMachine", paths: &["recentTask"] };

impl Vsphere {
    pub(crate) fn unfinished(&self) -> MutexGuard<'_, Vec<Reference>> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for tasks that nobody waits for any more: what they make is there afterwards, or never comes. How many are still open.
    pub fn settle(&self, until: Instant) -> usize {
        let tasks = std::mem::take(&mut *self.unfinished());
        let open = |task: &Reference| {
            let ended = self.tracker.end("a task", task, Limit::at(until));
            ended.is_err_and(|error| error.is_connection())
        };
        let still: Vec<Reference> = tasks.into_iter().filter(open).collect();
        let count = still.len();
        self.unfinished().extend(still);
        count
    }

    /// What became of an operation whose call was cut off: once the server is there again, its effect is looked for.
    pub(crate) fn found_out(
        &self,
        operation: &Operation<'_>,
        error: VsphereError,
        limit: Limit,
        course: &mut OperationTimes,
    ) -> Result<Option<Reference>, VsphereError> {
        let begun = Instant::now();
        let mut until = None;
        let found = loop {
            let looked = through_outages(limit, || self.looked_for(operation, limit));
            let until = *until.get_or_insert_with(|| Instant::now() + SETTLE);
            match looked {
                Ok((None, ..)) if Instant::now() < until && limit.left() > LOOK_AGAIN => {
                    thread::sleep(LOOK_AGAIN)
                }
                looked => break looked,
            }
        };
        course.retries += 1;
        course.accepted += begun.elapsed();
        match found {
            Ok((Some(made), ..)) => {
                (course.was_accepted, course.was_over) = (true, true);
                Ok(made)
            }
            Ok((None, ..)) | Err(_) => Err(error),
        }
    }

    /// Whether an operation's effect is there, with what it made; a task of its that is still open is waited for.
    #[allow(clippy::option_option, reason = "nothing made is not nothing seen")]
    fn looked_for(
        &self,
        operation: &Operation<'_>,
        limit: Limit,
    ) -> Result<Option<Option<Reference>>, VsphereError> {
        let object = operation.this();
        if object.kind() == "VirtualMachine" {
            let read = |node: Node<'_, '_>| {
                let Some((_, tasks)) = properties::values(node).next() else { return Ok(Vec::new()) };
                reply::children(tasks, "ManagedObjectReference").map(reply::reference).collect()
            };
            match properties::of_one(&self.session, object, RECENT, limit, read) {
                Ok(found) => {
                    for task in found.value.into_iter().flatten() {
                        let _ = self.tracker.end(operation.method(), &task, limit);
                    }
                }
                Err(error) if error.fault() == Some(FaultKind::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        if let Operation::Create { own, .. } | Operation::Clone { own, .. } = operation {
            let inventory = self.timed_inventory_at(limit)?.0;
            let is_it = |machine: &Machine| {
                machine.label.as_deref() == Some(own.text) && machine.uuid.as_deref() == Some(own.uuid)
            };
            let found = inventory.iter().find(|(_, machine)| is_it(machine));
            return Ok(found.map(|(machine, _)| Some(machine.clone())));
        }
        let Some((machine, effect)) = operation.shown_by(None).zip(operation.effect(None)) else {
            return Ok(None);
        };
        let shows = |object: Node<'_, '_>| Ok(effect.shows(Some(object)));
        let shown = match properties::of_one(&self.session, machine, effect.wanted(), limit, shows) {
            Ok(answer) => answer.value.unwrap_or_else(|| effect.shows(None)),
            Err(error) if error.fault() == Some(FaultKind::NotFound) => effect.shows(None),
            Err(error) => return Err(error),
        };
        Ok(shown.then_some(None))
    }
}
