//! Users before desktops of which only the marker is drawn.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_counters::thread_clock_ns;
use virtbench_desktop::{
    Desk, Drawing, DrawnDesktop, OperationDone, Rectangle, SecondStep, Times, UsersEvent, UsersPlan, drive,
    slow_down,
};
use virtbench_desktops::{Act, Day, Think, supplied};

const DELAY: Duration = Duration::from_millis(50);

fn day() -> Day {
    let text = supplied::find("small").unwrap().text;
    let mut day = Day::parse(text).unwrap();
    (day.think.least, day.think.most, day.key_pause) = (1_000_000, 5_000_000, 1_000_000);
    day.limits.give_up = 6_000_000_000;
    day
}

fn run(desks: Vec<Desk>, time: Duration) -> (Vec<OperationDone>, Vec<(u32, String, bool)>) {
    run_day(&day(), desks, time)
}

fn run_day(day: &Day, desks: Vec<Desk>, time: Duration) -> (Vec<OperationDone>, Vec<(u32, String, bool)>) {
    let (mut done, mut gone) = (Vec::new(), Vec::new());
    let plan = UsersPlan { day, seed: 1, time, masks: &[] };
    drive(desks, plan, &AtomicBool::new(false), &mut |event| match event {
        UsersEvent::Done(one, _) => done.push(one),
        UsersEvent::Gone { user, why, screenshot } => gone.push((user, why, screenshot.is_some())),
        UsersEvent::Echo(_) | UsersEvent::Restless { .. } => {}
    })
    .unwrap();
    (done, gone)
}

#[test]
fn a_known_delay_is_what_users_measure() {
    let desktops: Vec<_> = (0..4).map(|_| DrawnDesktop::start(Drawing::after(DELAY)).unwrap()).collect();
    let desks = desktops.iter().map(|desktop| desktop.desk().unwrap()).collect();
    let (done, gone) = run(desks, Duration::from_secs(2));
    assert!(gone.is_empty(), "{gone:?}");
    let day = day();
    for user in 0..4 {
        let of_user: Vec<_> = done.iter().filter(|done| done.user == user).collect();
        assert!(of_user.len() > 5 && of_user[0].is_storm, "{of_user:?}");
        assert!(!of_user.last().unwrap().is_storm);
        for one in of_user {
            let times = one.result.as_ref().unwrap();
            // Those that begin with a key cannot be seen to end before, however slow the machine is.
            let (_, operation) = day.operations().nth(one.operation.into()).unwrap();
            let is_typed = matches!(operation.act, Act::Keys(_) | Act::Text(_));
            assert!(!is_typed || times.latency_ns >= 50_000_000, "{one:?}");
        }
    }
}

/// A frame at fifty a second.
const FRAME_NS: u64 = 20_000_000;

#[test]
fn what_users_see_of_a_known_delay_is_right_to_a_frame() {
    for delay in [DELAY, Duration::from_millis(500)] {
        let drawing = Drawing { blink: Some(Duration::from_millis(530)), ..Drawing::after(delay) };
        let desktops: Vec<_> = (0..4).map(|_| DrawnDesktop::start(drawing).unwrap()).collect();
        let desks = desktops.iter().map(|desktop| desktop.desk().unwrap()).collect();
        let (done, gone) = run(desks, Duration::from_secs(3));
        assert!(gone.is_empty(), "{gone:?}");
        let times = done.iter().map(|one| one.result.as_ref().unwrap());
        // Against what the desktop has really waited: a busy machine wakes nobody in time.
        let mut errors: Vec<u64> =
            times.map(|times| times.latency_ns.abs_diff(times.inside_ns.unwrap())).collect();
        errors.sort_unstable();
        assert!(errors.len() >= 12, "{done:?}");
        assert!(errors[errors.len() / 2] < FRAME_NS, "{delay:?}: {errors:?}");
    }
}

