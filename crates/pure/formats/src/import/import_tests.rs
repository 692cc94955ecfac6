use proptest::prelude::*;
use virtbench_workload::{AccessLine, AccessSpec, Arrivals, EngineKind, LoadSpec, Placement, WriteSync};

use super::*;
use crate::{write_fio, write_icf, write_json};

const ICF: &str = include_str!("../../tests/examples/two-specs.icf");
const FIO: &str = include_str!("../../tests/examples/mixed.fio");
const DISKSPD: &str = include_str!("../../tests/examples/sql.cmd");
const VDBENCH: &str = include_str!("../../tests/examples/disks.vdb");

fn strict(text: &str) -> ImportedLoad {
    import(text.as_bytes(), None, false).unwrap_or_else(|error| panic!("{error}"))
}

fn diskspd(options: &str) -> Result<ImportedLoad, ImportError> {
    import(format!("diskspd {options}").as_bytes(), None, false)
}

#[test]
fn an_iometer_configuration_becomes_its_jobs() {
    let load = strict(ICF);
    let names: Vec<(&str, u32, u32)> =
        load.jobs.iter().map(|job| (job.name.as_str(), job.group, job.load.workers)).collect();
    assert_eq!(names, [("4 KiB; 67% Read; 50% random", 0, 2), ("Mail server", 1, 2)]);
    let first = &load.jobs[0];
    assert_eq!((first.load.time_ns, first.load.ramp_ns), (3_690_000_000_000, 30_000_000_000));
    assert_eq!((first.load.outstanding, first.load.seed), (16, 99));
    assert_eq!((first.size_bytes, first.target.as_deref()), (Some(2_097_152 * 512), Some("/dev/sdb")));
    assert_eq!(first.load.access.lines[0].align_bytes, 4096);
    let mail = &load.jobs[1].load.access.lines;
    let rows: Vec<(u64, f64, u64, u32, u64)> = mail
        .iter()
        .map(|line| (line.size_bytes, line.share_percent, line.delay_ns, line.burst, line.align_bytes))
        .collect();
    assert_eq!(rows, [(8192, 62.5, 2_000_000, 4, 512), (65536, 37.5, 0, 1, 65536)]);
}

#[test]
fn an_older_iometer_with_fewer_columns_is_read() {
    let text = "Version 1999.06.16\n'ACCESS SPECIFICATIONS ===\n\
        'Access specification name,default assignment\n\tOLD,ALL\n\
        'size,% of size,% reads,% random,delay,burst\n\t2048,100,67,100,0,1\n'END access specifications\n";
    let load = strict(text);
    assert_eq!(load.jobs[0].load.access, AccessSpec::single(AccessLine::new(2048, 67.0, 100.0)));
}

#[test]
fn what_iometer_can_and_this_cannot_is_named_with_its_line() {
    let text = ICF
        .replace("8192,62.5,60,100,2,4,0,0", "8192,62.5,60,100,2,4,0,512")
        .replace("\tNORMAL", "\tCYCLE_WORKERS");
    let Err(ImportError::NotUnderstood { remarks, hopeless: 0 }) = import(text.as_bytes(), None, false)
    else {
        panic!()
    };
    let said = remarks.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    for word in ["line 18: test type CYCLE_WORKERS", "line 28: a reply of 512 bytes"] {
        assert!(said.contains(word), "{word} is not in:\n{said}");
    }
    assert_eq!(import(text.as_bytes(), None, true).unwrap().ignored, remarks);
}

#[test]
fn what_iometer_shows_while_it_measures_is_passed_over() {
    let display = "'RESULTS DISPLAY =====\n'Record Last Update Results,Update Frequency,Update Type\n\tDISABLED,1,LAST_UPDATE\n\
        'Bar chart 1 statistic\n\tTotal I/Os per Second\n'END results display\n";
    let text = ICF.replace("'ACCESS SPECIFICATIONS", &format!("{display}'ACCESS SPECIFICATIONS"));
    assert_eq!(strict(&text).jobs, strict(ICF).jobs);
    let cut = ICF.replace("'ACCESS SPECIFICATIONS", "'RESULTS DISPLAY ===\n'x").replace("'END access", "'x");
    assert!(import(cut.as_bytes(), None, false).unwrap_err().to_string().contains("results display"));
}

