//! Why a transaction costs more on one side: cycles are cycles an instruction times instructions ([Platform 2014],
//! section IV.A.1).

/// How far CPI x path length may be from the cycles before it is said, as a share. Published figures have three digits, and
/// counters that take turns on a processor are extrapolated.
const TOLERANCE: f64 = 0.01;

/// Three figures of one side that cannot all be right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CycleMismatch {
    /// Cycles a transaction, as counted.
    pub cycles: f64,
    /// Cycles an instruction times instructions a transaction.
    pub product: f64,
}

impl CycleMismatch {
    /// What is wrong with these figures: cycles a transaction, cycles an instruction, instructions a transaction.
    pub(crate) fn find(cycles: f64, cpi: f64, instructions: f64) -> Option<Self> {
        let product = cpi * instructions;
        ((product / cycles - 1.0).abs() > TOLERANCE).then_some(Self { cycles, product })
    }

    /// How far the product is off, in percent of the cycles; below zero where it is less.
    #[must_use]
    pub fn off_percent(&self) -> f64 {
        100.0 * (self.product / self.cycles - 1.0)
    }
}

/// How many times the reference's cycles a transaction takes, and the two factors of that.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Cycles a transaction, as a ratio to the reference.
    pub cycles: f64,
    /// Cycles an instruction, likewise.
    pub cycles_per_instruction: f64,
    /// Instructions a transaction, likewise.
    pub instructions: f64,
}

impl Growth {
    /// The part of the growth that is slower instructions, in percent; the rest is more of them. Parts of a product are
    /// those of its logarithm. `None` where the cycles are the same.
    #[must_use]
    pub fn slower_percent(&self) -> Option<f64> {
        let all = self.cycles_per_instruction.ln() + self.instructions.ln();
        (all.abs() > f64::EPSILON).then(|| 100.0 * self.cycles_per_instruction.ln() / all)
    }
}
