//! Sizes in bytes, as storage people write them.

use parse_size::{ByteSuffix, Config};
use thiserror::Error;

/// A size that cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{text:?} is not a size in bytes: write a number with an optional unit, such as 512, 4k, 64KiB or 1GiB \
     (KiB and k are 1024 bytes, KB is 1000)"
)]
pub struct ByteSizeError {
    text: String,
}

/// Reads a size in bytes. `4KiB` is 4096 and `4KB` is 4000; a letter alone is binary, as in fio and
/// Iometer, so that `4k` is 4096; a bare number is bytes. Case does not matter.
///
/// # Errors
/// The text is no number, is negative, has an unknown unit or does not fit 64 bits.
pub fn parse_bytes(text: &str) -> Result<u64, ByteSizeError> {
    let unit = text.trim().to_ascii_lowercase();
    let config = match unit.ends_with('b') && !unit.ends_with("ib") {
        true => Config::new().with_decimal(),
        false => Config::new().with_binary(),
    };
    config
        .with_byte_suffix(ByteSuffix::Allow)
        .parse_size(text)
        .map_err(|_| ByteSizeError { text: text.to_owned() })
}

/// Writes a size with the largest binary unit that divides it, so that [`parse_bytes`] gives it back.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (name, shift) in UNITS {
        let unit = 1u64 << shift;
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_mean_what_they_say() {
        for (text, bytes) in [
            ("512", 512),
            ("512B", 512),
            ("4k", 4096),
            ("4K", 4096),
            ("64KiB", 65536),
            ("64 kib", 65536),
            ("4KB", 4000),
            ("4kb", 4000),
            ("1G", 1 << 30),
            ("1GiB", 1 << 30),
            ("1GB", 1_000_000_000),
            ("1.5 TB", 1_500_000_000_000),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_text_in_the_message() {
        for text in ["", "k", "-4k", "4x", "4 kk", "99999999999999999999G", "NaN"] {
            let error = parse_bytes(text).unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read(bytes in any::<u64>()) {
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = parse_bytes(&text);
        }
    }
}
