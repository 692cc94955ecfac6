//! Options of an address, `?NAME=VALUE&NAME=VALUE`.

use percent_encoding::percent_decode_str;

use crate::trust::Trust;

/// The options in a query, each a name and a value, decoded; those that say [whom to trust](Trust::take) go there.
///
/// # Errors
/// A value is not UTF-8, or whom to trust makes no sense.
pub fn options(query: &str, trust: &mut Trust) -> Result<Vec<(String, String)>, String> {
    let mut others = Vec::new();
    for option in query.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value =
            percent_decode_str(value).decode_utf8().map_err(|_| "the address is not UTF-8".to_owned())?;
        if !trust.take(name, &value)? {
            others.push((name.to_owned(), value.into_owned()));
        }
    }
    Ok(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_decoded_and_those_of_trust_go_there() {
        let mut trust = Trust::System;
        let others = options("a=b%20c&verify=no&&d", &mut trust).unwrap();
        assert_eq!(others, [("a".to_owned(), "b c".to_owned()), ("d".to_owned(), String::new())]);
        assert_eq!(trust, Trust::Anybody);
        assert!(options("ca=x", &mut trust).unwrap_err().contains("once"));
        assert!(options("a=%ff", &mut Trust::System).unwrap_err().contains("UTF-8"));
    }
}
