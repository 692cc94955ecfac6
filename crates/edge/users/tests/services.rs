//! Users of real servers, which the tests start, and of servers that misbehave.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_record::{UsersOperation, UsersOutcome, UsersPlan, UsersSecond, UsersService};
use virtbench_units::decode_histogram;
use virtbench_users::{
    Address, Aim, KeyValue, LoadEvent, LocalKind, LocalService, Page, UsersError, Web, run,
};
use virtbench_workload::{Arrivals, Rate};

static NEVER: AtomicBool = AtomicBool::new(false);
const MS: u64 = 1_000_000;

fn plan(service: UsersService) -> UsersPlan {
    UsersPlan {
        service,
        users: 4,
        threads: 2,
        ramp_up_ns: 200 * MS,
        time_ns: 2_000 * MS,
        rate: None,
        think_ns: None,
        timeout_ns: 5_000 * MS,
        seed: 7,
    }
}

fn web(server: &LocalService, paths: &[&str]) -> Web {
    let pages: Vec<Page> = paths.iter().map(|path| Page::parse(path).unwrap()).collect();
    Web::new(Address::parse(&server.address(), 80).unwrap(), None, &pages).unwrap()
}

fn store(address: &str) -> KeyValue {
    KeyValue::new(Address::parse(address, 6379).unwrap(), None, (1_000, 100), (90, 10)).unwrap()
}

fn applied<S: virtbench_users::Service>(service: &S, plan: &UsersPlan) -> UsersOutcome {
    run(service, &Aim::default(), plan, &NEVER, &mut |_| {}).unwrap()
}

/// Counts agree with each other: of the whole, of the kinds, of the series, of the histograms.
fn assert_sound(outcome: &UsersOutcome) {
    let kinds = outcome.operations.values();
    assert_eq!(outcome.all.completed, kinds.clone().map(|kind| kind.completed).sum::<u64>());
    assert_eq!(outcome.all.failed, kinds.map(|kind| kind.failed).sum::<u64>());
    assert_eq!(outcome.all.failed, outcome.error_kinds.values().sum::<u64>());
    assert_eq!(outcome.all.completed, outcome.series.iter().map(|second| second.completed).sum::<u64>());
    assert_eq!(outcome.all.failed, outcome.series.iter().map(|second| second.failed).sum::<u64>());
    let histogram = outcome.all.histogram.as_ref().map(|text| decode_histogram(text).unwrap());
    let of_all = |of: fn(&UsersOperation) -> u64| outcome.operations.values().map(of).sum::<u64>();
    assert_eq!(outcome.all.unfinished, of_all(|kind| kind.unfinished));
    assert_eq!(outcome.all.timed_out, of_all(|kind| kind.timed_out));
    let timed = outcome.all.completed + outcome.all.timed_out + outcome.all.unfinished;
    assert_eq!(histogram.map_or(0, |histogram| histogram.len()), timed);
    let rate = outcome.all.completed as f64 * 1e9 / outcome.elapsed_ns as f64;
    assert!((outcome.all.per_second - rate).abs() < 1e-6 * rate.max(1.0));
}

#[test]
fn pages_are_asked_for_by_their_weights_and_failures_counted_by_kind() {
    let server = LocalService::start(LocalKind::Nginx).unwrap();
    let alone = UsersPlan { users: 1, threads: 1, ..plan(UsersService::Web) };
    let outcome = applied(&web(&server, &["/=3", "/16k=1"]), &alone);
    assert_sound(&outcome);
    assert!(outcome.server.as_ref().unwrap().starts_with("nginx"), "{:?}", outcome.server);
    assert_eq!((outcome.all.failed, outcome.interrupted, outcome.series.len()), (0, false, 2));
    let of = |path: &str| outcome.operations[path].completed as f64;
    // More than nginx answers on one connection, so that the user had to connect again.
    assert!(outcome.all.completed > 1_000, "{}", outcome.all.completed);
    assert!((2.4..3.7).contains(&(of("/") / of("/16k"))), "{} and {}", of("/"), of("/16k"));
    assert!(outcome.own_cpu_ns[0] > 0 && outcome.busiest_thread_percent > 0.0);

    let paths = ["/", "/moved", "/broken", "/none"];
    let some = UsersPlan { rate: Some(rate(200.0)), ..plan(UsersService::Web) };
    let outcome = applied(&web(&server, &paths), &some);
    assert_sound(&outcome);
    let kinds: Vec<&str> = outcome.error_kinds.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["HTTP 404", "HTTP 500"]);
    for (path, fails) in [("/", false), ("/moved", false), ("/broken", true), ("/none", true)] {
        let one = &outcome.operations[path];
        assert_eq!((one.failed > 50, one.completed > 50), (fails, !fails), "{path}: {one:?}");
        // One that is in flight at the end counts with the time that it has waited, however it would have ended.
        let waits = one.unfinished > 0;
        assert_eq!(one.latency_ns.is_none(), fails && !waits, "what failed has no response time: {one:?}");
    }
}

