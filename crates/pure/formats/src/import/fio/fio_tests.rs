//! What fio's options mean here, and what is refused.

use virtbench_workload::{Amount, Arrivals, Placement};

use super::super::*;

fn fio(options: &str) -> Result<ImportedLoad, ImportError> {
    import(format!("[j]\ntime_based\nruntime=1\n{options}\n").as_bytes(), Some(Format::Fio), false)
}

#[test]
fn fio_options_mean_what_they_say() {
    let one =
        |options: &str| fio(options).unwrap_or_else(|error| panic!("{options}: {error}")).jobs.remove(0);
    let line = |options: &str| one(options).load.access.lines.remove(0);
    assert_eq!(line("rw=write:4k\nbs=8k").placement, Placement::Strided { stride_bytes: 12288 });
    assert_eq!(line("rw=write:4k\nbs=8k").align_bytes, 4096);
    assert_eq!(line("rw=randtrim").trim_percent, 100.0);
    assert_eq!(line("rw=randrw\nrwmixwrite=20").read_percent, 80.0);
    assert_eq!(line("rw=randread\npercentage_random=40").random_percent, 40.0);
    assert_eq!(line("rw=read\npercentage_random=40").random_percent, 0.0);
    assert_eq!(line("rw=randread\nrandom_distribution=zipf:1.2").placement, Placement::Zipf { theta: 1.2 });
    assert_eq!(
        line("rw=randread\nrandom_distribution=zoned:90/10:10/90").placement,
        Placement::Hot { data_percent: 10.0, access_percent: 90.0 }
    );
    assert_eq!(
        (line("thinktime=2ms\nthinktime_blocks=4").delay_ns, line("thinktime=50").delay_ns),
        (2_000_000, 50_000)
    );
    assert_eq!(one("ioengine=null").target.as_deref(), Some("null"));
    assert_eq!(
        one("ioengine=nbd\nuri=nbd+unix:///?socket=/s").target.as_deref(),
        Some("nbd+unix:///?socket=/s")
    );
    assert_eq!(
        one("ioengine=libblkio\nlibblkio_driver=virtio-blk-vhost-user\nlibblkio_path=/s").target.as_deref(),
        Some("vhost-user:/s")
    );
    assert_eq!(one("directory=/srv/\nsize=1m").target.as_deref(), Some("/srv/j.0.0"));
    assert_eq!(one("filename=/a\\:b").target.as_deref(), Some("/a:b"));
    assert_eq!(one("iodepth=32").load.outstanding, 1);
    assert_eq!(one("ioengine=libaio\niodepth=32").load.outstanding, 32);
    let rate = one("filename=/x\nrate_iops=500\nnumjobs=4\nrate_process=poisson").load.rate.unwrap();
    assert_eq!((rate.per_second, rate.arrivals), (2000.0, Arrivals::Poisson));
    assert_eq!(one("rate=4m\nbs=4k").load.rate.unwrap().per_second, 1024.0);
    assert_eq!(one("rw=randrw\nrwmixread=75\nrate_iops=300,100").load.rate.unwrap().per_second, 400.0);
    let both = one("rw=randrw\nrwmixread=70\nrate_iops=525,175").load;
    assert_eq!((both.access.lines[0].read_percent, both.rate.unwrap().per_second), (75.0, 700.0));
    let mixed = "rw=randwrite\nnorandommap\nbssplit=4k/50:64k/50\n";
    let rate = |options: &str| one(&format!("{mixed}{options}")).load.rate.unwrap().per_second;
    assert_eq!(rate("rate=1m"), (1 << 20) as f64 / 34816.0, "bytes pass at the rate, as in fio");
    assert_eq!(rate("rate_iops=100"), 409_600.0 / 34816.0);
    assert_eq!(
        (rate("rate=1m\nrate_process=poisson"), rate("rate_iops=9\nrate_process=poisson")),
        (256.0, 9.0)
    );
    let seeks = |options: &str| {
        one(options).load.access.lines.iter().map(|l| (l.read_percent, l.random_percent)).collect::<Vec<_>>()
    };
    assert_eq!(seeks("rw=randwrite\npercentage_random=0,25,0"), [(0.0, 25.0)]);
    assert_eq!(seeks("rw=randrw\npercentage_random=40,70"), [(100.0, 40.0), (0.0, 70.0)]);
    assert_eq!(line("rw=randtrim\nbs=2300m").size_bytes, 2300 << 20);
    assert_eq!(
        (one("name=shown").name.as_str(), one("name=shown\nsize=1m").target.as_deref()),
        ("shown", Some("j.0.0"))
    );
    assert!(!one("verify=crc32c\ndo_verify=0").load.verify && one("verify=crc32c").load.verify);
    let shares = |split: &str| {
        let lines = one(&format!("rw=randread\nbssplit={split}")).load.access.lines;
        lines.iter().map(|l| (l.size_bytes >> 10, l.share_percent)).collect::<Vec<_>>()
    };
    assert_eq!(shares("4k/30:8k/30:16k/20"), [(16, 20.0), (4, 30.0), (8, 50.0)], "as fio draws");
    assert_eq!(shares("4k/60:8k/60:16k/20"), [(16, 20.0), (4, 60.0), (8, 20.0)]);
    assert_eq!(one("io_submit_mode=offload\nrate_iops=9").load.rate.unwrap().per_second, 9.0);
    let lines = one("rw=randrw\nbs=4k,64k\nrwmixread=70").load.access.lines;
    let split: Vec<_> = lines.iter().map(|l| (l.size_bytes, l.share_percent, l.read_percent)).collect();
    assert_eq!(split, [(4096, 70.0, 100.0), (65536, 30.0, 0.0)]);
    let lines = one("rw=randread\nbssplit=4k/50:1k/:32k/").load.access.lines;
    assert_eq!(lines.iter().map(|l| l.share_percent).collect::<Vec<_>>(), [50.0, 25.0, 25.0]);
}

