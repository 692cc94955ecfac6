//! What each option of diskspd means here. Options are one word: `-d30`, never `-d 30`.

use virtbench_workload::Placement;

use super::super::{Findings, ImportError, Location};
use super::command::{Command, Throttle};

/// The most parts of a target.
const MAX_PARTS: usize = 100;
/// Options that change what is reported or traced.
const WITHOUT_EFFECT: [char; 9] = ['L', 'v', 'R', 'P', 'n', 'e', 'l', 'C', ':'];

/// Reads `-b`, which comes first because it is the unit `b` of other sizes.
pub fn block_size(command: &mut Command, value: &str, at: Location) -> Result<(), ImportError> {
    command.block_bytes =
        size(value, command.block_bytes).filter(|bytes| *bytes > 0).ok_or_else(|| bad(at, 'b', "a size"))?;
    Ok(())
}

/// Puts one option, without its dash, into the command.
pub fn apply(
    command: &mut Command,
    option: &str,
    at: Location,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let mut chars = option.chars();
    let Some(letter) = chars.next() else {
        return Err(ImportError::Syntax { at, why: "a dash without an option".into() });
    };
    let value = chars.as_str();
    let count =
        || value.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(|| bad(at, letter, "a positive number"));
    let bytes = |text: &str| size(text, command.block_bytes).ok_or_else(|| bad(at, letter, "a size"));
    let refuse = |findings: &mut Findings, why: &str| findings.ignore(at, format!("-{option:.40}: {why}"));
    match letter {
        'b' => {}
        'd' => command.time_s = count()?,
        'W' => command.warm_up_s = value.parse().map_err(|_| bad(at, letter, "seconds"))?,
        'o' => command.outstanding = count()?,
        'O' => command.outstanding_total = Some(count()?),
        't' => command.threads = count()?,
        'F' => command.threads_total = Some(count()?),
        'w' if value.is_empty() => command.write_percent = 0,
        'w' => command.write_percent = percent(value).ok_or_else(|| bad(at, letter, "a percentage"))?,
        'r' => random(command, value, at, findings)?,
        's' => sequential(command, value, at, findings)?,
        'S' | 'h' => {
            let flags = if letter == 'h' { "h" } else { value };
            caching(command, flags, option, at, findings);
        }
        'c' => command.create_bytes = Some(bytes(value)?),
        'f' if value.starts_with(|c: char| c.is_ascii_digit()) => command.end_bytes = Some(bytes(value)?),
        'f' => findings.leave_out(&format!("-{option:.20}"), at.line),
        'B' => {
            let (base, length) =
                value.split_once(':').map_or((value, None), |(base, length)| (base, Some(length)));
            command.base_bytes = bytes(base)?;
            command.length_bytes = length.map(bytes).transpose()?;
        }
        'g' => {
            let (number, iops) = value.strip_suffix('i').map_or((value, false), |number| (number, true));
            let number: u32 =
                number.parse().ok().filter(|n| *n > 0).ok_or_else(|| bad(at, letter, "a positive number"))?;
            command.throttle = Some(if iops { Throttle::Iops(number) } else { Throttle::BytesPerMs(number) });
        }
        'i' => command.burst = Some(count()?),
        'j' => command.think_ms = Some(count()?),
        'D' => command.interval_ms = value.parse().ok().filter(|n| *n > 0),
        'z' => command.seed = value.parse().ok(),
        'a' => match super::super::processors(value) {
            _ if value.is_empty() || value == "g" => findings.leave_out("-a", at.line),
            Some(list) => command.processors.extend(list),
            None => refuse(findings, "processor groups are not known here"),
        },
        'Z' => match value {
            "" => command.zeros = true,
            "r" => command.random_content = true,
            _ if value.contains(',') => refuse(findings, "no file can be the source of what is written"),
            _ => {
                bytes(value)?;
                command.random_content = true;
            }
        },
        'X' => refuse(findings, "name the profile's own file instead"),
        'T' => refuse(findings, "threads begin evenly spread over the target"),
        'p' => refuse(findings, "operations of one thread never share an offset"),
        'x' => findings.leave_out("-x", at.line),
        'N' | 'I' | 'y' => refuse(findings, "this cannot be done here"),
        letter if WITHOUT_EFFECT.contains(&letter) => findings.leave_out(&format!("-{option:.20}"), at.line),
        _ => refuse(findings, "this option is not known"),
    }
    Ok(())
}

