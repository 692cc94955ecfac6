//! What TPC-C draws: numbers, texts and names ([TPC-C 5.11], clauses 2.1.6 and 4.3.2).

use virtbench_units::{Random, SeedSequence};

/// Customers of a district.
pub const CUSTOMERS: u32 = 3_000;
/// Items, and with it stock of a warehouse.
pub const ITEMS: u32 = 100_000;
/// Districts of a warehouse.
pub const DISTRICTS: u32 = 10;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The constants of NURand (clause 2.1.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    /// For last names, 0 to 255.
    pub last_name: u32,
    /// For customers' numbers, 0 to 1023.
    pub customer: u32,
    /// For items' numbers, 0 to 8191.
    pub item: u32,
}

impl Constants {
    /// Those by which a population of `seed` is drawn.
    pub fn of_population(seed: u64) -> Self {
        let mut random = Random::new(SeedSequence::new(seed ^ 0x6e75_7261_6e64).next_seed());
        let mut below = |bound: u64| u32::try_from(random.below(bound)).unwrap_or(0);
        Self { last_name: below(256), customer: below(1024), item: below(8192) }
    }

    /// Those of a load of `seed` on this population: that of last names differs from the population's by 65 to 119, but
    /// not by 96 or 112.
    pub fn of_run(self, seed: u64) -> Self {
        let fitting = |constant: u32| {
            let apart = constant.abs_diff(self.last_name);
            (65..=119).contains(&apart) && apart != 96 && apart != 112
        };
        let candidates: Vec<u32> = (0..256).filter(|constant| fitting(*constant)).collect();
        let mut random = Random::new(SeedSequence::new(seed ^ 0x0072_756e).next_seed());
        let place = usize::try_from(random.below(candidates.len() as u64)).unwrap_or(0);
        Self { last_name: candidates.get(place).copied().unwrap_or(0), ..Self::of_population(seed) }
    }
}

/// A stream of draws that a seed reproduces.
#[derive(Debug, Clone)]
pub struct Draws(Random);

impl Draws {
    /// The stream number `stream` of `seed`: each table of each warehouse, each user has one.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut random = Random::new(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let own = random.next_u64();
        Self(Random::new(own))
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        let span = u64::from(high.saturating_sub(low)) + 1;
        low + u32::try_from(self.0.below(span)).unwrap_or(0)
    }

    /// Whether something happens that happens in so many of a hundred cases.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.between(1, 100) <= percent
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    fn nurand(&mut self, a: u32, (low, high): (u32, u32), constant: u32) -> u32 {
        let drawn = self.between(0, a) | self.between(low, high);
        (drawn + constant) % (high - low + 1) + low
    }

    /// A customer's number, some more often than others.
    pub fn customer(&mut self, constants: Constants) -> u32 {
        self.nurand(1023, (1, CUSTOMERS), constants.customer)
    }

    /// An item's number, some more often than others.
    pub fn item(&mut self, constants: Constants) -> u32 {
        self.nurand(8191, (1, ITEMS), constants.item)
    }

    /// The number of a last name, some more often than others.
    pub fn last_name(&mut self, constants: Constants) -> u32 {
        self.nurand(255, (0, 999), constants.last_name)
    }

    /// Letters and digits: from `low` to `high` of them.
    pub fn letters(&mut self, out: &mut Vec<u8>, low: u32, high: u32) {
        self.characters(out, LETTERS, low, high);
    }

    /// Digits: from `low` to `high` of them.
    pub fn digits(&mut self, out: &mut Vec<u8>, low: u32, high: u32) {
        self.characters(out, b"0123456789", low, high);
    }

    /// Four characters are drawn from one number: their bias is below one in a thousand.
    fn characters(&mut self, out: &mut Vec<u8>, alphabet: &[u8], low: u32, high: u32) {
        let count = if low == high { low } else { self.between(low, high) };
        let mut bits = 0;
        for drawn in 0..count {
            if drawn % 4 == 0 {
                bits = self.0.next_u64();
            }
            let place = ((bits & 0xffff) * alphabet.len() as u64) >> 16;
            out.push(alphabet[usize::try_from(place).unwrap_or(0)]);
            bits >>= 16;
        }
    }

    /// `I_DATA` and `S_DATA`: one in ten contains ORIGINAL.
    pub fn data(&mut self, out: &mut Vec<u8>) {
        let begin = out.len();
        self.letters(out, 26, 50);
        if self.percent(10) {
            let most = u32::try_from(out.len() - begin - 8).unwrap_or(0);
            let place = begin + self.between(0, most) as usize;
            out[place..place + 8].copy_from_slice(b"ORIGINAL");
        }
    }

    /// Changes the order of all.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            let other = self.between(0, u32::try_from(last).unwrap_or(u32::MAX)) as usize;
            all.swap(last, other);
        }
    }
}

/// The last name of a number from 0 to 999 (clause 4.3.2.3).
pub fn last_name(number: u32) -> String {
    let syllable = |place: u32| SYLLABLES[(number / place % 10) as usize];
    [syllable(100), syllable(10), syllable(1)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn last_names_are_three_syllables() {
        assert_eq!((last_name(371).as_str(), last_name(40).as_str()), ("PRICALLYOUGHT", "BARPRESBAR"));
    }

    #[test]
    fn hot_items_are_drawn_more_often_than_evenly() {
        let (mut draws, constants) = (Draws::new(1, 0), Constants::of_population(1));
        let mut counts = vec![0_u32; ITEMS as usize + 1];
        (0..1_000_000).for_each(|_| counts[draws.item(constants) as usize] += 1);
        counts.sort_unstable();
        let hottest: u32 = counts.iter().rev().take(ITEMS as usize / 10).sum();
        // Drawn evenly the tenth that chance favours would have some 16 %.
        assert!(hottest > 300_000, "{hottest}");
        assert_eq!(counts[0], 0, "there is no item 0");
    }

    proptest! {
        #[test]
        fn a_load_s_constant_for_last_names_keeps_the_distance_of_the_specification(population: u64, load: u64) {
            let of_population = Constants::of_population(population);
            let apart = of_population.of_run(load).last_name.abs_diff(of_population.last_name);
            prop_assert!((65..=119).contains(&apart) && apart != 96 && apart != 112, "{}", apart);
        }

        #[test]
        fn draws_stay_in_their_bounds(seed: u64, low in 0_u32..1000, more in 0_u32..1000) {
            let (mut draws, constants) = (Draws::new(seed, 3), Constants::of_population(seed));
            prop_assert!((low..=low + more).contains(&draws.between(low, low + more)));
            prop_assert!((1..=CUSTOMERS).contains(&draws.customer(constants)));
            prop_assert!((1..=ITEMS).contains(&draws.item(constants)));
            prop_assert!(draws.last_name(constants) <= 999);
            let mut text = Vec::new();
            draws.data(&mut text);
            prop_assert!((26..=50).contains(&text.len()) && text.is_ascii());
        }
    }
}
