//! Whether a day is valid.

use std::collections::BTreeSet;

use crate::act::{Act, Until};
use crate::day::{Application, Day, Operation};
use crate::error::DayError;

/// What a marker can number.
const MOST_OPERATIONS: usize = 255;
const LONGEST_NS: u64 = 3_600_000_000_000;
const LONGEST_TEXT: usize = 4096;
/// Users ask for a hundred pictures a second at most: of more frames they would miss some that are there.
const MOST_RATE: u16 = 60;

pub(crate) fn check(day: &Day) -> Result<(), DayError> {
    ensure(day.think.least <= day.think.most && day.think.most <= LONGEST_NS, "think", || {
        "least is at most most, and most is an hour at most".into()
    })?;
    ensure(day.key_pause <= LONGEST_NS, "key_pause", || "an hour at most".into())?;
    for (field, ns) in
        [("limits.a", day.limits.a), ("limits.b", day.limits.b), ("limits.give_up", day.limits.give_up)]
    {
        ensure((1..=LONGEST_NS).contains(&ns), field, || "more than nothing, an hour at most".into())?;
    }
    ensure(day.limits.give_up >= day.limits.a.max(day.limits.b), "limits.give_up", || {
        "at least as long as the other limits".into()
    })?;
    let count = day.operations().count();
    ensure((1..=MOST_OPERATIONS).contains(&count), "applications", || {
        format!("{count} operations: from one to {MOST_OPERATIONS}")
    })?;
    let mut names = BTreeSet::new();
    for one in &day.applications {
        ensure(names.insert(&one.name), &format!("applications.{}", one.name), || {
            "it is there twice".into()
        })?;
        application(one)?;
    }
    Ok(())
}

fn application(application: &Application) -> Result<(), DayError> {
    let at = format!("applications.{}", application.name);
    let field = |part: &str| format!("{at}.{part}");
    name(&at, &application.name)?;
    let program = application.program.first().map_or("", String::as_str);
    absolute(&field("program"), program)?;
    ensure(!application.window.trim().is_empty(), &field("window"), || {
        "empty: the class of its windows, as xprop shows it".into()
    })?;
    let mut names = BTreeSet::new();
    for one in &application.operations {
        let at = field(&format!("operations.{}", one.name));
        ensure(names.insert(&one.name), &at, || "it is there twice".into())?;
        operation(&at, one)?;
    }
    Ok(())
}

fn operation(at: &str, operation: &Operation) -> Result<(), DayError> {
    name(at, &operation.name)?;
    match &operation.act {
        Act::Keys(keys) => {
            ensure(
                !keys.is_empty() && keys.iter().all(|key| !key.is_empty()),
                &format!("{at}.act.keys"),
                || "at least one key, such as ctrl+s".into(),
            )?;
        }
        Act::Text(text) => {
            ensure((1..=LONGEST_TEXT).contains(&text.len()), &format!("{at}.act.text"), || {
                format!("from one to {LONGEST_TEXT} bytes")
            })?
        }
        Act::Start | Act::Activate => {}
    }
    let has_window =
        matches!(operation.until, Until::Window | Until::Title(_) | Until::Drawn | Until::File(_));
    ensure(!operation.still || has_window, &format!("{at}.still"), || {
        "still is for operations that end with a window, its title, what it draws, or a file".into()
    })?;
    let starts = operation.act == Act::Start;
    match &operation.until {
        Until::File(path) => absolute(&format!("{at}.until.file"), path),
        Until::Title(text) => {
            let fits = (1..=LONGEST_TEXT).contains(&text.len()) && !text.contains(char::is_control);
            ensure(fits, &format!("{at}.until.title"), || {
                format!("from one to {LONGEST_TEXT} bytes of a title")
            })
        }
        Until::Video(video) => {
            let at = format!("{at}.until.video");
            ensure(starts, &at, || "video is for operations that start a player".into())?;
            ensure(video.frames >= 2, &format!("{at}.frames"), || "two at least".into())?;
            ensure((1..=MOST_RATE).contains(&video.rate), &format!("{at}.rate"), || {
                format!("from one to {MOST_RATE} frames a second")
            })?;
            ensure(video.length_ns() <= LONGEST_NS, &format!("{at}.frames"), || "an hour at most".into())
        }
        Until::Exit => ensure(starts, &format!("{at}.until"), || "exit is for operations that start".into()),
        _ => Ok(()),
    }
}

fn name(field: &str, name: &str) -> Result<(), DayError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = (1..=40).contains(&name.len()) && name.chars().all(plain);
    ensure(fits, field, || format!("{name:?}: up to 40 of a-z, 0-9 and -"))
}

fn absolute(field: &str, path: &str) -> Result<(), DayError> {
    let inside = path.starts_with('/') && !path.contains(char::is_control);
    ensure(inside, field, || format!("{path:?}: a path within the root, beginning with /"))
}

fn ensure(holds: bool, field: &str, why: impl FnOnce() -> String) -> Result<(), DayError> {
    if holds { Ok(()) } else { Err(DayError::Value { field: field.into(), why: why() }) }
}
