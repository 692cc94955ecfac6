//! Names by which an appliance reaches another.

/// The most characters of a part of a host's name (RFC 1035, section 2.3.4).
const MOST_CHARACTERS: usize = 63;

/// Whether an appliance can know another one by this name: a-z, 0-9 and -, a letter first.
pub(crate) fn is_host_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    begins && name.chars().all(is_plain) && name.len() <= MOST_CHARACTERS && name != "localhost"
}