#[test]
fn fio_options_without_a_meaning_are_refused_by_line() {
    for (options, word) in [
        ("atomic=1", "line 4: atomic=1: an option of fio that cannot be honoured here"),
        ("fill_device=1\nrw=write\nfilename=/srv/a", "only whole block devices"),
        ("fill_device=1\nrw=randwrite\nfilename=/dev/sda", "only whole block devices"),
        ("zonesize=4k", "zonemode=strided only"),
        ("zonemode=zbd", "only none and strided"),
        ("iodpeth=4", "line 4: iodpeth=4: fio has no such option; did you mean iodepth?"),
        ("size=20%", "does not exist yet"),
        ("filename=/a:/b", "fio uses /a and /b in turn"),
        ("filename=/a\nfilename=/b", "line 5: filename=/b: fio uses /a and /b in turn"),
        ("filename=/a:/a\nrw=randread", "named twice"),
        ("rw=randrw\nrate_iops=300,", "no limit in fio"),
        ("rw=randread\nbssplit=4k/50:64k/50\nrate=1m", "add norandommap"),
        ("fsync=3\nfdatasync=4", "only fsync=3 would be done"),
        ("sync=2", "known are 0"),
        ("buffer_pattern='x.bin'", "no file can be its source"),
        ("ioengine=mmap", "known are"),
        ("rw=randtrimwrite", "pattern"),
        ("filename=${DISK}", "the variable DISK is not set"),
        ("bs=4kk", "not a size"),
        ("bs=99999999999999999999999", "not a size"),
        ("bsrange=1k-1m", "more than 256 sizes"),
        ("random_distribution=normal:5", "zipf"),
        ("random_distribution=zoned:50/5:30/15", "100 %"),
        ("iodepth=-1", "not a number"),
        ("filename=", "a value is missing"),
        ("wait_for=k", "no job of that name stands before"),
        ("steadystate=iops:10%", "steadystate_duration"),
        ("startdelay=5-10", "not a time"),
    ] {
        let error = fio(options).expect_err(options).to_string();
        assert!(error.contains(word), "{options}: {error}");
        assert!(error.contains("line ") && error.contains("`lenient`"), "{options}: {error}");
    }
}

