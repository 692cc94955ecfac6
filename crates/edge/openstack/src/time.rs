//! Points in time as the services write them: in UTC, with or without a zone.

use std::time::SystemTime;

/// Reads `2026-11-29T04:38:01.000000`, with or without `Z`.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let text = text.trim().trim_end_matches('Z');
    humantime::parse_rfc3339(&format!("{text}Z")).ok()
}

/// As `changes-since` takes it.
pub(crate) fn written(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_of_all_services_are_read() {
        let plain = parse("2026-11-29T04:38:01Z").unwrap();
        assert_eq!(parse("2026-11-29T04:38:01.000000"), Some(plain));
        assert_eq!(parse("2026-11-29T04:38:01.250000Z"), Some(plain + Duration::from_millis(250)));
        assert_eq!((parse("soon"), written(plain).as_str()), (None, "2026-11-29T04:38:01Z"));
    }
}
