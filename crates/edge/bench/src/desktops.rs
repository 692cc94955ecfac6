//! How exactly users of desktops time what they see, and what they cost: before desktops that draw the marker after a known delay.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use virtbench_counters::thread_clock_ns;
use virtbench_desktop::{Drawing, DrawnDesktop, UsersEvent, UsersPlan, drive};
use virtbench_desktops::Day;

use crate::pairs::{Verdict, median};

/// Each delay, and for how long operations of it are begun.
const DELAYS: [(Duration, Duration); 3] = [
    (Duration::from_millis(50), Duration::from_secs(5)),
    (Duration::from_millis(500), Duration::from_secs(10)),
    (Duration::from_secs(5), Duration::from_secs(20)),
];
const USERS: usize = 4;
const IDLE_USERS: usize = 50;
const IDLE_TIME: Duration = Duration::from_secs(20);
/// How long a cursor is seen, then not seen.
const BLINK: Duration = Duration::from_millis(530);
/// A frame at fifty a second.
const MOST_ERROR_MS: f64 = 20.0;
/// Of a processor, for each idle desktop.
const MOST_IDLE_PERCENT: f64 = 5.0;

/// A text that is typed, and a program that is started.
const DAY: &str = r#"
name = "known"
recipe = "none"
think = { least = "1ms", most = "20ms" }
key_pause = "5ms"
limits = { a = "10s", b = "10s", give_up = "30s" }
[[applications]]
name = "editor"
program = ["/bin/true"]
window = "None"
operations = [
  { name = "open", group = "B", act = "start", until = "window" },
  { name = "modify", group = "A", act = { text = "Dear reader, " }, until = "drawn" },
]
"#;

/// Measures both, and prints them.
pub fn check() -> Result<Vec<Verdict>> {
    println!(
        "{:<56} {:>10} {:>15}  {:<9}",
        format!("{USERS} users of desktops, error of a known delay"),
        "median ms",
        "range",
        "promise"
    );
    let mut verdicts = Vec::new();
    for (delay, time) in DELAYS {
        verdicts.push(known_delay(delay, time)?);
    }
    verdicts.push(idle()?);
    Ok(verdicts)
}

/// The largest error counts.
fn known_delay(delay: Duration, time: Duration) -> Result<Verdict> {
    let drawing = Drawing { blink: Some(BLINK), ..Drawing::after(delay) };
    let day = Day::parse(DAY)?;
    let latencies = work(&day, drawing, USERS, time)?;
    let errors: Vec<f64> =
        latencies.iter().map(|ns| (*ns as f64 - delay.as_nanos() as f64).abs() / 1e6).collect();
    let (least, most) = errors.iter().fold((f64::MAX, 0.0_f64), |(l, m), e| (l.min(*e), m.max(*e)));
    let case = format!("marker after {} ms, {} operations", delay.as_millis(), errors.len());
    let range = format!("{least:.2} to {most:.2}");
    let kept = most < MOST_ERROR_MS;
    println!("{case:<56} {:>10.2} {range:>15}  {:<9} {}", median(errors), "< 20 ms", said(kept));
    Ok(verdict(kept))
}

fn idle() -> Result<Verdict> {
    let drawing = Drawing { blink: Some(BLINK), ..Drawing::after(Duration::ZERO) };
    let mut day = Day::parse(DAY)?;
    let hour_ns = 3_600_000_000_000;
    (day.think.least, day.think.most) = (hour_ns, hour_ns);
    let (begun, before) = (Instant::now(), thread_clock_ns());
    work(&day, drawing, IDLE_USERS, IDLE_TIME)?;
    let used = (thread_clock_ns() - before) as f64 / begun.elapsed().as_nanos() as f64;
    let percent = used / IDLE_USERS as f64 * 100.0;
    let case = format!("{IDLE_USERS} idle desktops, cursors blink: % of a processor each");
    let kept = percent < MOST_IDLE_PERCENT;
    println!("{case:<56} {percent:>10.3} {:>15}  {:<9} {}", "-", "< 5 %", said(kept));
    Ok(verdict(kept))
}

/// Has users work; returns how long their operations took, in nanoseconds.
fn work(day: &Day, drawing: Drawing, users: usize, time: Duration) -> Result<Vec<u64>> {
    let desktops = (0..users).map(|_| DrawnDesktop::start(drawing)).collect::<std::io::Result<Vec<_>>>()?;
    let desks = desktops.iter().map(DrawnDesktop::desk).collect::<std::io::Result<Vec<_>>>()?;
    let (mut latencies, mut failures) = (Vec::new(), Vec::new());
    drive(desks, UsersPlan { day, seed: 1, time, masks: &[] }, &AtomicBool::new(false), &mut |event| {
        match event {
            UsersEvent::Done(done, _) => match done.result {
                Ok(times) => latencies.push(times.latency_ns),
                Err(why) => failures.push(why),
            },
            UsersEvent::Gone { why, .. } => failures.push(why),
            UsersEvent::Echo(_) | UsersEvent::Restless { .. } => {}
        }
    })?;
    ensure!(failures.is_empty(), "users of drawn desktops failed: {failures:?}");
    ensure!(latencies.len() >= users, "some users have done nothing");
    Ok(latencies)
}

fn said(kept: bool) -> &'static str {
    if kept { "kept" } else { "BROKEN" }
}

fn verdict(kept: bool) -> Verdict {
    if kept { Verdict::Kept } else { Verdict::Broken }
}
