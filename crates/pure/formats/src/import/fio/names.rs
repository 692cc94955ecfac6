//! The names that fio gives its options and engines: facts from its HOWTO, to tell a slip from what
//! cannot be done here.

/// The options of fio 3.41, aliases and those of engines included.
const KNOWN: &str = include_str!("known.txt");
/// Engines that reach what this program does not load: networks, object stores, other file systems'
/// clients, processors, the naming of files, commands passed through to a drive.
const OTHER_ENGINES: &[&str] = &[
    "cpp_null",
    "cpuio",
    "dev-dax",
    "dfs",
    "dircreate",
    "dirdelete",
    "dirstat",
    "e4defrag",
    "exec",
    "external",
    "falloc",
    "filecreate",
    "filedelete",
    "filestat",
    "ftruncate",
    "gfapi",
    "gfapi_async",
    "guasi",
    "http",
    "ime_aio",
    "ime_psync",
    "ime_psyncv",
    "io_uring_cmd",
    "libcufile",
    "libhdfs",
    "libhipfile",
    "libiscsi",
    "libpmem",
    "libzbc",
    "mtd",
    "net",
    "netsplice",
    "nfs",
    "page_fault",
    "pmemblk",
    "rados",
    "rbd",
    "rdma",
    "sg",
    "xnvme",
];
/// Engines of blocks and files that are known here, or stood in for.
const OWN_ENGINES: &[&str] = &[
    "io_uring",
    "libaio",
    "libblkio",
    "mmap",
    "nbd",
    "null",
    "posixaio",
    "psync",
    "pvsync",
    "pvsync2",
    "solarisaio",
    "splice",
    "sync",
    "vsync",
    "windowsaio",
];

/// What runs instead of some options that cannot be honoured.
const INSTEAD: &[(&str, &str)] = &[
    ("read_iolog", "`trace` replays such a log"),
    ("replay_no_stall", "`trace` replays a log, as fast as it can with the pace max"),
    ("replay_redirect", "`trace` replays a log on any target"),
    ("replay_time_scale", "`trace` replays a log, at a pace such as 2x"),
    ("nrfiles", "give each file a job"),
    ("numa_cpu_nodes", "cpus_allowed pins to processors"),
    ("numa_mem_policy", "cpus_allowed pins to processors, whose memory is near"),
    ("verify_backlog", "without it blocks are verified as they are read"),
    ("verify_pattern", "without it blocks are verified by a header"),
    (
        "latency_target",
        "rate limits a job, and a search for saturation finds the most that keeps to a latency",
    ),
    ("unlink_each_loop", "a file is made once: give each loop a job"),
    ("pre_read", "a job of reads before it, with stonewall"),
    ("iodepth_batch_complete_min", "leave it out: each completion lets another operation start"),
    ("iodepth_batch_complete_max", "leave it out: each completion lets another operation start"),
    ("thinktime_spin", "thinktime sleeps"),
];

/// What runs instead of an option, as the end of a sentence; empty where nothing does.
pub fn instead(name: &str) -> String {
    INSTEAD.iter().find(|(known, _)| *known == name).map_or_else(String::new, |(_, hint)| format!("; {hint}"))
}

/// Whether fio has an option of that name.
pub fn is_option(name: &str) -> bool {
    KNOWN.split_whitespace().any(|known| known == name)
}

/// Why an option that cannot be set is refused: it is a slip, or has no meaning here.
pub fn unknown_option(name: &str) -> String {
    if is_option(name) {
        return format!("an option of fio that cannot be honoured here{}", instead(name));
    }
    format!("fio has no such option{}", suggestion(name, KNOWN.split_whitespace()))
}

/// Why an engine is refused, whatever the caller tolerates.
pub fn foreign_engine(name: &str) -> String {
    let engine = name.split(':').next().unwrap_or(name);
    // A name with a slash is a file that fio loads as an engine.
    if OTHER_ENGINES.contains(&engine) || engine.contains('/') {
        return "an engine that does neither block nor file I/O of this machine; it cannot be run here, \
                with `lenient` or without"
            .into();
    }
    format!("fio has no such engine{}", suggestion(engine, OWN_ENGINES.iter().chain(OTHER_ENGINES).copied()))
}

fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let name: String = name.chars().take(40).collect();
    let near = known
        .map(|known| (strsim::damerau_levenshtein(&name, known), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len().div_ceil(4).max(1));
    near.map_or_else(String::new, |(_, known)| format!("; did you mean {known}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_an_option_without_meaning() {
        assert_eq!(unknown_option("iodpeth"), "fio has no such option; did you mean iodepth?");
        assert_eq!(unknown_option("atomic"), "an option of fio that cannot be honoured here");
        assert!(unknown_option("read_iolog").ends_with("here; `trace` replays such a log"));
        assert!(INSTEAD.iter().all(|(name, _)| is_option(name)), "{INSTEAD:?}");
        assert_eq!(unknown_option("qqqqqqqq"), "fio has no such option");
        assert!(foreign_engine("cpuio").contains("neither block nor file"));
        assert!(foreign_engine("external:/x.so").contains("neither block nor file"));
        assert_eq!(foreign_engine("io_urnig"), "fio has no such engine; did you mean io_uring?");
    }
}