#[test]
fn a_worker_of_iometer_without_a_target_is_idle() {
    let (before, second) = ICF.split_once("\tWorker 2").unwrap();
    let target = "'Target\n\t/dev/sdb\n'Target type\n\tDISK\n'End target\n";
    assert!(second.contains(target), "the example has changed");
    let load = strict(&format!("{before}\tWorker 2{}", second.replacen(target, "", 1)));
    assert!(load.jobs.iter().all(|job| job.load.workers == 1), "{:?}", load.jobs);
    assert!(load.notes.iter().any(|note| note.starts_with("1 of 2 workers")), "{:?}", load.notes);
    // Where none has a target, the user names one.
    let without = strict(&ICF.replace(target, ""));
    assert_eq!(without.jobs.iter().map(|job| job.load.workers).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn a_starting_sector_of_iometer_is_where_a_worker_begins() {
    let text = ICF.replacen("2097152,0,2", "2097152,65536,2", 1);
    let load = strict(&text);
    let places: Vec<_> =
        load.jobs.iter().map(|job| (job.group, job.load.start_bytes, job.load.workers)).collect();
    assert_eq!(places, [(0, 65536 * 512, 1), (0, 0, 1), (1, 65536 * 512, 1), (1, 0, 1)]);
}

#[test]
fn iometer_s_alignment_of_0_is_the_sector_of_the_device() {
    let surroundings = Surroundings {
        sector_of: &|target| (target == "/dev/sdb").then_some(4096),
        ..Surroundings::default()
    };
    let load = import_within(ICF.as_bytes(), None, false, &surroundings).unwrap();
    assert_eq!(load.jobs[1].load.access.lines[0].align_bytes, 4096);
    assert_eq!(strict(ICF).jobs[1].load.access.lines[0].align_bytes, 512, "where it is not known");
}

#[test]
fn a_network_worker_is_refused() {
    let text = ICF.replacen("'Worker type\n\tDISK", "'Worker type\n\tNETWORK,TCP", 1);
    let error = import(text.as_bytes(), None, false).unwrap_err().to_string();
    assert!(error.contains("network worker") && error.contains("`lenient`"), "{error}");
}

#[test]
fn a_fio_file_becomes_its_jobs() {
    let load = strict(FIO);
    insta::assert_snapshot!(summary(&load));
}

#[test]
fn a_script_of_diskspd_becomes_its_jobs() {
    let load = strict(DISKSPD);
    insta::assert_snapshot!(summary(&load));
}

/// Everything about a load that differs from the defaults, short enough to be judged by eye.
fn summary(load: &ImportedLoad) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for job in &load.jobs {
        let l = &job.load;
        let _ = writeln!(
            out,
            "{} (group {}) on {:?}, size {:?}: {} x {} outstanding, ramp {} ms, {} ms, {:?}, direct {}, seed {}",
            job.name,
            job.group,
            job.target,
            job.size_bytes,
            l.workers,
            l.outstanding,
            l.ramp_ns / 1_000_000,
            l.time_ns / 1_000_000,
            l.engine,
            l.direct,
            l.seed
        );
        let _ = writeln!(
            out,
            "  rate {:?}, flush {:?}, content {}/{}, verify {}, processors {:?}",
            l.rate,
            l.flush_every,
            l.content.compressible_percent,
            l.content.duplicate_percent,
            l.verify,
            l.processors
        );
        for line in &l.access.lines {
            let _ = writeln!(
                out,
                "  {} B {} %, read {}, random {}, trim {}, align {}, {} ns after {}, {:?}",
                line.size_bytes,
                line.share_percent,
                line.read_percent,
                line.random_percent,
                line.trim_percent,
                line.align_bytes,
                line.delay_ns,
                line.burst,
                line.placement
            );
        }
    }
    for note in &load.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

#[test]
fn diskspd_options_mean_what_they_say() {
    let one =
        |options: &str| diskspd(options).unwrap_or_else(|error| panic!("{options}: {error}")).jobs.remove(0);
    let plain = one("x.dat");
    assert_eq!((plain.load.outstanding, plain.load.workers, plain.load.direct), (2, 1, false));
    assert_eq!((plain.load.time_ns, plain.load.ramp_ns), (10_000_000_000, 5_000_000_000));
    assert_eq!(plain.load.access.lines[0], AccessLine::new(65536, 100.0, 0.0));
    assert_eq!(one("-r4K -b8K x").load.access.lines[0].align_bytes, 4096);
    assert_eq!(one("-rs30 x").load.access.lines[0].random_percent, 30.0);
    assert_eq!(one("-s8b -b4K x").load.access.lines[0].placement, Placement::Strided { stride_bytes: 32768 });
    assert_eq!(
        one("-r -rdpct90/10 x").load.access.lines[0].placement,
        Placement::Hot { data_percent: 10.0, access_percent: 90.0 }
    );
    let durable = |options: &str| (one(options).load.write_sync, one(options).load.flush_every);
    assert_eq!(durable("-Sh -w100 x"), (WriteSync::Data, None));
    assert_eq!(durable("-Sh x"), (WriteSync::None, None));
    let written = |options: &str| one(options).load.pattern;
    assert_eq!((written("-w9 x"), written("-w9 -Z x")), ((0..=255).collect(), vec![0]));
    assert!(written("-w9 -Zr x").is_empty() && written("x").is_empty());
    let part = one("-B16M:4M -c64M x");
    assert_eq!((part.load.start_bytes, part.size_bytes), (16 << 20, Some(4 << 20)));
    assert_eq!(one("-B16M -c64M x").size_bytes, Some(48 << 20));
    let lines = one("-r -rdpct80/10:15/20 x").load.access.lines;
    let shares: Vec<_> = lines.iter().map(|line| (line.share_percent, line.placement)).collect();
    let part = |from_percent, to_percent| Placement::Part { from_percent, to_percent };
    assert_eq!(shares, [(80.0, part(0.0, 10.0)), (15.0, part(10.0, 30.0)), (5.0, part(30.0, 100.0))]);
    let targets: Vec<_> =
        diskspd("-d1 io.dat > r.txt").unwrap().jobs.into_iter().map(|job| job.target).collect();
    assert_eq!(targets, [Some("io.dat".to_owned())]);
    assert_eq!((one("-Su x").load.direct, one("-Sb x").load.direct), (true, false));
    assert_eq!(one("-g100i -t3 x").load.rate.unwrap().per_second, 300.0);
    assert_eq!(one("-g64 -b64K x").load.rate.unwrap().per_second, 64_000.0 / 65_536.0);
    assert_eq!(one("-F4 -O8 x").load.workers, 4);
    assert_eq!(one("-o1 x").load.engine, EngineKind::Psync);
    assert_eq!(one("-i5 -j20 x").load.access.lines[0].delay_ns, 20_000_000);
    assert_eq!(one("-c1G x").size_bytes, Some(1 << 30));
    assert_eq!(one("-a0,2 x").load.processors, [0, 2]);
    assert_eq!(diskspd("-b4K a b").unwrap().jobs.len(), 2);
}

#[test]
fn diskspd_options_without_a_meaning_are_refused_by_place() {
    for (options, word) in [
        ("-d10 -Xp.xml x", "line 1, argument 2: -Xp.xml: name the profile's own file instead"),
        ("-si x", "sequential offset"),
        ("-Sm x", "only the flags"),
        ("-q x", "not known"),
        ("-b x", "-b takes a size"),
        ("-d -b4K x", "-d takes"),
        ("-o99999999999 x", "-o takes"),
        ("-w101 x", "percentage"),
    ] {
        let error = diskspd(options).expect_err(options).to_string();
        assert!(error.contains(word), "{options}: {error}");
    }
}

#[test]
fn a_damaged_json_load_names_the_line() {
    let good = write_json(&strict(FIO).jobs).unwrap();
    let error = import(good.replace("\"jobs\"", "\"jbos\"").as_bytes(), None, false).unwrap_err();
    assert!(error.to_string().contains("jbos") && error.to_string().contains("docs/formats.md"), "{error}");
    let newer = good.replacen("\"format\": 1", "\"format\": 2", 1);
    assert!(import(newer.as_bytes(), None, false).unwrap_err().to_string().contains("update"));
}

#[test]
fn what_fio_cannot_say_is_not_said() {
    let mut jobs = strict(FIO).jobs;
    jobs[1].load.access.lines[0].trim_percent = 50.0;
    jobs.remove(0);
    let error = write_fio(&jobs).unwrap_err();
    assert!(error.to_string().contains("trims among writes"), "{error}");
}

fn line() -> impl Strategy<Value = AccessLine> {
    let numbers = (9u32..20, 0u32..=100, 0u32..=100, 0u64..5000, 1u32..9, 9u32..20);
    numbers.prop_map(|(size, read, random, delay_ms, burst, align)| AccessLine {
        delay_ns: delay_ms * 1_000_000,
        burst: if delay_ms > 0 { burst } else { 1 },
        align_bytes: 1 << align,
        ..AccessLine::new(1 << size, read.into(), random.into())
    })
}

fn job() -> impl Strategy<Value = ImportedJob> {
    let load =
        (line(), 1u32..200, 1u32..9, 1u64..4000, 0u64..100, any::<u64>(), prop::option::of(1u64..1 << 20));
    load.prop_map(|(line, outstanding, workers, time, ramp, seed, mib)| {
        let size_bytes = mib.map(|mib| mib << 20);
        let mut load = LoadSpec::new(AccessSpec::single(line), size_bytes.unwrap_or(ASSUMED_REGION_BYTES));
        (load.outstanding, load.workers, load.seed) = (outstanding, workers, seed);
        (load.time_ns, load.ramp_ns) = (time * 1_000_000_000, ramp * 1_000_000_000);
        ImportedJob {
            name: "a job".into(),
            load,
            target: Some("/srv/x.img".into()),
            size_bytes,
            group: 0,
            schedule: Schedule::default(),
        }
    })
}

#[test]
fn a_vdbench_file_becomes_a_job_for_each_target_and_a_group_for_each_pass() {
    let load = strict(VDBENCH);
    let rows: Vec<(&str, &str, u32)> = load
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.target.as_deref().unwrap_or_default(), job.group))
        .collect();
    assert_eq!(
        rows,
        [
            ("run1, sd1", "/dev/sda", 0),
            ("run1, sd2", "/dev/sdb", 0),
            ("run2 1, sd1", "/dev/sda", 1),
            ("run2 1, sd2", "/dev/sdb", 1),
            ("run2 2, sd1", "/dev/sda", 2),
            ("run2 2, sd2", "/dev/sdb", 2),
        ]
    );
    let first = &load.jobs[0].load;
    assert_eq!((first.ramp_ns, first.time_ns), (1_800_000_000_000, 3_600_000_000_000));
    assert_eq!((first.outstanding, first.workers, first.direct, first.rate), (4, 1, true, None));
    assert_eq!(first.access, AccessSpec::single(AccessLine::new(4096, 70.0, 100.0)));
    assert_eq!((load.jobs[0].size_bytes, load.jobs[1].size_bytes), (None, Some(10 << 30)));
    // The first interval is no part of Vdbench's totals, and two targets have half of a rate each.
    let last = &load.jobs[5].load;
    assert_eq!((last.ramp_ns, last.time_ns), (5_000_000_000, 55_000_000_000));
    assert_eq!(last.rate.map(|rate| (rate.per_second, rate.arrivals)), Some((500.0, Arrivals::Constant)));
    assert_eq!(last.access, AccessSpec::single(AccessLine::new(65536, 0.0, 0.0)));
    let notes = load.notes.join("\n");
    for part in ["outstanding I/Os of one worker", "first interval", "debug (line 2)", "hitarea (line 4)"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn what_vdbench_can_and_this_cannot_is_named_with_its_line() {
    let sd = "sd=a,lun=/tmp/a,size=1g\n";
    for (text, says) in [
        ("fsd=f,anchor=/x\n", "line 2: fsd: file systems"),
        ("hd=other,system=there\n", "line 2: system=there: run it there"),
        ("wd=w,sd=b\nrd=r,wd=w\n", "line 2: sd=b: there is no such storage definition"),
        ("wd=w,sd=a\nrd=r,wd=x\n", "line 3: wd=x: there is no such workload definition"),
        ("wd=w,sd=a\nwd=v,sd=a\nrd=r,wd=(w,v)\n", "line 4: a is under v and another workload"),
        ("wd=w,sd=a\nrd=r,wd=w,iorate=curve\n", "virtbench saturate"),
        ("sd=c,lun=$lun\nwd=w,sd=c\nrd=r,wd=w\n", "write the target in the variable's place"),
        ("wd=w,sd=a,rhpct=50\nrd=r,wd=w\n", "line 2: rhpct=50: nothing here does that"),
        ("validate=yes\nwd=w,sd=a\nrd=r,wd=w\n", "line 2: validate=yes"),
        ("wd=w,sd=a,xfersize=(4k,8k,4k)\nrd=r,wd=w\n", "write a size, or (size,percent,...)"),
        ("wd=w,sd=a\nrd=r,wd=w,forthreads=(1-4096,1)\n", "write a number, or a list of them"),
    ] {
        let error = import(format!("{sd}{text}").as_bytes(), None, false).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn parts_of_targets_and_loops_are_as_vdbench_has_them() {
    let text = "sd=a,lun=/tmp/a,size=1g,range=(50,100),threads=1\nwd=w,sd=a,xfersize=(4k,75,8k,25)\n\
        rd=r,wd=w,forthreads=(1-4,d),forrdpct=(0,100),elapsed=10\n";
    let load = strict(text);
    let rows: Vec<(u32, f64, u32)> = load
        .jobs
        .iter()
        .map(|job| (job.load.outstanding, job.load.access.lines[0].read_percent, job.group))
        .collect();
    assert_eq!(rows, [(1, 0.0, 0), (2, 0.0, 1), (4, 0.0, 2), (1, 100.0, 3), (2, 100.0, 4), (4, 100.0, 5)]);
    let first = &load.jobs[0];
    assert_eq!((first.load.start_bytes, first.size_bytes), (1 << 29, Some(1 << 29)));
    assert_eq!(first.load.engine, EngineKind::Psync);
    let shares: Vec<(u64, f64)> =
        first.load.access.lines.iter().map(|line| (line.size_bytes, line.share_percent)).collect();
    assert_eq!(shares, [(4096, 75.0), (8192, 25.0)]);
}

proptest! {
    #[test]
    fn json_goes_round(job in job()) {
        let text = write_json(std::slice::from_ref(&job)).unwrap();
        prop_assert_eq!(import(text.as_bytes(), None, false).unwrap().jobs, vec![job]);
    }

    #[test]
    fn fio_goes_round(job in job()) {
        let text = write_fio(std::slice::from_ref(&job)).unwrap();
        let line = &job.load.access.lines[0];
        let (mut job, sequential) = (job.clone(), line.random_percent < 100.0);
        // fio knows no other order.
        job.load.traversal.position_per_direction =
            sequential && (1.0..100.0).contains(&line.read_percent);
        job.load.traversal.same_start = sequential && job.load.workers > 1;
        prop_assert_eq!(import(text.as_bytes(), None, false).unwrap().jobs, vec![job]);
    }

    #[test]
    fn iometer_goes_round(job in job(), shares in prop::collection::vec(1u32..30, 0..3)) {
        let mut job = job;
        let mut rest = 100.0;
        for share in shares {
            let mut line = job.load.access.lines[0].clone();
            line.share_percent = f64::from(share) + 0.5;
            rest -= line.share_percent;
            job.load.access.lines.push(line);
        }
        job.load.access.lines[0].share_percent = rest;
        let text = write_icf(std::slice::from_ref(&job)).unwrap();
        prop_assert_eq!(import(text.as_bytes(), None, false).unwrap().jobs, vec![job], "{}", text);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), lenient: bool) {
        for format in [None, Some(Format::Icf), Some(Format::Fio), Some(Format::Diskspd), Some(Format::Vdbench), Some(Format::Json)] {
            let _ = import(&bytes, format, lenient);
        }
    }

    /// Examples with a piece cut out and another put in reach deeper than random bytes.
    #[test]
    fn no_damage_panics(which in 0usize..4, at in 0usize..2000, length in 0usize..40, patch in "[-0-9a-z,'=\\[\\]/:%\n é]{0,12}") {
        let mut text = [ICF, FIO, DISKSPD, VDBENCH][which].to_owned();
        let clamp = |text: &str, mut at: usize| { at = at.min(text.len()); while !text.is_char_boundary(at) { at -= 1 } at };
        let (from, to) = (clamp(&text, at), clamp(&text, at + length));
        text.replace_range(from..to, &patch);
        for lenient in [false, true] {
            if let Ok(load) = import(text.as_bytes(), None, lenient) {
                prop_assert!(load.jobs.iter().all(|job| job.load.validate().is_ok()));
            }
        }
    }
}