/// `-r`: at random, with an alignment, in part (`-rs`) or by a distribution (`-rd`).
fn random(
    command: &mut Command,
    value: &str,
    at: Location,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    if let Some(share) = value.strip_prefix('s') {
        let share = percent(share).filter(|n| *n > 0);
        command.random_percent = share.ok_or_else(|| bad(at, 'r', "a percentage"))?;
    } else if let Some(distribution) = value.strip_prefix('d') {
        match parts(distribution) {
            Some(placements) => command.placements = placements,
            None => findings.ignore(
                at,
                format!("-r{value:.39}: known are shares of the operations and of the target, such as -rdpct80/10:15/20"),
            ),
        }
    } else {
        if command.random_percent == 0 {
            command.random_percent = 100;
        }
        if !value.is_empty() {
            let bytes = size(value, command.block_bytes).ok_or_else(|| bad(at, 'r', "a size"))?;
            command.align_bytes = Some(bytes).filter(|n| *n > 0);
        }
    }
    Ok(())
}

/// `-s`: in sequence, with a stride, or interlocked among threads (`-si`).
fn sequential(
    command: &mut Command,
    value: &str,
    at: Location,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let (interlocked, stride) = value.strip_prefix('i').map_or((false, value), |rest| (true, rest));
    if interlocked {
        findings.ignore(at, format!("-s{value:.39}: threads cannot share one sequential offset"));
    }
    if !stride.is_empty() {
        let bytes = size(stride, command.block_bytes).ok_or_else(|| bad(at, 's', "a size"))?;
        command.stride_bytes = Some(bytes);
    }
    Ok(())
}

fn bad(at: Location, letter: char, what: &str) -> ImportError {
    ImportError::Syntax { at, why: format!("-{letter} takes {what} in the same word, such as -{letter}10") }
}

fn caching(command: &mut Command, flags: &str, option: &str, at: Location, findings: &mut Findings) {
    if flags.is_empty() {
        command.direct = true;
    }
    for flag in flags.chars().take(8) {
        match flag {
            'b' => command.direct = false,
            'u' => command.direct = true,
            'w' => command.write_through = true,
            'h' => (command.direct, command.write_through) = (true, true),
            _ => findings.ignore(at, format!("-{option:.40}: only the flags b, h, u and w can be honoured")),
        }
    }
}

fn percent(text: &str) -> Option<u8> {
    text.parse().ok().filter(|n| *n <= 100)
}

/// `4K`, `10G`, or `8b` for eight blocks; units are binary.
fn size(text: &str, block_bytes: u64) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let unit = match suffix {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "t" | "T" => 1 << 40,
        "b" | "B" => block_bytes,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// `pct80/10:15/20`: 80 % of the operations on the first 10 % of the target, 15 % on the next 20 %, the
/// others on the rest.
fn parts(text: &str) -> Option<Vec<(f64, Placement)>> {
    let (mut left, mut from_percent) = (100.0, 0.0);
    let mut parts = Vec::new();
    for part in text.strip_prefix("pct")?.split(':').take(MAX_PARTS) {
        let (access, data) = part.split_once('/')?;
        let (access, data) = (f64::from(percent(access)?), f64::from(percent(data)?));
        let to_percent = from_percent + data;
        if data <= 0.0 || access > left || to_percent > 100.0 {
            return None;
        }
        parts.push((access, Placement::Part { from_percent, to_percent }));
        (left, from_percent) = (left - access, to_percent);
    }
    match (left > 0.0, from_percent < 100.0) {
        (true, true) => parts.push((left, Placement::Part { from_percent, to_percent: 100.0 })),
        (true, false) => return None,
        _ => {}
    }
    parts.retain(|(access, _)| *access > 0.0);
    if let [(access_percent, Placement::Part { from_percent, to_percent }), (_, Placement::Part { .. })] =
        parts[..]
        && from_percent <= 0.0
    {
        return Some(vec![(100.0, Placement::Hot { data_percent: to_percent, access_percent })]);
    }
    Some(parts)
}
