//! How this host's kernel is set where that decides what virtual machines cost.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use virtbench_record::{ClockFacts, FrequencyFacts, HostTuning, KsmFacts};

use crate::disk::chosen_scheduler;

const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const KSM: &str = "/sys/kernel/mm/ksm";
const NODES: &str = "/sys/devices/system/node/has_memory";
const PROCESSORS: &str = "/sys/devices/system/cpu";
/// Batches of readings of the clock, of which the median counts, and readings in each.
const BATCHES: usize = 9;
const READINGS: u32 = 200;

/// The settings. What the kernel does not tell is absent.
pub(crate) fn host_tuning() -> HostTuning {
    HostTuning {
        // As in a scheduler's file, what is in use stands in brackets.
        transparent_huge_pages: line(HUGE_PAGES).map(|text| chosen_scheduler(&text)),
        ksm: number(&format!("{KSM}/run"))
            .zip(number(&format!("{KSM}/pages_sharing")))
            .map(|(run, sharing_pages)| KsmFacts { runs: run == 1, sharing_pages }),
        clock: clock(),
        numa_nodes: line(NODES).map(|list| members(&list)),
        frequency: frequency(),
    }
}

/// The mean frequency of all processors now, in MHz; nothing where the kernel does not tell.
#[must_use]
pub fn mean_frequency_mhz() -> Option<u32> {
    let each: Vec<u64> = (0..)
        .map(|processor| format!("{PROCESSORS}/cpu{processor}"))
        .take_while(|folder| Path::new(folder).exists())
        .filter_map(|folder| number(&format!("{folder}/cpufreq/scaling_cur_freq")))
        .collect();
    let mean_khz = each.iter().sum::<u64>().checked_div(each.len() as u64)?;
    u32::try_from(mean_khz / 1000).ok()
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(path: &str) -> Option<u64> {
    line(path)?.parse().ok()
}

fn clock() -> Option<ClockFacts> {
    let source = line(&format!("{CLOCK}/current_clocksource"))?;
    let all = line(&format!("{CLOCK}/available_clocksource")).unwrap_or_default();
    let others = all.split_whitespace().filter(|other| *other != source).map(str::to_owned).collect();
    Some(ClockFacts { source, others, read_ns: read_ns() })
}

/// What a program pays for the time.
fn read_ns() -> u64 {
    let mut batches: Vec<u128> = (0..BATCHES)
        .map(|_| {
            let begun = Instant::now();
            for _ in 0..READINGS {
                black_box(Instant::now());
            }
            begun.elapsed().as_nanos() / u128::from(READINGS)
        })
        .collect();
    batches.sort_unstable();
    u64::try_from(batches[BATCHES / 2]).unwrap_or(u64::MAX)
}

fn frequency() -> Option<FrequencyFacts> {
    let folder = format!("{PROCESSORS}/cpu0/cpufreq");
    let mhz =
        |name: &str| Some(u32::try_from(number(&format!("{folder}/{name}"))? / 1000).unwrap_or(u32::MAX));
    Some(FrequencyFacts {
        governor: line(&format!("{folder}/scaling_governor"))?,
        limits_mhz: [mhz("scaling_min_freq")?, mhz("scaling_max_freq")?],
    })
}

/// How many a list of the kernel's names, such as `0-1,4`.
fn members(list: &str) -> u32 {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends = first.trim().parse::<u32>().ok().zip(last.trim().parse::<u32>().ok());
        ends.map_or(0, |(first, last)| last.saturating_sub(first) + 1)
    };
    list.split(',').map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_counted() {
        assert_eq!((members("0"), members("0-3"), members("0-1,4\n")), (1, 4, 3));
        assert_eq!(members(""), 0);
    }

    #[test]
    fn the_clock_of_this_host_takes_some_time_to_read() {
        let tuning = host_tuning();
        let clock = tuning.clock.expect("Linux has a clock source");
        assert!(!clock.source.is_empty() && (1..1_000_000).contains(&clock.read_ns), "{clock:?}");
    }
}
