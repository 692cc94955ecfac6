//! Faults put before a target or a device, to see how failures look: one small file each.
//!
//! `eio=1%,short=0.1%,delay=5ms@1%,stall@0.01%,full=1%` strikes each operation with these probabilities, drawn from a
//! seed. An operation suffers one fault at most: the first in the list that strikes. The executor of the operations
//! carries the verdict out as well.

mod delay;
mod eio;
mod full;
mod short;
mod stall;
mod verdict;

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_units::Random;

pub use verdict::Verdict;

/// A text that names no faults.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("fault {text:?}: {why}; write for example eio=1%,short=0.1%,delay=5ms@1%,stall@0.01%,full=1%")]
pub struct FaultError {
    text: String,
    why: String,
}

/// One kind of fault and how often it strikes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rule {
    /// Share of the 64-bit range in which a draw strikes.
    below: u64,
    always: bool,
    verdict: Verdict,
}

/// Faults and how often they strike. Read from text with [`str::parse`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FaultSpec {
    /// As it was written.
    text: String,
    rules: Vec<Rule>,
}

impl FaultSpec {
    /// What happens to the next operation; nothing, mostly.
    #[inline]
    #[must_use]
    pub fn strike(&self, random: &mut Random) -> Option<Verdict> {
        let strikes = |rule: &&Rule| random.next_u64() < rule.below || rule.always;
        self.rules.iter().find(strikes).map(|rule| rule.verdict)
    }
}

impl FromStr for FaultSpec {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let rules = text.split(',').map(|part| rule(part.trim()));
        rules
            .collect::<Result<_, _>>()
            .map(|rules| Self { text: text.to_owned(), rules })
            .map_err(|why| FaultError { text: text.to_owned(), why })
    }
}

impl TryFrom<String> for FaultSpec {
    type Error = FaultError;

    fn try_from(text: String) -> Result<Self, FaultError> {
        text.parse()
    }
}

impl From<FaultSpec> for String {
    fn from(spec: FaultSpec) -> Self {
        spec.text
    }
}

/// Reads `name=percent` or `name[=argument]@percent`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rule(part: &str) -> Result<Rule, String> {
    let (head, percent) = match part.split_once('@') {
        Some((head, percent)) => (head, Some(percent)),
        None => (part, None),
    };
    let (name, value) = match head.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (head, None),
    };
    // Without @, the value is the percentage.
    let (argument, percent) = if percent.is_some() { (value, percent) } else { (None, value) };
    let verdict = match name {
        "eio" => eio::verdict(argument),
        "short" => short::verdict(argument),
        "delay" => delay::verdict(argument),
        "stall" => stall::verdict(argument),
        "full" => full::verdict(argument),
        other => Err(format!("{other:?} is no fault")),
    }?;
    let percent = percent.ok_or_else(|| format!("{name} lacks a percentage"))?;
    let number: f64 =
        percent.trim_end_matches('%').parse().map_err(|_| format!("{percent:?} is no percentage"))?;
    if !(0.0..=100.0).contains(&number) {
        return Err(format!("{percent} lies outside 0 % to 100 %"));
    }
    let below = (number / 100.0 * 18_446_744_073_709_551_616.0) as u64;
    Ok(Rule { below, always: number >= 100.0, verdict })
}

#[cfg(test)]
mod tests {
    use super::eio::EIO;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn faults_strike_as_often_as_asked() {
        let spec: FaultSpec = "eio=1%, short=0.1%,delay=5ms@10%,stall@0.5".parse().unwrap();
        let mut random = Random::new(3);
        let mut counts = [0u32; 4];
        for _ in 0..200_000 {
            match spec.strike(&mut random) {
                Some(Verdict::Fail(EIO)) => counts[0] += 1,
                Some(Verdict::Halve) => counts[1] += 1,
                Some(Verdict::Delay(5_000_000)) => counts[2] += 1,
                Some(Verdict::Swallow) => counts[3] += 1,
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        }
        for (count, expected) in counts.into_iter().zip([2_000, 198, 19_780, 890]) {
            assert!(count.abs_diff(expected) < expected / 3, "{counts:?}");
        }
    }

    #[test]
    fn extremes_are_exact() {
        let mut random = Random::new(3);
        let all: FaultSpec = "eio=100%".parse().unwrap();
        let none: FaultSpec = "eio=0".parse().unwrap();
        assert!((0..1000).all(|_| all.strike(&mut random).is_some()));
        assert!((0..1000).all(|_| none.strike(&mut random).is_none()));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, word) in [
            ("", "no fault"),
            ("fire=1%", "fire"),
            ("eio", "lacks"),
            ("eio=x", "x"),
            ("eio=101%", "outside"),
            ("eio=nan", "outside"),
            ("eio=5ms@1%", "only a percentage"),
            ("delay=1%", "how long"),
            ("delay@1%", "how long"),
            ("delay=2h@1%", "hour"),
            ("stall=9@1%", "only a percentage"),
            ("full=9@1%", "only a percentage"),
        ] {
            let message = text.parse::<FaultSpec>().unwrap_err().to_string();
            assert!(message.contains(word) && message.contains("fault"), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<FaultSpec>();
        }
    }
}
