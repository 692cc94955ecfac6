//! A link between a user and a desktop that is slower than the machine's own.

use std::collections::VecDeque;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What goes at once over a link that has a rate, in bytes: a segment of TCP in an Ethernet frame.
const SEGMENT_BYTES: usize = 1448;
/// What waits on each way at most, in bytes. Whoever sends more has to wait, as for a router that is full.
const MOST_WAITING_BYTES: usize = 256 << 10;
const LONGEST_DELAY_NS: u64 = 10_000_000_000;
const LEAST_RATE: u64 = 8_000;
const SECOND_NS: u128 = 1_000_000_000;

/// What a link adds to each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// How much later everything arrives, in nanoseconds.
    pub delay_ns: u64,
    /// Bits a second at most.
    pub rate: Option<u64>,
}

/// Why a text describes no link.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoLink {
    /// It is not written as links are.
    #[error("{0:?}: write such as delay=50ms,rate=10mbit; units of a rate are bit, kbit, mbit and gbit")]
    Text(String),
    /// It asks for what the users' own process cannot do to a link.
    #[error(
        "loss: the link is made by the users' process, from a stream in which nothing can be lost; to lose packets have a router with \
         netem between this host and existing desktops (vnc://)"
    )]
    Loss,
    /// It can be written, but not be meant.
    #[error("{0}: delay is 10 s at most, rate 8kbit at least, and one of them has to be there")]
    Value(String),
}

impl FromStr for Link {
    type Err = NoLink;

    fn from_str(text: &str) -> Result<Self, NoLink> {
        let unclear = || NoLink::Text(text.to_owned());
        let (mut delay_ns, mut rate) = (None, None);
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(unclear)?;
            match name.trim() {
                "delay" if delay_ns.is_none() => {
                    delay_ns = Some(virtbench_units::parse_duration_ns(value.trim()).map_err(|_| unclear())?);
                }
                "rate" if rate.is_none() => rate = Some(parse_rate(value.trim()).ok_or_else(unclear)?),
                "loss" => return Err(NoLink::Loss),
                _ => return Err(unclear()),
            }
        }
        let link = Self { delay_ns: delay_ns.unwrap_or(0), rate };
        let is_slow = link.delay_ns > 0 || link.rate.is_some();
        if !is_slow || link.delay_ns > LONGEST_DELAY_NS || link.rate.is_some_and(|rate| rate < LEAST_RATE) {
            return Err(NoLink::Value(text.to_owned()));
        }
        Ok(link)
    }
}

/// In bits a second, as tc writes it.
fn parse_rate(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let times = match unit {
        "bit" => 1,
        "kbit" => 1_000,
        "mbit" => 1_000_000,
        "gbit" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(times)
}

/// One way of a link: bytes go in, and come out when they have arrived. Moments are nanoseconds of any clock.
#[derive(Debug)]
pub struct OneWay {
    link: Link,
    /// When the last byte so far has been put onto the link.
    free_at_ns: u64,
    waiting: VecDeque<(u64, Vec<u8>)>,
    waiting_bytes: usize,
}

impl OneWay {
    /// An empty one.
    #[must_use]
    pub fn new(link: Link) -> Self {
        Self { link, free_at_ns: 0, waiting: VecDeque::new(), waiting_bytes: 0 }
    }

    /// How many bytes may go in now.
    #[must_use]
    pub fn room(&self) -> usize {
        MOST_WAITING_BYTES.saturating_sub(self.waiting_bytes)
    }

    /// Bytes go in. They are taken even where there is no room.
    pub fn put(&mut self, bytes: &[u8], now_ns: u64) {
        for segment in bytes.chunks(SEGMENT_BYTES) {
            let begins = self.free_at_ns.max(now_ns);
            let takes = self.link.rate.map_or(0, |rate| {
                let ns = segment.len() as u128 * 8 * SECOND_NS / u128::from(rate.max(1));
                u64::try_from(ns).unwrap_or(u64::MAX)
            });
            self.free_at_ns = begins.saturating_add(takes);
            self.waiting.push_back((self.free_at_ns.saturating_add(self.link.delay_ns), segment.to_vec()));
            self.waiting_bytes += segment.len();
        }
    }

    /// When the next bytes come out.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.waiting.front().map(|(at, _)| *at)
    }

    /// All bytes that have come out by now, in their order.
    pub fn take(&mut self, now_ns: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.next_ns().is_some_and(|at| at <= now_ns)
            && let Some((_, segment)) = self.waiting.pop_front()
        {
            self.waiting_bytes -= segment.len();
            bytes.extend(segment);
        }
        bytes
    }
}