fn rate(per_second: f64) -> Rate {
    Rate { per_second, arrivals: Arrivals::Constant }
}

#[test]
fn values_are_set_and_got_at_a_rate_and_with_think_times() {
    let server = LocalService::start(LocalKind::Redis).unwrap();
    let store = store(&server.address());
    let outcome = applied(&store, &plan(UsersService::KeyValue));
    assert_sound(&outcome);
    assert!(outcome.server.as_ref().unwrap().starts_with("Redis "), "{:?}", outcome.server);
    let of = |name: &str| outcome.operations[name].completed as f64;
    assert!((0.07..0.13).contains(&(of("set") / (of("get") + of("set")))), "{:?}", outcome.operations.keys());

    // Without a ramp, so that nothing due before the window is answered in it.
    let open = UsersPlan { rate: Some(rate(500.0)), ramp_up_ns: 0, ..plan(UsersService::KeyValue) };
    let outcome = applied(&store, &open);
    assert_sound(&outcome);
    let kept = outcome.open_loop.as_ref().unwrap();
    assert_eq!((kept.offered, kept.saturated), (1_000, false));
    let in_flight = u64::from(open.users);
    let least = 1_000 - kept.backlog_end - in_flight;
    assert!((least..=1_000).contains(&outcome.all.completed), "{} of {least}", outcome.all.completed);

    let thinking = UsersPlan { users: 40, think_ns: Some(100 * MS), ..plan(UsersService::KeyValue) };
    let outcome = applied(&store, &thinking);
    // Forty users who think for a tenth of a second ask 400 times a second; that is 800 with a deviation of 28.
    assert!((680..=920).contains(&outcome.all.completed), "{}", outcome.all.completed);
}

#[test]
fn users_begin_at_the_agreed_moment_or_say_how_late_they_were() {
    let server = LocalService::start(LocalKind::Redis).unwrap();
    let store = store(&server.address());
    let short = UsersPlan { ramp_up_ns: 0, time_ns: 100 * MS, ..plan(UsersService::KeyValue) };
    let now_ns = virtbench_engine::monotonic_ns();
    for (at_ns, is_late) in [(now_ns + 1_500 * MS, false), (1, true)] {
        let aim = Aim { begin_at_ns: Some(at_ns), ..Aim::default() };
        let outcome = run(&store, &aim, &short, &NEVER, &mut |_| {}).unwrap();
        assert_eq!(outcome.begin_ns == at_ns, !is_late, "{at_ns} {outcome:?}");
        assert_eq!(outcome.notes.iter().any(|note| note.contains("after the agreed moment")), is_late);
    }
}

/// A server of Redis's protocol that answers `+OK` to whatever comes, except while it is told to pause.
struct Pausing {
    address: String,
    until: Arc<Mutex<Option<Instant>>>,
    answered: Arc<AtomicU64>,
}

impl Pausing {
    /// One whose threads end with the test's process.
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (until, answered) = (Arc::new(Mutex::new(None)), Arc::new(AtomicU64::new(0)));
        let (waits, counts) = (Arc::clone(&until), Arc::clone(&answered));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (waits, counts) = (Arc::clone(&waits), Arc::clone(&counts));
                thread::spawn(move || answer(stream, &waits, &counts));
            }
        });
        Self { address, until, answered }
    }

    fn pause(&self, time: Duration) {
        *self.until.lock().unwrap() = Some(Instant::now() + time);
    }
}

