//! How many events a second the simulator handles on one core: whole worlds as the evaluation runs them.
//!
//! An event is what [`Events`](virtbench_fence_sim::Events) counts: an entry taken from the calendar, a deadline of the
//! fence, a request submitted or answered, a device I/O dispatched. Entries of the calendar alone stand beside it.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use virtbench_fence::catalogue;
use virtbench_fence_evaluation::{Settings, Sharing, Store, System};
use virtbench_fence_sim::calibrate::calibrate;
use virtbench_fence_sim::client::{Client, ClosedLoop, Personality};
use virtbench_fence_sim::{Span, World};

use crate::fence::cpu_ns;
use crate::pairs::{Verdict, median};

const MACHINES: usize = 4;
const THREADS: u32 = 16;
/// Events of a run, roughly.
const EVENTS: f64 = 4e6;
/// What the evaluation is called.
const EVALUATION: &str = "evaluation, all figures, wall time";
/// Seconds that it may take.
const MOST_S: f64 = 60.0;
/// Events a second at least.
const LEAST_PER_S: f64 = 3e6;

fn cases() -> Vec<(&'static str, System, Personality)> {
    let cached = Store::Partitioned { hit_percent: 50.0 };
    let fifo = |store| System::new(store, Sharing::Listed(&catalogue::FIFO));
    let paced = System::listed(&catalogue::PACED);
    vec![
        ("hard disk, FIFO, web server", fifo(Store::Hdd), Personality::Webserver),
        ("hard disk, FIFO, file server", fifo(Store::Hdd), Personality::Fileserver),
        ("cached, FIFO, web server", fifo(cached), Personality::Webserver),
        ("VirtualFence, web server", System::VIRTUAL_FENCE, Personality::Webserver),
        ("VirtualFence, mail server", System::VIRTUAL_FENCE, Personality::Mailserver),
        ("VirtualFence, file server", System::VIRTUAL_FENCE, Personality::Fileserver),
        ("virtual devices, mail server", paced, Personality::Mailserver),
    ]
}

/// Measures every case; `only` limits them to those whose name contains it.
pub fn check(rounds: usize, only: Option<&str>) -> Result<Vec<Verdict>> {
    println!(
        "{:<56} {:>10} {:>10} {:>10} {:>10}",
        "simulator, one core", "events M/s", "calendar", "ns/event", "promise"
    );
    let settings = Settings::default();
    let calibration = calibrate(&settings.hdd, &settings.ssd, settings.calibration_bytes, settings.seed)?;
    let mut verdicts = Vec::new();
    for (name, system, personality) in
        cases().into_iter().filter(|case| only.is_none_or(|only| case.0.contains(only)))
    {
        let files = settings.files(personality);
        let client = ClosedLoop { personality, files, threads: THREADS, think_ns: 0.0, page_cache_hits: 0.0 };
        let cache_blocks = u32::try_from(settings.file_set_bytes / 4096 / 2)?;
        let run = |seconds: f64, seed: u64| -> Result<(f64, f64, f64)> {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some thousand seconds
            let span = Span { warm_up_ns: 1, measure_ns: (seconds * 1e9) as u64 };
            let clients = vec![Client::Closed(client); MACHINES];
            let config = system.world(&settings, &calibration.predictors, cache_blocks, clients, span, seed);
            let world = World::new(config).context(name)?;
            let begun_ns = cpu_ns();
            let events = world.run().context(name)?.events;
            Ok((events.total() as f64, events.calendar as f64, (cpu_ns() - begun_ns) as f64))
        };
        // What fills the cache counts too: two runs tell how many events a second of the world brings.
        let (short, long) = (run(5.0, 1)?.0, run(10.0, 1)?.0);
        let seconds = EVENTS / ((long - short) / 5.0).max(1.0);
        let mut of_rounds = Vec::new();
        let mut calendar = Vec::new();
        for round in 0..rounds {
            let (events, entries, ns) = run(seconds, round as u64)?;
            of_rounds.push(events * 1e9 / ns);
            calendar.push(entries * 1e9 / ns);
        }
        let per_s = median(of_rounds);
        let verdict = if per_s >= LEAST_PER_S { Verdict::Kept } else { Verdict::Broken };
        let word = if verdict == Verdict::Kept { "kept" } else { "BROKEN" };
        let promise = format!(">= {:.0} M/s", LEAST_PER_S / 1e6);
        println!(
            "{name:<56} {:>10.2} {:>10.2} {:>10.0} {promise:>10}  {word}",
            per_s / 1e6,
            median(calendar) / 1e6,
            1e9 / per_s
        );
        verdicts.push(verdict);
    }
    if only.is_none_or(|only| EVALUATION.contains(only)) {
        verdicts.push(evaluation()?);
    }
    ensure!(!verdicts.is_empty(), "no case of the simulator is called so");
    Ok(verdicts)
}

/// All figures, once: a run is long enough, and takes every processor.
fn evaluation() -> Result<Verdict> {
    let begun = Instant::now();
    let status = Command::new(crate::tools::virtbench())
        .args(["fence", "simulate", "--json"])
        .stdout(Stdio::null())
        .status()
        .context("make build comes first")?;
    ensure!(status.success(), "fence simulate: {status}");
    let seconds = begun.elapsed().as_secs_f64();
    let verdict = if seconds < MOST_S { Verdict::Kept } else { Verdict::Broken };
    let word = if verdict == Verdict::Kept { "kept" } else { "BROKEN" };
    println!(
        "{EVALUATION:<56} {seconds:>10.1} {:>10} {:>10} {:>10}  {word}",
        "s",
        "",
        format!("< {MOST_S} s")
    );
    Ok(verdict)
}
