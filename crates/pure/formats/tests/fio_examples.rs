//! How many of fio's own example job files run as they are. The files are fio's and not in this repository:
//! `make fio-examples FIO_EXAMPLES=FOLDER` reads them from the folder `examples` of fio's source.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used)]

use virtbench_formats::{Format, Surroundings, import_within};

/// Those in fio's `examples` (3.41) that run. Each of them, and of the refused, names no engine, or none but those for
/// blocks and files (io_uring, libaio, sync and its like, null, nbd, libblkio, mmap, splice).
const RUN: [&str; 31] = [
    "1mbs_clients",
    "aio-read",
    "backwards-read",
    "basic-verify",
    "butterfly",
    "disk-zone-profile",
    "example_latency_steadystate",
    "exitwhat",
    "fio-rand-RW",
    "fio-rand-read",
    "fio-rand-write",
    "fio-seq-RW",
    "fio-seq-read",
    "fio-seq-write",
    "fixed-rate-submission",
    "flow",
    "fsx",
    "iometer-file-access-server",
    "jesd219",
    "libblkio-io_uring",
    "nbd",
    "null",
    "poisson-rate-submission",
    "rand-zones",
    "ssd-steadystate",
    "ssd-test",
    "steadystate",
    "tiobench-example",
    "waitfor",
    "xnvme-compare",
    "zipf",
];

/// Those that are refused, with an option that is why.
const REFUSED: [(&str, &str); 19] = [
    ("atomic-verify", "atomic=1"),
    ("cmdprio-bssplit", "cmdprio_bssplit="),
    ("cmdprio-percentage", "cmdprio_percentage=20"),
    ("cross-stripe-verify", "verify_backlog=1"),
    ("dedupe-global", "dedupe_mode=working_set"),
    ("enospc-pressure", "ignore_error=,ENOSPC"),
    ("latency-profile", "latency_target=500000"),
    ("libblkio-virtio-blk-vfio-pci", "libblkio: only the drivers"),
    ("numa", "numa_cpu_nodes=0"),
    ("sequence-distribution", "random_distribution=sequence"),
    ("sprandom", "sprandom=1"),
    ("surface-scan", "verify_pattern=0xaa555aa5"),
    ("xnvme-fdp", "fdp=1"),
    ("xnvme-pi", "pi_act=0"),
    ("xnvme-zoned", "zonemode=zbd"),
    ("zbd-rand-write", "zonemode=zbd"),
    ("zbd-rand-write-trim-gc", "zonemode=zbd"),
    ("zbd-rand-write-zone-reset-gc", "zonemode=zbd"),
    ("zbd-seq-read", "zonemode=zbd"),
];

/// As the examples' comments say that they are to be called.
fn variable(name: &str) -> Option<String> {
    let value = match name {
        "uri" => "nbd+unix:///?socket=/tmp/nbd.sock",
        "FIO_RW" => "randread",
        "FIO_IODEPTH" => "4",
        "FIO_BS" => "4k",
        _ => return None,
    };
    Some(value.to_owned())
}

#[test]
#[ignore = "needs fio's examples: make fio-examples FIO_EXAMPLES=FOLDER"]
fn at_least_three_in_five_of_fio_s_examples_for_blocks_and_files_run_strictly() {
    let folder =
        std::env::var("FIO_EXAMPLES").expect("FIO_EXAMPLES names the folder `examples` of fio's source");
    let surroundings = Surroundings {
        variable: &variable,
        size_of: &|target| target.starts_with("/dev/").then_some(1 << 40),
        ..Surroundings::default()
    };
    let import = |name: &str| {
        let path = std::path::Path::new(&folder).join(format!("{name}.fio"));
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        import_within(&text, Some(Format::Fio), false, &surroundings)
    };
    for name in RUN {
        let load = import(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!load.jobs.is_empty(), "{name}");
    }
    for (name, why) in REFUSED {
        let error = import(name).map(|_| ()).expect_err(name).to_string();
        assert!(error.contains(why), "{name}: {error}");
    }
    assert_eq!((RUN.len(), REFUSED.len()), (31, 19), "docs/formats.md says so");
}
