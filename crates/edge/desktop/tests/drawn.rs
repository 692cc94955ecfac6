//! Users before desktops of which only the marker is drawn.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use virtbench_desktop::{Desk, Done, DrawnDesktop, Event, Plan, drive};
use virtbench_desktops::{Act, Day, supplied};

const DELAY: Duration = Duration::from_millis(50);

fn day() -> Day {
    let text = supplied::find("small").unwrap().text;
    let mut day = Day::parse(text).unwrap();
    (day.think.least, day.think.most, day.key_pause) = (1_000_000, 5_000_000, 1_000_000);
    day.limits.give_up = 6_000_000_000;
    day
}

fn run(desks: Vec<Desk>, time: Duration) -> (Vec<Done>, Vec<(u32, String, bool)>) {
    let (mut done, mut gone) = (Vec::new(), Vec::new());
    let day = day();
    let plan = Plan { day: &day, seed: 1, time };
    drive(desks, plan, &AtomicBool::new(false), &mut |event| match event {
        Event::Done(one, _) => done.push(one),
        Event::Gone { user, why, screenshot } => gone.push((user, why, screenshot.is_some())),
        Event::Echo(_) => {}
    })
    .unwrap();
    (done, gone)
}

#[test]
fn a_known_delay_is_what_users_measure() {
    let desktops: Vec<_> = (0..4).map(|_| DrawnDesktop::start(DELAY, true).unwrap()).collect();
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

#[test]
fn a_desktop_that_fails_is_one_users_error_and_the_others_go_on() {
    let good = DrawnDesktop::start(DELAY, true).unwrap();
    let blank = DrawnDesktop::start(DELAY, false).unwrap();
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
    let odd = |_| Desk { screen: TcpStream::connect(address).unwrap(), control: control(), password: None };
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