#[test]
fn every_complaint_about_a_fio_file_stands_on_a_line_of_its_own() {
    let text = "[a\n[b]\niodpeth=3\natomic=1\nioengine=cpuio\n[c]\nbs=4q\nnumjobs=5000\n";
    let error = import(text.as_bytes(), Some(Format::Fio), false).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 7, "{error}");
    for (line, word) in lines.iter().zip([
        "line 1: a section",
        "line 3: iodpeth=3",
        "line 4: atomic",
        "line 5: ioengine=cpuio",
        "line 6: [c] `workers` 5000",
        "line 7: bs=4q",
        "with `lenient` the load runs without what it can",
    ]) {
        assert!(line.starts_with(word), "{line:?} is not {word:?}");
    }
}

#[test]
fn engines_that_load_no_blocks_or_files_are_refused_always() {
    for engine in
        ["cpuio", "http", "filecreate", "net", "rbd", "sg", "io_uring_cmd", "external:/x.so", "nonesuch"]
    {
        for lenient in [false, true] {
            let text = format!("[j]\nioengine={engine}\nsize=1m\n");
            let error = import(text.as_bytes(), Some(Format::Fio), lenient).expect_err(engine).to_string();
            assert!(error.contains("line 2: ioengine="), "{error}");
            assert!(!error.contains("the load runs without"), "{error}");
        }
    }
    assert!(import(b"[j]\nioengine=mmap\n", Some(Format::Fio), true).is_ok());
}

#[test]
fn what_a_fio_job_does_before_it_ends_is_kept() {
    let one = |options: &str| {
        let text = format!("[j]\nioengine=null\n{options}\n");
        let load = import(text.as_bytes(), Some(Format::Fio), false);
        load.unwrap_or_else(|error| panic!("{options}: {error}")).jobs.remove(0)
    };
    let amount = |options: &str| one(options).load.amount;
    let passes = |count| Some(Amount { passes: Some(count), ..Amount::default() });
    assert_eq!(amount("size=1m"), passes(1));
    assert_eq!(amount("size=1m\nloops=3"), passes(3));
    assert_eq!(amount("size=1m\nio_size=200%"), passes(2));
    assert_eq!(amount("size=1m\nruntime=5\ntime_based"), None);
    assert_eq!(
        amount("size=1m\nio_size=64k\nloops=2\nnumber_ios=7"),
        Some(Amount { bytes: Some(131_072), operations: Some(7), passes: None })
    );
    let two = one("size=1m\noffset=64k\noffset_increment=2m\nnumjobs=2");
    assert_eq!(
        (two.load.start_bytes, two.load.worker_step_bytes, two.size_bytes),
        (65536, 2 << 20, Some(1 << 20))
    );
    assert!(one("rw=randread").load.traversal.every_block_once);
    for off in ["norandommap", "random_distribution=zipf:1.2", "bs=4k\nblockalign=8k"] {
        assert!(!one(&format!("rw=randread\n{off}")).load.traversal.every_block_once, "{off}");
    }
    let mixed = one("rw=randread\nbsrange=4k-16k");
    let sizes: Vec<_> =
        mixed.load.access.lines.iter().map(|l| (l.size_bytes, l.share_percent, l.align_bytes)).collect();
    assert_eq!(sizes, [4096, 8192, 12288, 16384].map(|size| (size, 25.0, 4096)));
    let zones = one("rw=randread\nrandom_distribution=zoned:50/5:30/15:20/").load.access.lines;
    assert_eq!(
        zones.iter().map(|l| (l.share_percent, l.placement)).collect::<Vec<_>>(),
        [(50.0, 0.0, 5.0), (30.0, 5.0, 20.0), (20.0, 20.0, 100.0)]
            .map(|(share, from_percent, to_percent)| (share, Placement::Part { from_percent, to_percent }))
    );
    let zones = one("zonemode=strided\nzonesize=1m\nzoneskip=7m").load.access.lines.remove(0);
    assert_eq!(
        (zones.placement, zones.random_percent),
        (Placement::Zones { zone_bytes: 1 << 20, skip_bytes: 7 << 20 }, 100.0)
    );
    let steady = one("steadystate=bw_slope:1%\nss_dur=10\nss_ramp=5s\nsize=1m").schedule.steady.unwrap();
    assert_eq!(
        (steady.figure, steady.slope, steady.percent, steady.window_ns, steady.ramp_ns, steady.check_ns),
        (SteadyMetric::Bandwidth, true, true, 10_000_000_000, 5_000_000_000, 1_000_000_000)
    );
}

