//! How much room a text takes, which only a browser knows exactly.

/// The width that is free for a chart in the narrowest window that is cared for, of 420 pixels.
pub(crate) const NARROW_PX: f64 = 386.0;
/// That of one of three charts beside each other on a sheet of paper.
pub(crate) const NARROWEST_PX: f64 = 212.0;

/// The width of a text of 12 pixels, in a font as wide as they come.
pub(crate) fn width_px(text: &str) -> f64 {
    text.chars().map(letter_px).sum()
}

fn letter_px(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 4.0,
        ' ' | 'f' | 'r' | 't' | '(' | ')' | '/' | '-' => 4.8,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 11.2,
        letter if letter.is_ascii_uppercase() => 8.6,
        letter if letter.is_ascii() => 7.5,
        '\u{1100}'.. => 12.5,
        _ => 9.0,
    }
}

/// The beginning of a text that is too long, with three dots.
pub(crate) fn shortened(text: &str, most_px: f64) -> String {
    if width_px(text) <= most_px {
        return text.to_owned();
    }
    let mut left_px = most_px - width_px("…");
    let kept = text.chars().take_while(|letter| {
        left_px -= letter_px(*letter);
        left_px >= 0.0
    });
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_and_what_does_not_is_cut() {
        assert_eq!(shortened("64 KiB", 60.0), "64 KiB");
        let cut = shortened(&"a very long name ".repeat(40), 100.0);
        assert!(cut.ends_with('…') && width_px(&cut) <= 100.0 && cut.len() > 10, "{cut}");
    }
}