/// Each within the time for which windows stand still once they are done.
const REPAINTS: [Duration; 3] =
    [Duration::from_millis(30), Duration::from_millis(300), Duration::from_millis(100)];

#[test]
fn an_operation_that_has_to_stand_still_ends_with_what_is_drawn_last() {
    let drawing = Drawing { repaints: &REPAINTS, ..Drawing::after(DELAY) };
    let desktops: Vec<_> = (0..2).map(|_| DrawnDesktop::start(drawing).unwrap()).collect();
    let desks = desktops.iter().map(|desktop| desktop.desk().unwrap()).collect();
    let mut day = day();
    for operation in day.applications.iter_mut().flat_map(|application| &mut application.operations) {
        operation.still = true;
    }
    let (done, gone) = run_day(&day, desks, Duration::from_secs(8));
    assert!(gone.is_empty(), "{gone:?}");
    let is_typed = |one: &&OperationDone| {
        matches!(day.operations().nth(one.operation.into()).unwrap().1.act, Act::Keys(_) | Act::Text(_))
    };
    let times: Vec<_> = done.iter().filter(is_typed).map(|one| *one.result.as_ref().unwrap()).collect();
    assert!(times.len() >= 6, "{done:?}");
    assert!(times.iter().all(|times| times.latency_ns >= 480_000_000), "{times:?}");
    let median = |of: &dyn Fn(&Times) -> u64| {
        let mut errors: Vec<u64> = times.iter().map(of).collect();
        errors.sort_unstable();
        errors[errors.len() / 2]
    };
    assert!(median(&|times| times.latency_ns.abs_diff(times.inside_ns.unwrap())) < FRAME_NS, "{times:?}");
    // Without help from inside the same is seen.
    let apart = |times: &Times| times.latency_ns.abs_diff(times.last_change_ns.unwrap());
    assert!(median(&apart) < FRAME_NS, "{times:?}");
}

#[test]
fn where_nobody_is_inside_an_operation_ends_with_the_last_change_of_the_picture() {
    let drawing = Drawing { echo: Some(DELAY), marker: false, ..Drawing::after(DELAY) };
    let desktops = [
        DrawnDesktop::start(drawing).unwrap(),
        DrawnDesktop::start(Drawing { echo: None, ..drawing }).unwrap(),
    ];
    let alone = |desktop: &DrawnDesktop| Desk { control: None, ..desktop.desk().unwrap() };
    let mut day = supplied::find("typing").unwrap().day().unwrap();
    (day.think.least, day.think.most, day.key_pause) = (1_000_000, 5_000_000, 1_000_000);
    (day.limits.a, day.limits.b, day.limits.give_up) = (1_000_000_000, 1_000_000_000, 1_500_000_000);
    let unreached =
        Desk { screen: Err(std::io::ErrorKind::ConnectionRefused.into()), control: None, password: None };
    let mut desks: Vec<_> = desktops.iter().map(alone).collect();
    desks.push(unreached);
    let (done, gone) = run_day(&day, desks, Duration::from_secs(4));
    let of = |user| done.iter().filter(move |one| one.user == user);
    let mut times: Vec<_> = of(0).map(|one| *one.result.as_ref().unwrap()).collect();
    assert!(times.len() >= 4, "{done:?}");
    assert!(
        times.iter().all(|times| times.latency_ns >= 50_000_000 && times.inside_ns.is_none()),
        "{times:?}"
    );
    assert!(times.iter().all(|times| times.last_change_ns == Some(times.latency_ns)), "{times:?}");
    times.sort_by_key(|times| times.latency_ns);
    assert!(times[times.len() / 2].latency_ns < 50_000_000 + FRAME_NS, "{times:?}");
    let still = of(1).map(|one| one.result.as_ref().unwrap_err());
    assert!(
        still.clone().count() > 0 && still.clone().all(|why| why.contains("does not change within")),
        "{done:?}"
    );
    assert!(gone.len() == 1 && gone[0].0 == 2 && gone[0].1.contains("cannot be reached"), "{gone:?}");
}

