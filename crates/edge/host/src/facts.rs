//! What this host is.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use procfs::{CpuInfo, Current, Meminfo};
use rustix::system::{sysinfo, uname};
use virtbench_record::{ClockFacts, FrequencyFacts, HostFacts, HostTuning, KsmFacts};

use crate::cpuid::hypervisor_leaf;
use crate::disk::{chosen_scheduler, disk_facts};

/// This host, with the storage under `target`. What cannot be found out is `None`, or `unknown`.
#[must_use]
pub fn host_facts(target: &Path) -> HostFacts {
    let processors = CpuInfo::current().ok();
    let field = |name: &str| processors.as_ref().and_then(|info| info.fields.get(name).cloned());
    let model = processors.as_ref().and_then(|info| info.model_name(0)).map(str::to_owned);
    HostFacts {
        kernel: uname().release().to_string_lossy().into_owned(),
        distribution: fs::read_to_string("/etc/os-release")
            .ok()
            .and_then(|text| pretty_name(&text))
            .unwrap_or_else(unknown),
        cpu: model.or_else(|| field("model name")).unwrap_or_else(|| cpu_by_number(processors.as_ref())),
        processors: processors.as_ref().map_or(1, |info| u32::try_from(info.num_cores()).unwrap_or(u32::MAX)),
        memory_bytes: memory_bytes(),
        hypervisor: hypervisor(processors.as_ref()),
        virtualization: virtualization(processors.as_ref()),
        tuning: Some(host_tuning()),
        disk: disk_facts(target),
    }
}

/// Release of the kernel.
#[must_use]
pub fn kernel_release() -> String {
    uname().release().to_string_lossy().into_owned()
}

/// What keeps the machine's clock, such as `tsc`; empty where the kernel does not say.
#[must_use]
pub fn clock_source() -> String {
    fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

/// Memory of the machine, in bytes.
#[must_use]
pub fn memory_bytes() -> u64 {
    let memory = sysinfo();
    memory.totalram.saturating_mul(memory.mem_unit.into())
}

/// Memory that could be used without swapping, in bytes; nothing where the kernel does not say.
#[must_use]
pub fn available_memory_bytes() -> Option<u64> {
    Meminfo::current().ok()?.mem_available
}

fn unknown() -> String {
    "unknown".into()
}

/// A processor whose kernel knows no name for it, as that of Arm: its kind, with the numbers of maker and model.
fn cpu_by_number(processors: Option<&CpuInfo>) -> String {
    let number = |name: &str| processors.and_then(|info| info.get_field(0, name)).map(str::to_owned);
    let machine = uname().machine().to_string_lossy().into_owned();
    match (number("CPU implementer"), number("CPU part")) {
        (Some(maker), Some(part)) => format!("{machine} (implementer {maker}, part {part})"),
        _ => machine,
    }
}

/// `PRETTY_NAME` of os-release(5).
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let bare = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Some(bare.unwrap_or(value).to_owned()).filter(|name| !name.is_empty())
}

/// The kind of hypervisor below this host, as far as it shows: Xen says so itself, others set the
/// processor's hypervisor flag, and the firmware's vendor mostly tells which it is.
fn hypervisor(processors: Option<&CpuInfo>) -> Option<String> {
    let line = |path: &str| {
        let text = fs::read_to_string(path).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    if let Some(kind) = line("/sys/hypervisor/type") {
        return Some(kind);
    }
    let flagged =
        processors.and_then(|info| info.flags(0)).is_some_and(|flags| flags.contains(&"hypervisor"));
    if !flagged {
        return None;
    }
    if let Some(name) = hypervisor_leaf() {
        return Some(name);
    }
    let words = ["sys_vendor", "product_name"].map(|name| line(&format!("/sys/class/dmi/id/{name}")));
    let named = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
    Some(if named.is_empty() { "unknown hypervisor".into() } else { named })
}

/// Whether the processor offers VMX or SVM; nothing of a processor that has neither flag by its kind.
fn virtualization(processors: Option<&CpuInfo>) -> Option<bool> {
    let flags = processors?.flags(0)?;
    cfg!(target_arch = "x86_64").then(|| ["vmx", "svm"].iter().any(|flag| flags.contains(flag)))
}

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
    fn the_distribution_is_read_in_any_quotes() {
        for text in ["A=1\nPRETTY_NAME=\"Debian 12\"\n", "PRETTY_NAME='Debian 12'", "PRETTY_NAME=Debian 12\n"]
        {
            assert_eq!(pretty_name(text).as_deref(), Some("Debian 12"), "{text}");
        }
        assert_eq!(pretty_name("PRETTY_NAME=\"\"\n"), None);
        assert_eq!(pretty_name("NAME=Debian\n"), None);
    }

    #[test]
    fn this_host_has_processors_memory_and_a_kernel() {
        let facts = host_facts(Path::new("/"));
        assert!(facts.processors > 0 && facts.memory_bytes > 1 << 20 && !facts.kernel.is_empty());
        println!("{facts:#?}");
    }

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
