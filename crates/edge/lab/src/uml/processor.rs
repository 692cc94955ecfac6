//! The processor of this host that a guest is held to: on two, each crossing into its kernel would cost several times more.

use std::sync::atomic::{AtomicUsize, Ordering};

use virtbench_agent::enclosure::usable_processors;

/// Guests that were told of no processor.
static UNHELD: AtomicUsize = AtomicUsize::new(0);

/// The first that a guest is to be held to, else each of those that this process may use in turn, the last first: interrupts are
/// handled by the first.
#[must_use]
pub fn uml_processor(held_to: &[usize]) -> usize {
    let in_turn = || {
        let usable = usable_processors().unwrap_or_default();
        let turn = UNHELD.fetch_add(1, Ordering::Relaxed).checked_rem(usable.len())?;
        usable.iter().rev().nth(turn).copied()
    };
    held_to.first().copied().or_else(in_turn).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_that_are_held_to_no_processor_take_turns() {
        let usable = usable_processors().unwrap();
        let mut taken: Vec<usize> = usable.iter().map(|_| uml_processor(&[])).collect();
        taken.sort_unstable();
        assert_eq!((taken, uml_processor(&[7, 8])), (usable, 7));
    }
}
