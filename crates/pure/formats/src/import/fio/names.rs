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

/// Whether fio has an option of that name.
pub fn is_option(name: &str) -> bool {
    KNOWN.split_whitespace().any(|known| known == name)
}

/// Why an option that cannot be set is refused: it is a slip, or has no meaning here.
pub fn unknown_option(name: &str) -> String {
    if is_option(name) {
        return "an option of fio that cannot be honoured here".into();
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
        assert_eq!(unknown_option("qqqqqqqq"), "fio has no such option");
        assert!(foreign_engine("cpuio").contains("neither block nor file"));
        assert!(foreign_engine("external:/x.so").contains("neither block nor file"));
        assert_eq!(foreign_engine("io_urnig"), "fio has no such engine; did you mean io_uring?");
    }
}
