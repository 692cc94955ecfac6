//! The marker: cells in a corner of the picture that tell what an operation is at. Their 64 bits are phase, operation, sequence,
//! revision and a CRC-32 of them; another checksum is unreadable.

use crate::cells::{Unreadable, level_of, read_cells};

/// Sequences and revisions that a marker can tell: ten bits each.
const NUMBERS: u16 = 1 << 10;

/// What an operation is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing goes on.
    Idle,
    /// It has begun.
    Begun,
    /// It is over.
    Ended,
    /// It is given up.
    Failed,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Idle, Self::Begun, Self::Ended, Self::Failed];

    fn number(self) -> u32 {
        match self {
            Self::Idle => 3,
            Self::Begun => 5,
            Self::Ended => 10,
            Self::Failed => 12,
        }
    }
}

/// What the marker tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// The operation's number in the run, below 1024; after the last one it begins anew.
    pub sequence: u16,
    /// The operation's number in the day.
    pub operation: u8,
    /// What it is at.
    pub phase: Phase,
    /// How often its end was taken back because something was drawn after it, up to 1023.
    pub revision: u16,
}

impl Marker {
    /// The last revision of an end.
    pub const LAST_REVISION: u16 = NUMBERS - 1;

    /// The sequence that follows.
    #[must_use]
    pub fn sequence_after(sequence: u16) -> u16 {
        sequence.wrapping_add(1) % NUMBERS
    }

    fn bits(self) -> u64 {
        let word = self.phase.number() << 28
            | u32::from(self.operation) << 20
            | u32::from(self.sequence % NUMBERS) << 10
            | u32::from(self.revision % NUMBERS);
        u64::from(word) << 32 | u64::from(crc32fast::hash(&word.to_be_bytes()))
    }

    fn from_bits(bits: u64) -> Option<Self> {
        let [word @ .., _, _, _, _] = bits.to_be_bytes();
        if u64::from(crc32fast::hash(&word)) != bits & u64::from(u32::MAX) {
            return None;
        }
        let word = u32::from_be_bytes(word);
        let number = |shift: u32| u16::try_from(word >> shift & u32::from(NUMBERS - 1)).ok();
        let phase = Phase::ALL.into_iter().find(|phase| phase.number() == word >> 28)?;
        let operation = u8::try_from(word >> 20 & 0xff).ok()?;
        Some(Self { sequence: number(10)?, operation, phase, revision: number(0)? })
    }
}

/// The shade of a pixel of the marker, `x` and `y` from its upper left corner: all three colours have it.
#[must_use]
pub fn level(marker: Marker, x: u16, y: u16) -> u8 {
    level_of(marker.bits(), x, y)
}

/// Reads the marker; `luminance` is asked for pixels from the marker's upper left corner, and answers from 0 to 255.
///
/// # Errors
/// There is none that can be read without guessing.
pub fn read_marker(luminance: impl Fn(u16, u16) -> u8) -> Result<Marker, Unreadable> {
    Marker::from_bits(read_cells(luminance)?).ok_or(Unreadable::Checksum)
}