/// A desktop before which nobody sits inside, and a day of single keys.
fn typed_unaided(drawing: Drawing, link: Option<&str>) -> (Vec<u64>, Vec<Vec<Rectangle>>) {
    let desktop = DrawnDesktop::start(Drawing { marker: false, ..drawing }).unwrap();
    let desks = vec![Desk { control: None, ..desktop.desk().unwrap() }];
    let (desks, links) = match link {
        Some(link) => {
            let (desks, links) = slow_down(desks, link.parse().unwrap(), 1).unwrap();
            (desks, Some(links))
        }
        None => (desks, None),
    };
    let mut day = supplied::find("typing").unwrap().day().unwrap();
    (day.think.least, day.think.most, day.key_pause) = (1_000_000, 5_000_000, 1_000_000);
    (day.limits.a, day.limits.b, day.limits.give_up) = (1_000_000_000, 1_000_000_000, 10_000_000_000);
    for operation in day.applications.iter_mut().flat_map(|application| &mut application.operations) {
        operation.act = Act::Keys(vec!["Return".into()]);
    }
    let plan = UsersPlan { day: &day, seed: 1, time: Duration::from_secs(4), masks: &[] };
    let (mut latencies, mut restless) = (Vec::new(), Vec::new());
    drive(desks, plan, &AtomicBool::new(false), &mut |event| match event {
        UsersEvent::Done(done, _) => latencies.push(done.result.unwrap().latency_ns),
        UsersEvent::Restless { parts, .. } => restless.push(parts),
        UsersEvent::Gone { why, .. } => panic!("{why}"),
        UsersEvent::Echo(_) => {}
    })
    .unwrap();
    drop(links);
    assert!(!latencies.is_empty());
    latencies.sort_unstable();
    (latencies, restless)
}

#[test]
fn what_a_slow_link_has_yet_to_bring_is_waited_for() {
    // The key there, 300 ms until the second step, and the way back.
    let second = SecondStep { after: Duration::from_millis(300), whole: false };
    let drawing = Drawing { second: Some(second), ..Drawing::after(DELAY) };
    let (latencies, _) = typed_unaided(drawing, Some("delay=300ms"));
    assert!(latencies[0] >= 900_000_000, "{latencies:?}");
    // A picture of 235 KB is on a link of 2 Mbit/s for 0.94 s, in which nothing else changes.
    let second = SecondStep { after: Duration::from_millis(20), whole: true };
    let drawing = Drawing { second: Some(second), ..Drawing::after(DELAY) };
    let (latencies, _) = typed_unaided(drawing, Some("delay=1ms,rate=2mbit"));
    assert!(latencies[0] >= 900_000_000, "{latencies:?}");
}

#[test]
fn a_clock_in_the_picture_is_found_and_left_out() {
    let drawing = Drawing { clock: Some(Duration::from_secs(1)), echo: Some(DELAY), ..Drawing::after(DELAY) };
    let (latencies, restless) = typed_unaided(drawing, None);
    // With the clock in it each would last until its next tick, a second on average. How exact times are is looked at elsewhere.
    assert!(latencies[latencies.len() / 2] < 500_000_000, "{latencies:?}");
    assert_eq!(restless, [[Rectangle { x: 280, y: 4, width: 32, height: 12 }]]);
    let blinking = Drawing { blink: Some(Duration::from_millis(530)), ..Drawing::after(DELAY) };
    assert!(typed_unaided(blinking, None).1.is_empty(), "a cursor that blinks is none");
}

