//! The VMs of a run by their names: what its platform knows of each.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use virtbench_record::FailureKind;

use crate::failure::Failure;

/// What is known of each VM. Threads share it.
#[derive(Debug)]
pub(crate) struct RunVms<T>(Mutex<HashMap<String, T>>);

impl<T> Default for RunVms<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> RunVms<T> {
    fn all(&self) -> MutexGuard<'_, HashMap<String, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a VM.
    ///
    /// # Errors
    /// The run has no such VM.
    pub fn known(&self, vm: &str) -> Result<T, Failure> {
        let none = || Failure::new(FailureKind::Vanished, format!("this run has no VM {vm:?}"));
        self.all().get(vm).cloned().ok_or_else(none)
    }

    /// Changes what is known of a VM, if it is still there.
    pub fn change(&self, vm: &str, change: impl FnOnce(&mut T)) {
        if let Some(known) = self.all().get_mut(vm) {
            change(known);
        }
    }

    /// There is a VM.
    pub fn add(&self, vm: &str, known: T) {
        self.all().insert(vm.to_owned(), known);
    }

    /// A VM is gone.
    pub fn remove(&self, vm: &str) {
        self.all().remove(vm);
    }

    /// All VMs are gone.
    pub fn clear(&self) {
        self.all().clear();
    }
}

/// Whether a VM of a run may have this name.
///
/// # Errors
/// It does not begin with the run's label.
pub(crate) fn check_name(label: &str, name: &str) -> Result<(), Failure> {
    if name.starts_with(label) {
        return Ok(());
    }
    let why = format!("{name:?} does not begin with the run's label");
    Err(Failure::new(FailureKind::Refused, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_a_vm_goes_with_it() {
        let vms = RunVms::default();
        vms.add("a", 1);
        vms.change("a", |known| *known += 1);
        vms.change("b", |known| *known += 1);
        assert_eq!(vms.known("a"), Ok(2));
        vms.remove("a");
        assert_eq!(vms.known("a").unwrap_err().kind, FailureKind::Vanished);
        vms.add("c", 3);
        vms.clear();
        assert!(vms.known("c").is_err());
        assert_eq!(check_name("label", "label-1"), Ok(()));
        assert_eq!(check_name("label", "other").unwrap_err().kind, FailureKind::Refused);
    }
}
