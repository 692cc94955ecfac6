//! A link between a user and a desktop that is slower than the machine's own.

use std::collections::VecDeque;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_units::Random;

/// What goes at once over a link that has a rate, in bytes: a segment of TCP in an Ethernet frame.
const SEGMENT_BYTES: usize = 1448;
/// What waits on each way at most, in bytes. A sender of more has to wait, as for a router that is full.
const MOST_WAITING_BYTES: usize = 256 << 10;
const LONGEST_DELAY_NS: u64 = 10_000_000_000;
const LEAST_RATE: u64 = 8_000;
const SECOND_NS: u128 = 1_000_000_000;
const MILLION: f64 = 1e6;
/// Half of all segments, in millionths. With more a connection stands still.
const MOST_LOSS_PPM: u32 = 500_000;
/// Segments behind a lost one by which its sender knows at once that it was lost (RFC 5681, section 3.2).
const KNOWN_BY: usize = 3;
/// How long a receiver may keep an acknowledgement of a single segment back (RFC 8985, section 7.2).
const LATE_ACKNOWLEDGEMENT_NS: u64 = 200_000_000;
/// The shortest time after which a retransmission that was lost too is repeated: Linux's, below the second of RFC 6298.
const LEAST_TIMEOUT_NS: u64 = 200_000_000;
/// How often one segment can be lost: then its connection would be given up.
const MOST_LOST: u32 = 15;

/// What a link adds to each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// How much later everything arrives, in nanoseconds.
    pub delay_ns: u64,
    /// Bits a second at most.
    pub rate: Option<u64>,
    /// How many of a million segments are lost, and come later because they are sent again.
    pub loss_ppm: u32,
}

/// Why a text describes no link.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoLink {
    /// It is not written as links are.
    #[error(
        "{0:?}: write such as delay=50ms,rate=10mbit,loss=0.5%; units of a rate are bit, kbit, mbit and gbit"
    )]
    Text(String),
    /// It can be written, but not be meant.
    #[error(
        "{0}: delay is 10 s at most, rate 8kbit at least, loss 50% at most, and one of them has to be there"
    )]
    Value(String),
}

impl FromStr for Link {
    type Err = NoLink;

    fn from_str(text: &str) -> Result<Self, NoLink> {
        let unclear = || NoLink::Text(text.to_owned());
        let (mut delay_ns, mut rate, mut loss_ppm) = (None, None, None);
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(unclear)?;
            match name.trim() {
                "delay" if delay_ns.is_none() => {
                    delay_ns = Some(virtbench_units::parse_duration_ns(value.trim()).map_err(|_| unclear())?);
                }
                "rate" if rate.is_none() => rate = Some(parse_rate(value.trim()).ok_or_else(unclear)?),
                "loss" if loss_ppm.is_none() => {
                    loss_ppm = Some(parse_loss(value.trim()).ok_or_else(unclear)?)
                }
                _ => return Err(unclear()),
            }
        }
        let link = Self { delay_ns: delay_ns.unwrap_or(0), rate, loss_ppm: loss_ppm.unwrap_or(0) };
        let is_slow = link.delay_ns > 0 || link.rate.is_some() || link.loss_ppm > 0;
        let is_too_much = link.delay_ns > LONGEST_DELAY_NS || link.loss_ppm > MOST_LOSS_PPM;
        if !is_slow || is_too_much || link.rate.is_some_and(|rate| rate < LEAST_RATE) {
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

/// In millionths, of a percentage as tc writes it.
fn parse_loss(text: &str) -> Option<u32> {
    let percent: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    let ppm = percent * MILLION / 100.0;
    // The range is checked before, so that nothing is cut off.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0.0..=MILLION).contains(&ppm).then(|| ppm.round() as u32)
}

/// One way of a link: bytes go in, and come out when they have arrived. Moments are nanoseconds of any clock.
///
/// A segment that is lost comes later, as TCP brings it: one round trip later where three segments behind it told the sender,
/// after a probe of two round trips where fewer did (RFC 8985, section 7.2), and after a timeout that doubles for each time that it is
/// lost again (RFC 6298). What was sent behind it waits for it. That a sender slows down after a loss is not part of this.
#[derive(Debug)]
pub struct OneWay {
    link: Link,
    /// When the last byte so far has been put onto the link.
    free_at_ns: u64,
    waiting: VecDeque<(u64, Vec<u8>)>,
    waiting_bytes: usize,
    /// When the last segment so far comes out; none behind it does earlier.
    last_out_ns: u64,
    random: Random,
}

impl OneWay {
    /// An empty one. The seed says which segments are lost.
    #[must_use]
    pub fn new(link: Link, seed: u64) -> Self {
        let random = Random::new(seed);
        Self { link, free_at_ns: 0, waiting: VecDeque::new(), waiting_bytes: 0, last_out_ns: 0, random }
    }

    /// How many bytes may go in now.
    #[must_use]
    pub fn room(&self) -> usize {
        MOST_WAITING_BYTES.saturating_sub(self.waiting_bytes)
    }

    /// Bytes go in. They are taken even where there is no room.
    pub fn put(&mut self, bytes: &[u8], now_ns: u64) {
        let segments = bytes.chunks(SEGMENT_BYTES);
        let mut behind = segments.len();
        for segment in segments {
            behind -= 1;
            let begins = self.free_at_ns.max(now_ns);
            let takes = self.link.rate.map_or(0, |rate| {
                let ns = segment.len() as u128 * 8 * SECOND_NS / u128::from(rate.max(1));
                u64::try_from(ns).unwrap_or(u64::MAX)
            });
            self.free_at_ns = begins.saturating_add(takes);
            let arrives =
                self.free_at_ns.saturating_add(self.link.delay_ns).saturating_add(self.sent_again_ns(behind));
            self.last_out_ns = self.last_out_ns.max(arrives);
            self.waiting.push_back((self.last_out_ns, segment.to_vec()));
            self.waiting_bytes += segment.len();
        }
    }

    /// How much later a segment comes because it is lost, with so many behind it; mostly not at all.
    fn sent_again_ns(&mut self, behind: usize) -> u64 {
        if self.link.loss_ppm == 0 {
            return 0;
        }
        let share = f64::from(self.link.loss_ppm) / MILLION;
        let round_trip = self.link.delay_ns.saturating_mul(2);
        let (mut later, mut lost) = (0_u64, 0);
        while lost < MOST_LOST && self.random.unit() < share {
            let known_after = match (lost, behind) {
                (0, KNOWN_BY..) => round_trip,
                (0, 1..) => round_trip.saturating_mul(2),
                (0, 0) => round_trip.saturating_mul(2).saturating_add(LATE_ACKNOWLEDGEMENT_NS),
                _ => LEAST_TIMEOUT_NS.max(round_trip).saturating_mul(1 << lost.min(6)),
            };
            later = later.saturating_add(known_after);
            lost += 1;
        }
        later
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
