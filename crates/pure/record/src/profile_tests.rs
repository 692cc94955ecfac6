//! What profiles are refused.

use super::*;

fn known<T>(value: T) -> Sourced<T> {
    Sourced::known(value, Source::User)
}

/// [ESX Disk 2003], Table 3.
fn mail_server() -> Profile {
    Profile {
        profile_format: PROFILE_FORMAT,
        name: "mail server".into(),
        host: None,
        host_use: None,
        elapsed_ns: None,
        devices: Vec::new(),
        capacity: Some(Capacity { name: "capacity metric".into(), value: 7122.0 }),
        io_per_second: known(792.0),
        reads_per_second: known(512.0),
        writes_per_second: known(280.0),
        bytes_per_second: known(8.5e6),
        sizes: Sourced::unavailable("not published"),
        random: known(Band::exactly(100.0)),
        workers: known(50),
        outstanding_mean: Sourced::unavailable("not published"),
        outstanding_peak_per_worker: Sourced::unavailable("not published"),
        latency_ns: known(12e6),
        think_ns: known(50e6),
        cpu_user_percent: known(280.0),
        cpu_system_percent: known(120.0),
        cpu_kernel_threads_percent: Sourced::unavailable("not published"),
        footprint: Sourced::unavailable("not published"),
        copied_bytes_per_second: Sourced::unavailable("not published"),
        processors: known(4),
        command: Vec::new(),
        metric: None,
        notes: Vec::new(),
    }
}

#[test]
fn the_paper_s_profile_is_possible_and_comes_back() {
    let profile = mail_server();
    profile.check().unwrap();
    assert_eq!(profile.read_percent().map(f64::round), Some(65.0));
    assert!((profile.size_shares().unwrap()[0].size_bytes - 10_732.0).abs() < 1.0);
    let text = serde_json::to_string(&profile).unwrap();
    assert!(text.contains(r#""source":"user""#) && text.contains(r#""unavailable":"not published""#));
    assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
}

#[test]
fn impossible_figures_are_named() {
    type Change = fn(&mut Profile);
    let cases: [(&str, Change); 15] = [
        ("io_per_second", |p| p.io_per_second = known(0.0)),
        ("io_per_second", |p| p.io_per_second = known(f64::NAN)),
        ("io_per_second", |p| p.io_per_second = Sourced::unavailable("x")),
        ("io_per_second", |p| p.reads_per_second = known(700.0)),
        ("writes_per_second", |p| p.writes_per_second = known(-1.0)),
        ("bytes_per_second", |p| {
            p.sizes = known(vec![SizeShare { size_bytes: 65_536.0, share_percent: 100.0 }]);
        }),
        ("sizes", |p| p.sizes = known(vec![SizeShare { size_bytes: 10_732.0, share_percent: 60.0 }])),
        ("sizes", |p| p.sizes = known(vec![SizeShare { size_bytes: 0.0, share_percent: 100.0 }])),
        ("sizes", |p| p.sizes = known(Vec::new())),
        ("random", |p| p.random = known(Band { low_percent: 80.0, high_percent: 20.0 })),
        ("random", |p| p.random = known(Band::exactly(120.0))),
        ("workers", |p| p.workers = known(0)),
        ("workers", |p| p.workers = known(10)),
        ("cpu_user_percent", |p| p.processors = known(2)),
        ("capacity", |p| p.capacity = Some(Capacity { name: "x".into(), value: 0.0 })),
    ];
    for (figure, change) in cases {
        let mut profile = mail_server();
        change(&mut profile);
        assert_eq!(profile.check().map_err(|error| error.figure), Err(figure));
    }
}

#[test]
fn operations_that_overlap_make_the_concurrency() {
    let mut profile = mail_server();
    assert_eq!(profile.concurrency(), Some(50));
    profile.workers = known(1);
    profile.outstanding_mean = known(15.2);
    profile.outstanding_peak_per_worker = known(16);
    assert_eq!((profile.is_asynchronous(), profile.concurrency()), (true, Some(16)));
}

#[test]
fn a_response_time_that_contradicts_the_rest_is_unavailable_and_nothing_else_is_mended() {
    let whole = mail_server();
    assert_eq!(whole.clone().without_contradiction().unwrap(), whole);
    let too_long = Profile { latency_ns: known(1e12), ..whole.clone() };
    assert!(too_long.check().is_err());
    let mended = too_long.without_contradiction().unwrap();
    let Sourced::Unavailable { unavailable } = &mended.latency_ns else { panic!("{mended:?}") };
    assert!(unavailable.contains("Little's law"), "{unavailable}");
    assert_eq!(Profile { latency_ns: whole.latency_ns.clone(), ..mended }, whole);
    let nothing = Profile { io_per_second: known(0.0), ..whole };
    assert!(nothing.without_contradiction().is_err());
}

#[test]
fn without_io_it_is_the_capacity_that_tells_what_an_application_does() {
    let silent = || Sourced::unavailable("no operation was seen");
    let computing = Profile {
        io_per_second: known(0.0),
        reads_per_second: silent(),
        writes_per_second: silent(),
        bytes_per_second: silent(),
        sizes: Sourced::unavailable("no operation was seen"),
        latency_ns: silent(),
        think_ns: silent(),
        capacity: Some(Capacity { name: "runs/h".into(), value: 3600.0 }),
        ..mail_server()
    };
    assert_eq!(computing.check(), Ok(()));
    assert_eq!(Profile { capacity: None, ..computing }.check().unwrap_err().figure, "io_per_second");
}

#[test]
fn named_workers_keep_several_operations_under_way_where_that_was_seen() {
    let seen = |source| Profile {
        latency_ns: Sourced::known(12e6, source),
        outstanding_peak_per_worker: Sourced::known(1, Source::Tracefs),
        ..mail_server()
    };
    // 792 a second leave one worker 1.26 ms for each, which takes 12 ms.
    let traced = seen(Source::Tracefs).with_workers(1).unwrap();
    assert_eq!((traced.workers.value(), traced.concurrency()), (Some(&1), Some(2)));
    assert_eq!(traced.think_ns.value(), Some(&0.0));
    let many = seen(Source::Tracefs).with_workers(50).unwrap();
    assert_eq!((many.is_asynchronous(), many.concurrency()), (false, Some(50)));
    let think_ns = Sourced::unavailable("the device does not tell");
    let of_the_device = Profile { think_ns, ..seen(Source::BlockStatistics) }.with_workers(1).unwrap();
    assert!(of_the_device.latency_ns.origin().contains("others used the device"), "{of_the_device:?}");
    let told = seen(Source::User).with_workers(1).unwrap_err().to_string();
    assert!(told.contains("Little's law"), "{told}");
}
