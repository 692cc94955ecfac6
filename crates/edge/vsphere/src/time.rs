//! Points in time as the API writes them.

use std::time::{Duration, SystemTime};

/// Reads an `xsd:dateTime` such as `2026-11-23T09:24:18.123456Z` or one with an offset from UTC. One without a zone is
/// taken for UTC.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    let clock = text.find('T')?;
    let zone = text.get(clock..)?.find(['Z', '+', '-']).map_or(text.len(), |at| clock + at);
    let (local, zone) = text.split_at_checked(zone)?;
    let moment = humantime::parse_rfc3339(&format!("{local}Z")).ok()?;
    let (ahead, offset) = match zone.chars().next() {
        None | Some('Z') => return Some(moment),
        Some(sign) => (sign == '+', offset(zone.get(1..)?)?),
    };
    if ahead { moment.checked_sub(offset) } else { moment.checked_add(offset) }
}

/// Hours and minutes, such as `02:00`.
fn offset(text: &str) -> Option<Duration> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 14 && minutes < 60).then(|| Duration::from_secs(hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn zones_are_minded() {
        let utc = parse("2026-11-23T09:24:18.25Z").unwrap();
        assert_eq!(parse("2026-11-23T11:24:18.25+02:00"), Some(utc));
        assert_eq!(parse("2026-11-23T04:54:18.25-04:30"), Some(utc));
        assert_eq!(parse("2026-11-23T09:24:18.25"), Some(utc));
        assert!(
            utc.duration_since(parse("2026-11-23T09:24:18Z").unwrap()).unwrap() == Duration::from_millis(250)
        );
        for wrong in [
            "",
            "T",
            "2026-11-23",
            "2026-11-23T25:00:00Z",
            "2026-11-23T09:24:18+99:00",
            "2026-11-23T09:24:18+2",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,40}|[0-9T:+Z.-]{0,40}") {
            let _ = parse(&text);
        }
    }
}
