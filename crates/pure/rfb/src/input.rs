//! What a user does.

/// A key by its X11 keysym.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u32);

impl Key {
    /// Return.
    pub const RETURN: Self = Self(0xff0d);
    /// Tab.
    pub const TAB: Self = Self(0xff09);
    /// The left shift key.
    pub const SHIFT: Self = Self(0xffe1);
    /// The left control key.
    pub const CONTROL: Self = Self(0xffe3);
    /// The left alt key.
    pub const ALT: Self = Self(0xffe9);

    /// What types a character: Latin-1 as it is, others by their Unicode number.
    #[must_use]
    pub fn of(character: char) -> Self {
        match character {
            '\n' => Self::RETURN,
            '\t' => Self::TAB,
            ' '..='~' | '\u{a0}'..='\u{ff}' => Self(character.into()),
            other => Self(0x0100_0000 | u32::from(other)),
        }
    }
}

/// A button of the pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerButton {
    /// The left one.
    Left,
    /// The one in the middle.
    Middle,
    /// The right one.
    Right,
}

impl PointerButton {
    /// Its bit in a pointer event.
    #[must_use]
    pub fn bit(self) -> u8 {
        match self {
            Self::Left => 1,
            Self::Middle => 2,
            Self::Right => 4,
        }
    }
}
