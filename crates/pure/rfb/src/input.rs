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

/// Keys that are held, and the one that is pressed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chord {
    /// Held from before to after.
    pub held: Vec<Key>,
    /// Pressed and let go.
    pub key: Key,
}

/// Names of keys and their keysyms (X11's `keysymdef.h`).
const NAMES: [(&str, u32); 15] = [
    ("return", 0xff0d),
    ("enter", 0xff0d),
    ("escape", 0xff1b),
    ("tab", 0xff09),
    ("backspace", 0xff08),
    ("delete", 0xffff),
    ("home", 0xff50),
    ("left", 0xff51),
    ("up", 0xff52),
    ("right", 0xff53),
    ("down", 0xff54),
    ("pageup", 0xff55),
    ("pagedown", 0xff56),
    ("end", 0xff57),
    ("space", 0x20),
];

const F1: u32 = 0xffbe;

const FUNCTION_KEYS: u32 = 12;

/// Reads `ctrl+s` and the like.
///
/// # Errors
/// A key that is not known, with those that are.
pub fn parse_chord(text: &str) -> Result<Chord, String> {
    let mut parts: Vec<&str> = text.split('+').collect();
    let last = parts.pop().unwrap_or_default();
    let held = parts.into_iter().map(|part| match part.to_ascii_lowercase().as_str() {
        "ctrl" => Ok(Key::CONTROL),
        "alt" => Ok(Key::ALT),
        "shift" => Ok(Key::SHIFT),
        _ => Err(format!("{part:?} in {text:?}: held keys are ctrl, alt and shift")),
    });
    Ok(Chord { held: held.collect::<Result<_, _>>()?, key: named(last, text)? })
}

fn named(name: &str, text: &str) -> Result<Key, String> {
    let lower = name.to_ascii_lowercase();
    let mut characters = name.chars();
    if let (Some(one), None) = (characters.next(), characters.next()) {
        return Ok(Key::of(one));
    }
    let number = lower.strip_prefix('f').and_then(|number| number.parse::<u32>().ok());
    if let Some(number) = number.filter(|number| (1..=FUNCTION_KEYS).contains(number)) {
        return Ok(Key(F1 + number - 1));
    }
    let found = NAMES.iter().find(|(known, _)| *known == lower).map(|(_, key)| Key(*key));
    found.ok_or_else(|| {
        let names = NAMES.map(|(known, _)| known).join(", ");
        format!("{name:?} in {text:?}: a key is a character, F1 to F12, or one of {names}")
    })
}

/// The chords that type a text. Servers without a keyboard's layout take a capital's keysym only beside shift.
#[must_use]
pub fn type_text(text: &str) -> Vec<Chord> {
    let shifted = |c: char| c.is_ascii_uppercase() || "~!@#$%^&*()_+{}|:\"<>?".contains(c);
    let chord =
        |c: char| Chord { held: if shifted(c) { vec![Key::SHIFT] } else { Vec::new() }, key: Key::of(c) };
    text.chars().map(chord).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_people_write_them() {
        assert_eq!(parse_chord("ctrl+s"), Ok(Chord { held: vec![Key::CONTROL], key: Key(0x73) }));
        assert_eq!(parse_chord("Alt+F4"), Ok(Chord { held: vec![Key::ALT], key: Key(0xffc1) }));
        assert_eq!(parse_chord("Return"), Ok(Chord { held: Vec::new(), key: Key::RETURN }));
        let two = parse_chord("ctrl+shift+End").unwrap();
        assert_eq!((two.held.len(), two.key), (2, Key(0xff57)));
        assert!(parse_chord("hyper+x").unwrap_err().contains("ctrl, alt and shift"));
        assert!(parse_chord("F13").unwrap_err().contains("F1 to F12"));
        assert!(parse_chord("").unwrap_err().contains("a key is"));
        let typed = type_text("aB ü\n");
        assert_eq!(typed[0], Chord { held: Vec::new(), key: Key(0x61) });
        assert_eq!(typed[1], Chord { held: vec![Key::SHIFT], key: Key(0x42) });
        assert_eq!((typed[3].key, typed[4].key), (Key(0xfc), Key::RETURN));
    }
}
