//! Numbers of VMs: free ones are found by trying.

use std::sync::atomic::{AtomicU32, Ordering};

use virtbench_proxmox::{FaultKind, ProxmoxError};

/// The largest number of a VM.
const LARGEST: u32 = 999_999_999;
/// How many numbers are tried for one VM: others may take those that were free.
const TRIES: u32 = 50;

/// The next number that may be free.
#[derive(Debug)]
pub(super) struct Numbers(AtomicU32);

impl Numbers {
    /// Numbers from this one on.
    pub(super) fn from(first: u32) -> Self {
        Self(AtomicU32::new(first))
    }

    /// Makes something with the first number that nobody has, and gives that number.
    pub(super) fn take(
        &self,
        mut make: impl FnMut(u32) -> Result<(), ProxmoxError>,
    ) -> (u32, Result<(), ProxmoxError>) {
        let mut tries = 0;
        loop {
            let number = self.0.fetch_add(1, Ordering::Relaxed).min(LARGEST);
            let made = make(number);
            tries += 1;
            let is_taken = made.as_ref().is_err_and(|error| error.fault() == Some(FaultKind::AlreadyExists));
            if !is_taken || tries == TRIES {
                return (number, made);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use virtbench_proxmox::Fault;

    use super::*;

    #[test]
    fn numbers_that_others_have_are_passed_over_and_other_failures_are_not() {
        let fault = |words: &str| ProxmoxError::Fault { what: "x".into(), fault: Fault::new(500, words) };
        let numbers = Numbers::from(100);
        let others = |number| if number < 103 { Err(fault("VM 1 already exists")) } else { Ok(()) };
        assert_eq!(numbers.take(others), (103, Ok(())));
        let full = |_| Err(fault("No space left on device"));
        assert_eq!(numbers.take(full).0, 104);
        assert_eq!(numbers.take(|_| Err(fault("already exists"))).0, 104 + TRIES);
    }
}
