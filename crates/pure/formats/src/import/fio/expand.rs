//! Variables and keywords in values: `${NAME}`, `$ncpus`, `$mb_memory`, `$pagesize`.

use std::borrow::Cow;

use super::super::Surroundings;

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
