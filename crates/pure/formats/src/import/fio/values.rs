//! fio's numbers (HOWTO.rst, "Parameter types").

use std::borrow::Cow;

use virtbench_workload::MAX_PATTERN_BYTES;

use super::super::Surroundings;

/// A size in bytes with `kb_base` 1024: `4k`, `4kb` are 4096 and `4ki`, `4kib` are 4000, contrary to
/// what the units mean, as fio documents it. As in fio, `:`, `-`, `,` and `/` end the number: `36k-60k` is 36k.
pub fn bytes(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.find([':', '-', ',', '/']).map_or(lower.as_str(), |end| lower[..end].trim_end());
    let (number, suffix) = number(lower)?;
    let (prefix, decimal) = match suffix.strip_suffix('b').unwrap_or(suffix) {
        "" => return Some(number),
        prefix => prefix.strip_suffix('i').map_or((prefix, false), |prefix| (prefix, true)),
    };
    let power = ["k", "m", "g", "t", "p"].iter().position(|known| *known == prefix)? + 1;
    let base: u64 = if decimal { 1000 } else { 1024 };
    number.checked_mul(base.checked_pow(u32::try_from(power).ok()?)?)
}

/// A whole number, decimal or with `0x`, with the size suffixes fio accepts on every integer.
pub fn integer(text: &str) -> Option<u64> {
    bytes(text)
}

/// A time in nanoseconds; a bare number is in units of `unit_ns`.
pub fn time_ns(text: &str, unit_ns: u64) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, suffix) = number(&lower)?;
    let unit_ns = match suffix {
        "" => unit_ns,
        "d" => 86_400_000_000_000,
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "s" | "sec" => 1_000_000_000,
        "ms" | "msec" => 1_000_000,
        "us" | "usec" => 1_000,
        _ => return None,
    };
    number.checked_mul(unit_ns)
}

fn number(lower: &str) -> Option<(u64, &str)> {
    let (digits, radix) = lower.strip_prefix("0x").map_or((lower, 10), |rest| (rest, 16));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    Some((u64::from_str_radix(digits, radix).ok()?, suffix.trim_start()))
}

/// The bytes of a pattern: parts that are texts in quotes, hexadecimal numbers from their first byte on, or
/// decimal numbers from their lowest byte on.
///
/// # Errors
/// Another form, such as the name of a file.
pub fn pattern(text: &str) -> Result<Vec<u8>, String> {
    let wrong =
        || "a pattern is made of \"texts\", 0x... and numbers here; no file can be its source".to_owned();
    let mut bytes = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (part, behind) = quoted.split_once('"').ok_or_else(wrong)?;
            bytes.extend(part.bytes());
            rest = behind;
            continue;
        }
        let (digits, is_hex) = rest.strip_prefix("0x").map_or((rest, false), |digits| (digits, true));
        let is_digit = |c: char| if is_hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
        let (number, behind) = digits.split_at(digits.find(|c| !is_digit(c)).unwrap_or(digits.len()));
        if is_hex {
            let even = if number.len() % 2 == 1 { format!("0{number}") } else { number.to_owned() };
            for pair in even.as_bytes().chunks(2) {
                let pair = std::str::from_utf8(pair).unwrap_or_default();
                bytes.push(u8::from_str_radix(pair, 16).map_err(|_| wrong())?);
            }
        } else {
            let number: u32 = number.parse().map_err(|_| wrong())?;
            let used = (4 - number.leading_zeros() / 8).max(1) as usize;
            bytes.extend(number.to_le_bytes().iter().take(used));
        }
        rest = behind;
    }
    let fits = (1..=MAX_PATTERN_BYTES).contains(&bytes.len());
    if fits { Ok(bytes) } else { Err(format!("a pattern has 1 to {MAX_PATTERN_BYTES} bytes")) }
}

/// A switch: no value, `1` or `0`.
pub fn switch(value: Option<&str>) -> Option<bool> {
    match value {
        None | Some("1" | "true") => Some(true),
        Some("0" | "false") => Some(false),
        Some(_) => None,
    }
}

/// The parts for reads, writes and trims. A part not followed by a comma holds for what comes after
/// it; an empty one means the default.
pub fn by_direction(text: &str) -> Option<[Option<&str>; 3]> {
    of_parts(&text.split(',').map(str::trim).take(4).collect::<Vec<_>>())
}

/// The same of options that are numbers: where what is left has no comma, a colon separates, and where it has none either, a dash. What comes
/// behind three is passed over.
pub fn numbers_by_direction(text: &str) -> [Option<&str>; 3] {
    let (mut parts, mut rest) = (Vec::new(), text.trim());
    while let (Some(at), true) = ([',', ':', '-'].iter().find_map(|c| rest.find(*c)), parts.len() < 3) {
        parts.push(rest[..at].trim());
        rest = rest[at + 1..].trim_start();
    }
    parts.push(rest);
    parts.truncate(3);
    of_parts(&parts).unwrap_or_default()
}