#[test]
fn fio_jobs_start_and_end_as_they_say() {
    let text = "[a]\nnumjobs=2\nsize=1m\n[b]\nstartdelay=3\nwait_for=a\n[c]\nstonewall\nexitall\nexit_what=stonewall\n";
    let jobs = import(text.as_bytes(), None, false).unwrap().jobs;
    let summary: Vec<_> = jobs
        .iter()
        .map(|job| (job.name.as_str(), job.target.as_deref().unwrap_or(""), job.group, job.load.workers))
        .collect();
    assert_eq!(
        summary,
        [("a.0", "a.0.0", 0, 1), ("a.1", "a.1.0", 0, 1), ("b", "b.0.0", 0, 1), ("c", "c.0.0", 1, 1)]
    );
    assert_eq!(
        (jobs[2].schedule.delay_ns, jobs[2].schedule.after.as_slice()),
        (3_000_000_000, [0, 1].as_slice())
    );
    assert_eq!(jobs[3].schedule.ends, Some(Ends::Phase));
}

#[test]
fn fio_jobs_of_a_flow_have_their_weights() {
    let text = "[global]\nsize=1m\nflow_sleep=1000\n[a]\nflow=1\n[b]\nflow=8\nflow_id=3\n[c]\n";
    let jobs = import(text.as_bytes(), None, false).unwrap().jobs;
    let flows: Vec<_> =
        jobs.iter().map(|job| job.schedule.flow.map(|flow| (flow.id, flow.weight, flow.sleep_ns))).collect();
    assert_eq!(flows, [Some((0, 1, 1_000_000)), Some((3, 8, 1_000_000)), None]);
    assert!(!jobs[0].schedule.is_plain() && jobs[2].schedule.is_plain());
}

#[test]
fn what_surrounds_a_fio_file_is_asked_for() {
    let variable = |name: &str| (name == "DISK").then(|| "/d".to_owned());
    let size_of = |target: &str| (target == "/d").then_some(1000 << 20);
    let surroundings =
        Surroundings { variable: &variable, size_of: &size_of, processors: 3, ..Surroundings::default() };
    let text = "[j]\nfilename=${DISK}\nsize=30%\noffset=20%\nnumjobs=$ncpus\n[k]\nfilename=/d\noffset=1m\n";
    let jobs = import_within(text.as_bytes(), None, false, &surroundings).unwrap().jobs;
    assert_eq!((jobs[0].size_bytes, jobs[0].load.start_bytes), (Some(300 << 20), 200 << 20));
    assert_eq!((jobs[0].load.workers, jobs[0].target.as_deref()), (3, Some("/d")));
    assert_eq!(jobs[1].size_bytes, Some(999 << 20));
}

#[test]
fn impossible_fio_loads_name_their_job() {
    for options in ["bs=128m", "numjobs=100000", "ioengine=io_uring\niodepth=1000000", "runtime=900000000"] {
        let error = fio(options).expect_err(options).to_string();
        assert!(error.starts_with("line 1: [j] "), "{options}: {error}");
    }
}

#[test]
fn comments_and_sections_are_as_in_fio() {
    let text = "# head\n[global] ; all\nrw=randread # random\n\n[a]\nbs=8k;bs=4k\n[b]\nstonewall\n";
    let load = import(text.as_bytes(), None, false).unwrap();
    let sizes: Vec<_> = load.jobs.iter().map(|j| (j.group, j.load.access.lines[0].size_bytes)).collect();
    assert_eq!(sizes, [(0, 8192), (1, 4096)]);
    for text in ["rw=read\n[a]\n", "[a\nrw=read\n", "[]\n"] {
        let error = import(text.as_bytes(), Some(Format::Fio), false).unwrap_err();
        assert!(matches!(error, ImportError::NotUnderstood { hopeless: 1, .. }), "{error}");
        assert!(error.to_string().starts_with("line 1: "), "{error}");
    }
}