fn answer(mut stream: TcpStream, until: &Mutex<Option<Instant>>, answered: &AtomicU64) {
    let mut request = vec![0; 64 << 10];
    while stream.read(&mut request).is_ok_and(|bytes| bytes > 0) {
        while until.lock().unwrap().is_some_and(|until| Instant::now() < until) {
            thread::sleep(Duration::from_millis(1));
        }
        answered.fetch_add(1, Ordering::Relaxed);
        if stream.write_all(b"+OK\r\n").is_err() {
            return;
        }
    }
}

/// A store with so few keys that setting them is one small request.
fn pausing_store(server: &Pausing) -> KeyValue {
    KeyValue::new(Address::parse(&server.address, 6379).unwrap(), None, (10, 10), (1, 1)).unwrap()
}

#[test]
fn a_pause_of_the_server_is_in_the_response_times_of_an_open_loop() {
    let server = Pausing::start();
    let store = pausing_store(&server);
    let paused = |plan: &UsersPlan| {
        let mut seconds = 0;
        run(&store, &Aim::default(), plan, &NEVER, &mut |event| {
            if matches!(event, LoadEvent::Second(_)) {
                seconds += 1;
                if seconds == 1 {
                    server.pause(Duration::from_secs(1));
                }
            }
        })
        .unwrap()
    };
    let whole = UsersPlan { time_ns: 4_000 * MS, ..plan(UsersService::KeyValue) };
    let open = paused(&UsersPlan { rate: Some(rate(100.0)), ..whole.clone() });
    assert_sound(&open);
    assert!((398..=400).contains(&open.all.completed), "all that were due in a pause came: {open:?}");
    let histogram = decode_histogram(open.all.histogram.as_ref().unwrap()).unwrap();
    let slow = histogram.count_between(100 * MS, u64::MAX);
    // A hundred were due in the second without answers; the last ten of them waited for less than a tenth of a second.
    assert!((80..=110).contains(&slow), "{slow} were slow");
    assert!(open.all.latency_ns.unwrap().max > 900 * MS);
    // A closed loop hides it: only those are slow that were being answered.
    let closed = paused(&UsersPlan { think_ns: Some(10 * MS), ..whole });
    let histogram = decode_histogram(closed.all.histogram.as_ref().unwrap()).unwrap();
    assert!(histogram.count_between(100 * MS, u64::MAX) <= 8, "{closed:?}");
}

#[test]
fn operations_that_take_too_long_fail_and_the_user_goes_on() {
    let server = Pausing::start();
    let store = pausing_store(&server);
    let mut seconds = 0;
    let impatient = UsersPlan {
        timeout_ns: 200 * MS,
        think_ns: Some(20 * MS),
        time_ns: 3_000 * MS,
        ..plan(UsersService::KeyValue)
    };
    let outcome = run(&store, &Aim::default(), &impatient, &NEVER, &mut |event| {
        if matches!(event, LoadEvent::Second(_)) {
            seconds += 1;
            if seconds == 1 {
                server.pause(Duration::from_secs(1));
            }
        }
    })
    .unwrap();
    assert_sound(&outcome);
    let kinds: Vec<&str> = outcome.error_kinds.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["no answer within 200ms"], "{outcome:?}");
    // Four users, and five times a fifth of a second.
    assert!((8..=24).contains(&outcome.all.failed), "{}", outcome.all.failed);
    assert!(
        outcome.series[2].completed > 20,
        "after the pause they are answered again: {:?}",
        outcome.series
    );
    // They stand in the response times with what they waited.
    assert_eq!(outcome.all.timed_out, outcome.all.failed);
    let longest = outcome.all.latency_ns.unwrap().max;
    assert!((200 * MS..400 * MS).contains(&longest) && outcome.ended_by.is_none(), "{longest}");
}