fn of_parts<'a>(parts: &[&'a str]) -> Option<[Option<&'a str>; 3]> {
    let last = *parts.last()?;
    let full = |part: &&str| !part.is_empty();
    (parts.len() <= 3).then(|| [0, 1, 2].map(|index| Some(*parts.get(index).unwrap_or(&last)).filter(full)))
}

/// Processors such as `0-3,6`, at most 1024 of them.
pub fn processors(text: &str) -> Option<Vec<u32>> {
    let mut list = Vec::new();
    for part in text.split([',', ':']).map(str::trim) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || last >= 4096 || list.len() > 1024 {
            return None;
        }
        list.extend(first..=last);
    }
    list.sort_unstable();
    list.dedup();
    Some(list)
}

/// The longest value after replacement, in bytes.
const MOST_BYTES: usize = 4096;

/// The value with variables and keywords replaced.
///
/// # Errors
/// A variable that is not set, a `${` that does not end, or a value that grows out of bounds.
pub fn expand<'a>(value: &'a str, surroundings: &Surroundings<'_>) -> Result<Cow<'a, str>, String> {
    if !value.contains('$') {
        return Ok(Cow::Borrowed(value));
    }
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) = after.split_once('}').ok_or("a ${ without its }")?;
        let variable = (surroundings.variable)(name).ok_or_else(|| {
            format!("the variable {} is not set", name.chars().take(60).collect::<String>())
        })?;
        out.push_str(before);
        out.push_str(&variable);
        if out.len() > MOST_BYTES {
            return Err(format!("longer than {MOST_BYTES} bytes with its variables"));
        }
        rest = behind;
    }
    out.push_str(rest);
    for (keyword, number) in [
        ("$ncpus", surroundings.processors),
        ("$mb_memory", surroundings.memory_bytes >> 20),
        ("$pagesize", surroundings.page_bytes),
    ] {
        out = out.replace(keyword, &number.to_string());
    }
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_fio_reads_them() {
        for (text, expected) in [
            ("4096", Some(4096)),
            ("4k", Some(4096)),
            ("4KB", Some(4096)),
            ("4ki", Some(4000)),
            ("4KiB", Some(4000)),
            ("0x1000", Some(4096)),
            ("1m", Some(1 << 20)),
            ("2T", Some(2 << 40)),
            ("512b", Some(512)),
            ("36k-60k", Some(36864)),
            ("4k/15:1024k:85", Some(4096)),
            ("-4k", None),
            ("20%", None),
            ("99999999999999p", None),
            ("", None),
            ("k", None),
            ("é", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn times_have_the_unit_of_their_option() {
        assert_eq!(time_ns("5", 1_000_000_000), Some(5_000_000_000));
        assert_eq!(time_ns("5", 1_000), Some(5_000));
        assert_eq!(time_ns("10m", 1), Some(600_000_000_000));
        assert_eq!(time_ns("20msec", 1), Some(20_000_000));
        assert_eq!(time_ns("1e9", 1), None);
    }

    #[test]
    fn a_comma_ends_a_value() {
        assert_eq!(by_direction("8k,32k"), Some([Some("8k"), Some("32k"), Some("32k")]));
        assert_eq!(by_direction("8k,32k,"), Some([Some("8k"), Some("32k"), None]));
        assert_eq!(by_direction(",8k"), Some([None, Some("8k"), Some("8k")]));
        assert_eq!(by_direction("4k"), Some([Some("4k"); 3]));
        assert_eq!(by_direction("1,2,3,4"), None);
        assert_eq!(by_direction("4k:8k"), Some([Some("4k:8k"); 3]));
        assert_eq!(numbers_by_direction("4k/15:1024k:85:9"), [Some("4k/15"), Some("1024k"), Some("85")]);
        assert_eq!(numbers_by_direction("64k-128k"), [Some("64k"), Some("128k"), Some("128k")]);
        assert_eq!(numbers_by_direction(",4k/15:1024k:85,"), [None, Some("4k/15:1024k:85"), None]);
    }

    #[test]
    fn processors_are_bounded() {
        assert_eq!(processors("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(processors("0-4000000000"), None);
        assert_eq!(processors("3-1"), None);
    }

    #[test]
    fn variables_and_keywords_are_replaced() {
        let variable = |name: &str| (name == "DISK").then(|| "/dev/x".to_owned());
        let surroundings = Surroundings { variable: &variable, processors: 6, ..Surroundings::default() };
        let expand = |text| expand(text, &surroundings).map(Cow::into_owned);
        assert_eq!(expand("${DISK}1:${DISK}2"), Ok("/dev/x1:/dev/x2".into()));
        assert_eq!(expand("$ncpus"), Ok("6".into()));
        assert_eq!(expand("$mb_memory"), Ok("1024".into()));
        assert_eq!(expand("plain"), Ok("plain".into()));
        assert_eq!(expand("${NONE}"), Err("the variable NONE is not set".into()));
        assert!(expand("${DISK").is_err());
    }
}
