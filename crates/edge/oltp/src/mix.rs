//! Which transaction comes next, and how long a user pauses ([TPC-C 5.11], clauses 5.2.4 and 5.2.5).

use virtbench_record::{OltpChoice, OltpKind, OltpMix};

use crate::draws::Draws;

/// Cards that a deck may have.
const MOST_CARDS: u32 = 10_000;

/// Keying time of each transaction, in nanoseconds.
const KEYING_NS: [u64; 5] = [18_000_000_000, 3_000_000_000, 2_000_000_000, 2_000_000_000, 2_000_000_000];
/// Mean think time of each transaction, in nanoseconds.
const THINK_NS: [f64; 5] = [12e9, 12e9, 10e9, 5e9, 5e9];
/// No think time is longer than so many means.
const LONGEST_THINK: f64 = 10.0;
/// What 90 % of response times must not exceed, in nanoseconds.
const LIMIT_NS: [u64; 5] = [5_000_000_000, 5_000_000_000, 5_000_000_000, 5_000_000_000, 20_000_000_000];
/// What 90 % of deferred Deliveries must not exceed, from the queue to the end, in nanoseconds (clause 2.7.2).
pub const DEFERRED_LIMIT_NS: u64 = 80_000_000_000;

/// What 90 % of response times must not exceed, in nanoseconds.
pub fn limit_ns(kind: OltpKind) -> u64 {
    LIMIT_NS[kind.index()]
}

/// Whether a mix can be drawn from.
///
/// # Errors
/// Why not.
pub fn check(mix: OltpMix) -> Result<(), String> {
    let sum: u64 = mix.shares.iter().map(|share| u64::from(*share)).sum();
    match mix.choice {
        _ if sum == 0 => Err("a mix needs a transaction whose share is not zero".into()),
        _ if sum > u64::from(MOST_CARDS) => {
            Err(format!("the shares of a mix add up to {sum}; {MOST_CARDS} at most"))
        }
        OltpChoice::Deck | OltpChoice::Weights => Ok(()),
    }
}

/// The transactions of one user, one after the other.
#[derive(Debug)]
pub struct Choices {
    mix: OltpMix,
    draws: Draws,
    deck: Vec<OltpKind>,
}

impl Choices {
    /// The choices of a user.
    pub fn new(mix: OltpMix, seed: u64, user: u32) -> Self {
        Self { mix, draws: Draws::new(seed, (1 << 40) + u64::from(user)), deck: Vec::new() }
    }

    /// The next transaction.
    pub fn next(&mut self) -> OltpKind {
        match self.mix.choice {
            OltpChoice::Deck => {
                if self.deck.is_empty() {
                    let cards = OltpKind::ALL.into_iter().zip(self.mix.shares);
                    self.deck
                        .extend(cards.flat_map(|(kind, share)| std::iter::repeat_n(kind, share as usize)));
                    self.draws.shuffle(&mut self.deck);
                }
                self.deck.pop().unwrap_or(OltpKind::NewOrder)
            }
            OltpChoice::Weights => {
                let mut drawn = self.draws.between(1, self.mix.shares.iter().sum());
                for (kind, share) in OltpKind::ALL.into_iter().zip(self.mix.shares) {
                    if drawn <= share {
                        return kind;
                    }
                    drawn -= share;
                }
                OltpKind::NewOrder
            }
        }
    }

    /// How long the user keys in what a transaction needs, in nanoseconds, times `factor`.
    pub fn keying_ns(kind: OltpKind, factor: f64) -> u64 {
        scaled(KEYING_NS[kind.index()] as f64, factor)
    }

    /// How long the user thinks after a transaction, in nanoseconds: exponentially distributed, times `factor`.
    pub fn think_ns(&mut self, kind: OltpKind, factor: f64) -> u64 {
        let drawn = -(1.0 - self.draws.unit()).ln();
        scaled(THINK_NS[kind.index()] * drawn.min(LONGEST_THINK), factor)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of at most some days")]
fn scaled(ns: f64, factor: f64) -> u64 {
    (ns * factor).max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(mix: OltpMix, drawn: u32) -> [u32; 5] {
        let (mut choices, mut counts) = (Choices::new(mix, 1, 0), [0; 5]);
        (0..drawn).for_each(|_| counts[choices.next().index()] += 1);
        counts
    }

    #[test]
    fn a_deck_keeps_the_shares_exactly_and_weights_on_average() {
        assert_eq!(counts(OltpMix::default(), 300), [135, 129, 12, 12, 12]);
        let mix = OltpMix { shares: [1, 1, 0, 0, 2], choice: OltpChoice::Weights };
        let found = counts(mix, 40_000);
        assert!(found[2] == 0 && found[3] == 0 && found[4].abs_diff(20_000) < 500, "{found:?}");
        assert_ne!(found[0], 10_000, "drawn by chance, a share is not exact");
    }

    #[test]
    fn think_times_are_exponential_and_bounded() {
        let mut choices = Choices::new(OltpMix::default(), 1, 0);
        let times: Vec<f64> =
            (0..100_000).map(|_| choices.think_ns(OltpKind::Payment, 0.5) as f64 / 1e9).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((mean - 6.0).abs() < 0.1, "{mean}");
        assert!(times.iter().all(|time| *time <= 60.0) && times.iter().any(|time| *time > 40.0));
        assert_eq!(Choices::keying_ns(OltpKind::NewOrder, 0.1), 1_800_000_000);
    }

    #[test]
    fn mixes_of_nothing_and_of_too_much_are_refused() {
        let mix = |shares| OltpMix { shares, choice: OltpChoice::Deck };
        assert!(check(mix([0; 5])).is_err() && check(mix([u32::MAX; 5])).is_err());
        assert!(check(OltpMix::default()).is_ok());
    }

    proptest! {
        #[test]
        fn only_what_has_a_share_is_drawn(shares: [u8; 5], by_deck: bool) {
            let choice = if by_deck { OltpChoice::Deck } else { OltpChoice::Weights };
            let mix = OltpMix { shares: shares.map(u32::from), choice };
            prop_assume!(check(mix).is_ok());
            let found = counts(mix, 500);
            prop_assert!(found.iter().zip(shares).all(|(count, share)| *count == 0 || share > 0));
        }
    }
}
