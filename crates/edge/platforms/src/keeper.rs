//! What says on a platform, now and then, that a run lives: a VM that is never started.

use std::fmt;

use virtbench_lab::{BEAT, Beat};
use virtbench_record::FailureKind;

use crate::platform::Failure;

/// Such a VM, until this is dropped.
pub(crate) struct Keeper {
    beat: Option<Beat>,
    remove: Box<dyn Fn() -> Result<(), Failure> + Send + Sync>,
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keeper")
    }
}

impl Keeper {
    /// Has `sign` write every minute that the run lives, and `remove` remove the VM in the end.
    ///
    /// # Errors
    /// No thread is left. The VM stays: it is not this value's yet.
    pub fn start(
        mut sign: impl FnMut() -> Result<(), Failure> + Send + 'static,
        remove: impl Fn() -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let beat = Beat::every(BEAT, move || {
            if let Err(error) = sign() {
                tracing::debug!(%error, "no sign of life could be given");
            }
        });
        let no_thread = |error: std::io::Error| Failure::new(FailureKind::Refused, error.to_string());
        Ok(Self { beat: Some(beat.map_err(no_thread)?), remove: Box::new(remove) })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It has ended before its VM goes.
        drop(self.beat.take());
        if let Err(error) = (self.remove)() {
            tracing::warn!(%error, "a VM that is never started is left for the next run to remove");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn its_vm_goes_once_with_its_value() {
        let removed = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&removed);
        let keeper = Keeper::start(
            || Ok(()),
            move || {
                counted.fetch_add(1, Ordering::Relaxed);
                Err(Failure::new(FailureKind::Busy, "still locked"))
            },
        );
        drop(keeper.unwrap());
        assert_eq!(removed.load(Ordering::Relaxed), 1);
    }
}
