//! A sign of life: where and when something was made, and when its run was last heard of. Names of what is made, which no two runs share.
//!
//! A run whose process cannot be looked for, on another machine or in another container, is known to live by what it writes now and then.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

use rustix::system::uname;
use virtbench_mark::{Mark, Owner, RunId};

/// How often a run that has made something gives a sign.
pub const BEAT: Duration = Duration::from_secs(60);

/// How long nothing is heard of a run until it is thought dead. Clocks of machines differ.
pub const SILENT: Duration = Duration::from_secs(600);

/// Where and when something was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign {
    /// The name of the machine that made it; empty where that is not known.
    pub host: String,
    /// When, in seconds since 1970.
    pub made_s: u64,
    /// When its run last gave a sign here.
    pub seen_s: u64,
}

impl Sign {
    /// Of what this process makes now.
    #[must_use]
    pub fn now() -> Self {
        let host = uname().nodename().to_string_lossy().into_owned();
        Self { host, made_s: now_s(), seen_s: now_s() }
    }

    /// Reads it by the names of its attributes; what is missing is as old as can be.
    #[must_use]
    pub fn read<'a>(attribute: impl Fn(&str) -> Option<&'a str>) -> Self {
        let seconds = |name: &str| attribute(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        let host = attribute("host").unwrap_or_default().to_owned();
        Self { host, made_s: seconds("made_s"), seen_s: seconds("seen_s") }
    }

    /// Its attributes, by their names.
    #[must_use]
    pub fn attributes(&self) -> [(&'static str, String); 3] {
        let Self { host, made_s, seen_s } = self;
        [("host", host.clone()), ("made_s", made_s.to_string()), ("seen_s", seen_s.to_string())]
    }
}

/// Seconds since 1970, by the clock of this machine.
#[must_use]
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Whether a run still needs what it has made, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It lives, or may.
    Lives(String),
    /// It is thought dead.
    Dead(String),
}

impl Standing {
    /// Of the run with this mark, which was last heard of then. `guest_runs`: a guest of its runs that ends with its connection.
    #[must_use]
    pub fn of(mark: &Mark, seen_s: u64, guest_runs: bool, now_s: u64) -> Self {
        let silent_s = now_s.saturating_sub(seen_s);
        match mark.owner() {
            Owner::Own => Self::Lives("it is this process".into()),
            Owner::Lives => Self::Lives("its process runs on this machine".into()),
            Owner::Gone => Self::Dead("its process on this machine has ended".into()),
            Owner::Elsewhere if guest_runs => {
                Self::Lives("a guest of its runs, which would end with its connection".into())
            }
            Owner::Elsewhere if silent_s < SILENT.as_secs() => {
                Self::Lives(format!("it gave a sign of life {silent_s} s ago"))
            }
            Owner::Elsewhere => Self::Dead(format!(
                "it has given no sign of life for {} min, and gives one every minute",
                silent_s / 60
            )),
        }
    }

    /// Whether it is thought dead.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self, Self::Dead(_))
    }

    /// How that is known.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Lives(why) | Self::Dead(why) => why,
        }
    }
}

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

/// How every name of ours begins.
const PREFIX: &str = "virtbench";

/// The volumes of a guest, as the ends of their names; where there are several of a kind, with a number.
pub(super) const KERNEL: &str = "kernel";

pub(super) const INITRAMFS: &str = "initramfs";

pub(super) const DISK: &str = "disk";

/// How names begin of what belongs together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// A label that nothing has had before.
    #[allow(clippy::new_without_default, reason = "each is another one")]
    #[must_use]
    pub fn new() -> Self {
        Self(format!("{PREFIX}-{}", RunId::new_random()))
    }

    /// The volume's name for this purpose.
    pub(super) fn volume(&self, purpose: &str) -> String {
        format!("{self}-{purpose}")
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use virtbench_mark::RunId;

    use super::*;

    #[test]
    fn a_run_elsewhere_lives_by_its_signs_and_one_here_by_its_process() {
        let mark = Mark::new(RunId::new_random(), "vm");
        assert!(!Standing::of(&mark, 0, false, 1_000_000).is_dead(), "this process");
        let text = mark.to_string();
        let at = text.find("machine=").unwrap() + 8;
        let elsewhere =
            Mark::parse(&format!("{}{}{}", &text[..at], "0".repeat(10), &text[at + 10..])).unwrap();
        let standing = |seen_s, guest_runs| Standing::of(&elsewhere, seen_s, guest_runs, 10_000);
        assert!(!standing(9_990, false).is_dead() && standing(9_990, false).why().contains("10 s ago"));
        assert!(standing(9_000, false).is_dead(), "{:?}", standing(9_000, false));
        assert!(!standing(9_000, true).is_dead());
        // A clock that is ahead.
        assert!(!standing(11_000, false).is_dead());
    }

    #[test]
    fn a_sign_is_read_again() {
        let sign = Sign::now();
        let attributes = sign.attributes();
        let read = Sign::read(|name| {
            attributes.iter().find(|(other, _)| *other == name).map(|(_, value)| value.as_str())
        });
        assert_eq!(read, sign);
        assert_eq!(Sign::read(|_| None).seen_s, 0);
    }

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

    #[test]
    fn no_two_labels_are_the_same() {
        let (one, two) = (Label::new(), Label::new());
        assert_ne!(one, two);
        assert_eq!(one.volume("disk"), format!("{one}-disk"));
    }
}