#[test]
fn a_server_that_never_answers_again_is_in_every_figure() {
    let server = Pausing::start();
    let store = pausing_store(&server);
    let frozen = |plan: &UsersPlan| {
        let (mut is_paused, before) = (false, server.answered.load(Ordering::Relaxed));
        let outcome = run(&store, &Aim::default(), plan, &NEVER, &mut |event| {
            let answered = server.answered.load(Ordering::Relaxed) - before;
            if matches!(event, LoadEvent::Running) && answered > 100 && !is_paused {
                is_paused = true;
                server.pause(Duration::from_secs(60));
            }
        });
        server.pause(Duration::ZERO);
        let outcome = outcome.unwrap();
        assert_sound(&outcome);
        assert!(outcome.elapsed_ns == 2_000 * MS && !outcome.interrupted);
        outcome
    };
    let closed = frozen(&plan(UsersService::KeyValue));
    assert_eq!(closed.all.unfinished, 4);
    assert!(closed.all.latency_ns.unwrap().max > 1_500 * MS, "{closed:?}");
    let note = closed.notes.iter().find(|note| note.contains("had not ended")).unwrap();
    assert!(note.starts_with("4 operations"), "{note}");
    // In an open loop all that were due wait, in the percentiles and in the last second of the series.
    let open = frozen(&UsersPlan { rate: Some(rate(500.0)), ..plan(UsersService::KeyValue) });
    let backlog = open.open_loop.as_ref().unwrap().backlog_end;
    assert!(open.all.unfinished == backlog + 4 && backlog > 500, "{open:?}");
    let latency = open.all.latency_ns.unwrap();
    assert!(latency.p50 > 300 * MS && latency.p95 > 1_000 * MS, "{latency:?}");
    assert!(open.series.last().unwrap().p95_ns.unwrap() > 1_000 * MS, "{:?}", open.series);
    for kind in open.operations.values() {
        assert!(kind.unfinished * 3 > backlog && kind.latency_ns.unwrap().p95 > 1_000 * MS, "{kind:?}");
    }
}

#[test]
fn a_server_that_is_killed_leaves_what_was_measured() {
    for kind in [LocalKind::Nginx, LocalKind::Redis] {
        let mut server = LocalService::start(kind).unwrap();
        let address = server.address();
        let pages = web(&server, &["/"]);
        let long = UsersPlan { ramp_up_ns: 0, time_ns: 60_000 * MS, ..plan(UsersService::Web) };
        let begun = Instant::now();
        let mut each = |event: LoadEvent<'_, UsersSecond>| {
            if matches!(event, LoadEvent::Second(second) if second.start_ns == 0) {
                server.crash().unwrap();
            }
        };
        let outcome = match kind {
            LocalKind::Nginx => run(&pages, &Aim::default(), &long, &NEVER, &mut each),
            LocalKind::Redis => run(&store(&address), &Aim::default(), &long, &NEVER, &mut each),
        };
        let outcome = outcome.unwrap();
        assert_sound(&outcome);
        assert!(begun.elapsed() < Duration::from_secs(20), "{kind:?}: {:?}", begun.elapsed());
        let why = outcome.ended_by.as_ref().unwrap();
        assert!(why.contains("cannot connect") && outcome.interrupted, "{why}");
        assert!(outcome.series[0].completed > 100 && outcome.all.failed > 0, "{:?}", outcome.series);
        let error = run(&pages, &Aim::default(), &long, &NEVER, &mut |_| {}).unwrap_err();
        let words = error.to_string();
        assert!(
            matches!(error, UsersError::Service { .. }) && words.contains("check that the server"),
            "{words}"
        );
    }
}

#[test]
fn a_server_of_another_kind_is_refused_in_its_own_words() {
    let (nginx, redis) =
        (LocalService::start(LocalKind::Nginx).unwrap(), LocalService::start(LocalKind::Redis).unwrap());
    let web_plan = plan(UsersService::Web);
    let said = run(&store(&nginx.address()), &Aim::default(), &web_plan, &NEVER, &mut |_| {}).unwrap_err();
    assert!(said.to_string().contains("Redis's protocol"), "{said}");
    let said = run(&web(&redis, &["/"]), &Aim::default(), &web_plan, &NEVER, &mut |_| {}).unwrap_err();
    assert!(matches!(said, UsersError::Service { .. }), "{said}");
    assert!(said.to_string().contains("HTTP") || said.to_string().contains("connection ended"), "{said}");
}