#[test]
fn an_echo_longer_than_the_pause_between_keys_is_measured_whole() {
    let echo = Duration::from_millis(120);
    let desktop = DrawnDesktop::start(Drawing { echo: Some(echo), ..Drawing::after(DELAY) }).unwrap();
    let day = Day { key_pause: 80_000_000, ..day() };
    let (mut echoes, mut gone) = (Vec::new(), 0);
    let plan = UsersPlan { day: &day, seed: 1, time: Duration::from_secs(4), masks: &[] };
    drive(vec![desktop.desk().unwrap()], plan, &AtomicBool::new(false), &mut |event| match event {
        UsersEvent::Done(..) => {}
        UsersEvent::Gone { .. } => gone += 1,
        UsersEvent::Echo(ns) => echoes.push(ns),
        UsersEvent::Restless { .. } => {}
    })
    .unwrap();
    echoes.sort_unstable();
    assert!(gone == 0 && !echoes.is_empty(), "{echoes:?}");
    assert!(echoes[0] >= 120_000_000 && echoes[echoes.len() / 2] < 120_000_000 + FRAME_NS, "{echoes:?}");
}

#[test]
fn a_slow_link_makes_users_wait_for_its_delay_both_ways() {
    // An echo is a picture of its own, and the next one is asked for only when it has come.
    let drawing = Drawing { echo: None, ..Drawing::after(DELAY) };
    let desktops: Vec<_> = (0..2).map(|_| DrawnDesktop::start(drawing).unwrap()).collect();
    let desks = desktops.iter().map(|desktop| desktop.desk().unwrap()).collect();
    let (desks, links) = slow_down(desks, "delay=100ms,rate=10mbit".parse().unwrap(), 1).unwrap();
    let (done, gone) = run(desks, Duration::from_secs(8));
    drop(links);
    assert!(gone.is_empty(), "{gone:?}");
    let day = day();
    let is_typed = |one: &&OperationDone| {
        matches!(day.operations().nth(one.operation.into()).unwrap().1.act, Act::Keys(_) | Act::Text(_))
    };
    let mut typed: Vec<u64> =
        done.iter().filter(is_typed).map(|one| one.result.as_ref().unwrap().latency_ns).collect();
    typed.sort_unstable();
    assert!(typed.len() >= 6, "{done:?}");
    // The key there, the picture back; a marker of 18 KB is 15 ms on the link.
    assert!(typed[0] >= 250_000_000, "{typed:?}");
    assert!(typed[typed.len() / 2] < 300_000_000, "{typed:?}");
}

/// One thread cannot spend more than 2 % of a processor on each of fifty: so less than that is asked for.
const IDLE_SHARE: f64 = 0.005;

#[test]
fn fifty_idle_desktops_with_blinking_cursors_cost_their_client_next_to_nothing() {
    let drawing = Drawing { blink: Some(Duration::from_millis(530)), ..Drawing::after(Duration::ZERO) };
    let desktops: Vec<_> = (0..50).map(|_| DrawnDesktop::start(drawing).unwrap()).collect();
    let desks = desktops.iter().map(|desktop| desktop.desk().unwrap()).collect();
    let mut day = day();
    day.think = Think { least: 60_000_000_000, most: 60_000_000_000 };
    let (begun, before) = (Instant::now(), thread_clock_ns());
    let (done, gone) = run_day(&day, desks, Duration::from_secs(5));
    let used = (thread_clock_ns() - before) as f64 / begun.elapsed().as_nanos() as f64;
    assert!(gone.is_empty(), "{gone:?}");
    assert_eq!(done.len(), 50, "everybody does one thing, and thinks then");
    assert!(used > 0.0 && used / 50.0 < IDLE_SHARE, "{used} of a processor for fifty");
}

