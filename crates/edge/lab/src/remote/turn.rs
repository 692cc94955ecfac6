//! Logins that wait for each other: an ssh server drops connections when too many log in at once.

use std::sync::{Condvar, Mutex, PoisonError};

/// How many of this process are in flight at once. sshd drops some beyond ten by itself (`MaxStartups 10:30:100` in
/// sshd_config(5)).
const AT_ONCE: usize = 8;

static FREE: Mutex<usize> = Mutex::new(AT_ONCE);
static FREED: Condvar = Condvar::new();

/// A login's turn, which ends with this value.
#[derive(Debug)]
pub(super) struct Turn(());

impl Turn {
    /// Waits for one. Each login has a limit, so this ends too.
    pub(super) fn wait() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = FREED.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        FREED.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn so_many_log_in_at_once_and_all_have_their_turn() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..5 * AT_ONCE {
                scope.spawn(|| {
                    let _turn = Turn::wait();
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!((1..=AT_ONCE).contains(&most.into_inner()) && now.into_inner() == 0);
    }
}
