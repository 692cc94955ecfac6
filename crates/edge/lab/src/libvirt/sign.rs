//! A sign of life: where and when something was made, and when its run was last heard of.
//!
//! A run whose process cannot be looked for, on another machine or in another container, is known to live by what it writes now and then.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::system::uname;
use virtbench_mark::{Mark, Owner};

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

#[cfg(test)]
mod tests {
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
}
