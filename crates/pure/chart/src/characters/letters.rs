//! Numbers, names and marks as letters.

use std::fmt::Write as _;

use crate::ticks::{decade, label, sane};

/// A series has one of these as its mark, and repeats after the last.
const MARKS: &str = "abcdefghijklmnopqrstuvwxyz";

/// Three digits of a number.
pub(super) fn number(value: f64) -> String {
    sane(value).map_or_else(
        || "–".into(),
        |value| {
            let step = 10f64.powi(decade(value).max(-290) - 2);
            label(value, step, value.abs(), 1e5)
        },
    )
}

/// Which of `count` places a share from 0 to 1 falls into.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to count - 1")]
pub(super) fn place(share: f64, count: usize) -> usize {
    (share.clamp(0.0, 1.0) * count.saturating_sub(1) as f64).round() as usize
}

/// The beginning of a text that is too long, with three dots.
pub(super) fn cut(text: &str, most: usize) -> String {
    // A line of a drawing is one line.
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

pub(super) fn mark(index: usize) -> char {
    let marks = MARKS.chars().count();
    MARKS.chars().nth(index % marks).unwrap_or('a')
}

/// Which mark is whose.
pub(super) fn key(names: &[&str], columns: usize) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "  {}  {}", mark(index), cut(name, columns - 5));
    }
    text
}
