//! The marker: cells in a corner of the picture that tell what an operation is at. Their 64 bits are version, phase, operation,
//! sequence and a CRC-32 of them; another checksum is unreadable.

use crate::cells::{Unreadable, level_of, read_cells};

const VERSION: u32 = 5;

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
    /// The operation's number in the run; after the last one it begins anew.
    pub sequence: u16,
    /// The operation's number in the day.
    pub operation: u8,
    /// What it is at.
    pub phase: Phase,
}

impl Marker {
    fn bits(self) -> u64 {
        let word = VERSION << 28
            | self.phase.number() << 24
            | u32::from(self.operation) << 16
            | u32::from(self.sequence);
        u64::from(word) << 32 | u64::from(crc32fast::hash(&word.to_be_bytes()))
    }

    fn from_bits(bits: u64) -> Option<Self> {
        let bytes = bits.to_be_bytes();
        let [first, operation, high, low, check @ ..] = bytes;
        if crc32fast::hash(&bytes[..4]) != u32::from_be_bytes(check) || u32::from(first >> 4) != VERSION {
            return None;
        }
        let phase = Phase::ALL.into_iter().find(|phase| phase.number() == u32::from(first & 15))?;
        Some(Self { sequence: u16::from_be_bytes([high, low]), operation, phase })
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