#[test]
fn a_desktop_that_fails_is_one_users_error_and_the_others_go_on() {
    let good = DrawnDesktop::start(Drawing::after(DELAY)).unwrap();
    let blank = DrawnDesktop::start(Drawing { marker: false, ..Drawing::after(DELAY) }).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut clients: Vec<TcpStream> = Vec::new();
        for hello in [&b"SSH-2.0-OpenSSH_9.2\r\n"[..], b"RFB 003.008\n\x01\x02", b"RFB 003.008\n"] {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(hello).unwrap();
            clients.push(stream);
        }
        // The last one goes as soon as all are here.
        clients.pop();
        thread::sleep(Duration::from_secs(8));
    });
    let control = || blank_control();
    let odd = |_| Desk { screen: TcpStream::connect(address), control: Some(control()), password: None };
    let mut desks = vec![good.desk().unwrap(), blank.desk().unwrap()];
    desks.extend((0..3).map(odd));
    let (done, mut gone) = run(desks, Duration::from_secs(2));
    assert!(done.iter().filter(|done| done.user == 0 && done.result.is_ok()).count() > 5, "{done:?}");
    gone.sort();
    let told = |user: u32| gone.iter().find(|(who, ..)| *who == user).unwrap();
    assert!(told(1).1.contains("no marker in its corner") && told(1).2, "{gone:?}");
    assert!(told(2).1.contains("is it a VNC server?"), "{gone:?}");
    assert!(told(3).1.contains("asks for a password"), "{gone:?}");
    assert!(told(4).1.contains("is lost"), "{gone:?}");
    assert_eq!(gone.len(), 4, "{gone:?}");
}

/// A session that takes orders and never answers.
fn blank_control() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    thread::spawn(move || {
        let kept = listener.accept();
        thread::sleep(Duration::from_secs(20));
        drop(kept);
    });
    stream
}

/// A player that shows forty frames, twenty a second.
const VIDEO: &str = r#"
name = "video"
recipe = "none"
think = { least = "1ms", most = "5ms" }
limits = { a = "1s", b = "1s", give_up = "2s" }
[[applications]]
name = "player"
program = ["/bin/true"]
window = "None"
operations = [{ name = "play", group = "B", act = "start", until = { video = { frames = 40, rate = 20 } } }]
"#;

#[test]
fn frames_that_a_video_drops_are_counted_and_its_rate_and_longest_freeze_are_measured() {
    let whole = Drawing::after(DELAY);
    let holes = Drawing { dropped: &[0, 7, 20, 21, 22, 39], ..whole };
    let desktops = [whole, holes].map(|drawing| DrawnDesktop::start(drawing).unwrap());
    let desks = desktops.iter().map(|desktop| desktop.desk().unwrap()).collect();
    let (done, gone) = run_day(&Day::parse(VIDEO).unwrap(), desks, Duration::from_secs(5));
    assert!(gone.is_empty(), "{gone:?}");
    for (user, seen, freeze_ns) in [(0, 40, 50_000_000), (1, 34, 200_000_000)] {
        let of_user: Vec<_> = done.iter().filter(|one| one.user == user).collect();
        assert!(of_user.len() >= 2, "{done:?}");
        let mut errors = Vec::new();
        for one in of_user {
            let times = one.result.as_ref().unwrap();
            let video = times.video.unwrap();
            assert_eq!(
                (video.frames, video.rate, video.seen, video.unreadable),
                (40, 20, seen, 0),
                "{one:?}"
            );
            assert!(video.freeze_ns > freeze_ns - FRAME_NS, "{one:?}");
            // Against what the desktop has really taken from the first frame to the last one.
            errors.push(video.elapsed_ns.abs_diff(times.inside_ns.unwrap()));
        }
        assert!(errors.iter().min().unwrap() < &FRAME_NS, "{errors:?}");
    }
}

#[test]
fn a_video_of_which_no_frame_arrives_is_a_failed_operation() {
    let drawing = Drawing { dropped: &[0, 1, 2, 3], ..Drawing::after(DELAY) };
    let desktop = DrawnDesktop::start(drawing).unwrap();
    let day = Day::parse(&VIDEO.replace("frames = 40", "frames = 4")).unwrap();
    let (done, gone) = run_day(&day, vec![desktop.desk().unwrap()], Duration::from_secs(1));
    assert!(gone.is_empty() && !done.is_empty(), "{gone:?}");
    assert!(done[0].result.as_ref().unwrap_err().contains("no frame of the video was seen"), "{done:?}");
}
