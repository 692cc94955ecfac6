//! Percentages on the command line.

/// Reads `70` or `33.5%`.
pub fn percent(text: &str) -> Result<f64, String> {
    text.trim_end_matches('%')
        .trim()
        .parse()
        .ok()
        .filter(|value| (0.0..=100.0).contains(value))
        .ok_or_else(|| "a percentage lies between 0 and 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_bounds() {
        assert_eq!(percent("70"), Ok(70.0));
        assert_eq!(percent("33.5%"), Ok(33.5));
        for text in ["101", "-1", "NaN", "x", ""] {
            assert!(percent(text).is_err(), "{text}");
        }
    }
}
