//! A thread that does something now and then, until its value goes.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

type Ends = (Mutex<bool>, Condvar);

/// The thread. Dropping it ends it, once what it is doing is done.
#[derive(Debug)]
pub struct Beat {
    ends: Arc<Ends>,
    thread: Option<JoinHandle<()>>,
}

impl Beat {
    /// Does it each time that so much has gone by.
    ///
    /// # Errors
    /// No thread is left.
    pub fn every(length: Duration, mut what: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let ends: Arc<Ends> = Arc::default();
        let told = Arc::clone(&ends);
        let thread = thread::Builder::new().name("sign-of-life".into()).spawn(move || {
            while !ended(&told, length) {
                what();
            }
        })?;
        Ok(Self { ends, thread: Some(thread) })
    }
}

/// Waits for so long, or until it is to end.
fn ended((ends, changed): &Ends, length: Duration) -> bool {
    let waiting = ends.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = changed.wait_timeout_while(waiting, length, |ends| !*ends);
    *waited.unwrap_or_else(PoisonError::into_inner).0
}

impl Drop for Beat {
    fn drop(&mut self) {
        *self.ends.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ends.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn it_is_done_again_and_again_until_its_value_goes() {
        let (sender, receiver) = mpsc::channel();
        let beat = Beat::every(Duration::from_millis(1), move || _ = sender.send(())).unwrap();
        assert!((0..3).all(|_| receiver.recv_timeout(Duration::from_secs(20)).is_ok()));
        drop(beat);
        assert!(receiver.iter().count() < 100_000, "the thread has ended, and its sender with it");
        // One that sleeps for long ends at once.
        drop(Beat::every(Duration::from_secs(3600), || ()).unwrap());
    }
}