#[test]
fn a_stop_keeps_what_was_measured_and_one_before_measuring_leaves_nothing() {
    let server = LocalService::start(LocalKind::Redis).unwrap();
    let store = store(&server.address());
    let stop = AtomicBool::new(false);
    let long = UsersPlan { ramp_up_ns: 0, time_ns: 60_000 * MS, ..plan(UsersService::KeyValue) };
    let begun = Instant::now();
    let outcome = run(&store, &Aim::default(), &long, &stop, &mut |event| {
        if matches!(event, LoadEvent::Second(_)) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let outcome = outcome.unwrap();
    assert_sound(&outcome);
    assert!(outcome.interrupted && outcome.ended_by.is_none() && begun.elapsed() < Duration::from_secs(10));
    let nothing = run(&store, &Aim::default(), &long, &stop, &mut |_| {});
    assert!(matches!(nothing, Err(UsersError::Stopped)), "{nothing:?}");
}

/// The server takes connections and never says a word.
#[test]
fn a_service_that_is_never_prepared_is_left_at_a_stop() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let store = store(&listener.local_addr().unwrap().to_string());
    let stop = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            let silent = listener.accept().unwrap();
            stop.store(true, Ordering::Relaxed);
            thread::sleep(Duration::from_secs(3));
            drop(silent);
        });
        run(&store, &Aim::default(), &plan(UsersService::KeyValue), &stop, &mut |_| {})
    });
    // A connection that ends would be the service's fault, and no stop.
    assert!(matches!(ended, Err(UsersError::Stopped)), "{ended:?}");
}

#[test]
fn a_server_that_hangs_or_turns_users_away_is_named_for_that_within_the_time_limit() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = Address::parse(&silent.local_addr().unwrap().to_string(), 80).unwrap();
    let impatient = UsersPlan { timeout_ns: 300 * MS, ..plan(UsersService::Web) };
    let page = [Page::parse("/").unwrap()];
    let pages = Web::new(address.clone(), None, &page).unwrap();
    let keys = KeyValue::new(address, None, (10, 10), (1, 1)).unwrap();
    let begun = Instant::now();
    for said in [
        run(&pages, &Aim::default(), &impatient, &NEVER, &mut |_| {}).unwrap_err().to_string(),
        run(&keys, &Aim::default(), &impatient, &NEVER, &mut |_| {}).unwrap_err().to_string(),
    ] {
        assert!(said.contains("no answer within 300ms") && said.contains("--timeout"), "{said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());

    let server = LocalService::start(LocalKind::Redis).unwrap();
    let mut admin = TcpStream::connect(server.address()).unwrap();
    admin.write_all(b"CONFIG SET requirepass hush\r\n").unwrap();
    admin.read_exact(&mut [0; 5]).unwrap();
    let said = run(&store(&server.address()), &Aim::default(), &impatient, &NEVER, &mut |_| {}).unwrap_err();
    assert!(said.to_string().contains("NOAUTH") && said.to_string().contains("REDISCLI_AUTH"), "{said}");
    assert!(!said.to_string().contains("listens"), "{said}");
}

#[test]
fn a_load_that_makes_no_sense_is_refused() {
    let server = Pausing::start();
    let whole = plan(UsersService::KeyValue);
    for wrong in [
        UsersPlan { users: 0, ..whole.clone() },
        UsersPlan { threads: 5, ..whole.clone() },
        UsersPlan { time_ns: 0, ..whole.clone() },
        UsersPlan { timeout_ns: 0, ..whole.clone() },
        UsersPlan { rate: Some(rate(1.0)), think_ns: Some(1), ..whole.clone() },
    ] {
        let refused = run(&pausing_store(&server), &Aim::default(), &wrong, &NEVER, &mut |_| {});
        assert!(matches!(refused, Err(UsersError::Plan(_))), "{wrong:?}");
    }
}