#[test]
fn included_files_stand_where_they_are_included() {
    let text_of = |name: &str| match name {
        "common.fio" => Ok("[global]\nbs=8k\ninclude more.fio\n".to_owned()),
        "more.fio" => Ok("iodepth=7\nioengine=io_uring\n".to_owned()),
        "again.fio" => Ok("include again.fio\n".to_owned()),
        _ => Err("it is not there".to_owned()),
    };
    let surroundings = Surroundings { text_of: &text_of, ..Surroundings::default() };
    let read = |text: &str| import_within(text.as_bytes(), Some(Format::Fio), false, &surroundings);
    let load = read("include common.fio\n[a]\nsize=1m\n").unwrap();
    let job = &load.jobs[0].load;
    assert_eq!((job.access.lines[0].size_bytes, job.outstanding), (8192, 7));
    for (name, why) in
        [("none.fio", "line 2: include none.fio: it is not there"), ("again.fio", "more than 8 files")]
    {
        let error = read(&format!("[a]\ninclude {name}\n")).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn command_lines_are_read_as_fio_reads_them() {
    let read = |text: &str| import(text.as_bytes(), Some(Format::FioCommand), false);
    let text = "fio --bs=8k --ioengine libaio -name=a --rw=randread --time_based --runtime=3 --size 1m --output=x --name=b --size=2m --stonewall";
    let load = read(text).unwrap();
    let jobs: Vec<_> = load.jobs.iter().map(|job| (job.name.as_str(), job.group, job.size_bytes)).collect();
    assert_eq!(jobs, [("a", 0, Some(1 << 20)), ("b", 1, Some(2 << 20))]);
    assert!(load.jobs.iter().all(|job| job.load.access.lines[0].size_bytes == 8192));
    assert_eq!(read("fio --name=a --size=1m\nfio --name=b --size=1m\n").unwrap().jobs[1].group, 1);
    for (text, why) in [
        ("fio --name=a --iodpeth=3", "line 1, argument 2: iodpeth=3"),
        ("fio --section=x jobs.fio", "named as `spec`"),
        ("fio --bs=4k", "no option `name`"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn sizes_written_as_ranges_and_rates_beyond_reach_are_what_fio_makes_of_them() {
    let load =
        import(b"[a]\nsize=1m\nrw=write\nbssplit=4k/40:36k-60k/60\n", Some(Format::Fio), false).unwrap();
    let sizes: Vec<_> =
        load.jobs[0].load.access.lines.iter().map(|line| (line.size_bytes, line.share_percent)).collect();
    assert_eq!(sizes, [(4096, 40.0), (36864, 60.0)]);
    assert!(
        load.notes.iter().any(|note| note.contains("of 36k-60k fio takes the first number")),
        "{:?}",
        load.notes
    );
    let load = import(b"[a]\nsize=1m\nrate_iops=20000m\n", Some(Format::Fio), false).unwrap();
    assert_eq!(load.jobs[0].load.rate, None);
    assert!(load.notes.iter().any(|note| note.contains("limits nothing")), "{:?}", load.notes);
    let one = |options: &str| fio(options).unwrap().jobs.remove(0);
    assert_eq!(one("bsrange=4k:8k").load.access.lines.len(), 2);
    let both = one("rate_iops=10\nthinktime=1ms\nflow=4");
    assert!(both.load.rate.is_some() && both.load.access.lines[0].delay_ns == 1_000_000);
    assert_eq!(both.schedule.flow.unwrap().weight, 4);
    assert!(one("fill_device=1\nrw=write\nfilename=/dev/sda").schedule.must_exist);
    let polls = one("ioengine=pvsync2\nhipri\ndirect=1\niodepth=4").load;
    assert_eq!((polls.engine, polls.outstanding), (virtbench_workload::EngineKind::IoUring, 1));
    assert_eq!(one("ioengine=libaio\niodepth=32\niodepth_batch=8").load.outstanding, 32);
}
