//! SIGINT, SIGTERM and SIGHUP: the first asks for a clean stop, a second one ends at once. A job in this process is watched for them.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_engine::Control;
use virtbench_lab::CpuSample;
use virtbench_record::HostUse;

use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// What a command keeps that ends at once, as it holds nothing that would have to be put away.
static AT_ONCE: Mutex<Option<&'static str>> = Mutex::new(None);

static ON_REQUEST: Mutex<Vec<Box<dyn Fn() + Send>>> = Mutex::new(Vec::new());

/// Catches the signals from now on.
pub fn install() -> Outcome {
    ctrlc::set_handler(|| {
        if let Some(kept) = *AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner) {
            // What is drawn there stands in this line.
            let clear = if io::stderr().is_terminal() { "\r\x1b[2K" } else { "" };
            tell!("{clear}virtbench: interrupted: {kept}");
            std::process::exit(i32::from(Kind::Interrupted as u8));
        }
        let actions = ON_REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
        if REQUESTED.swap(true, Ordering::SeqCst) {
            std::process::exit(i32::from(Kind::Interrupted as u8));
        }
        tell!("virtbench: stopping; once more to end at once");
        for action in actions.iter() {
            action();
        }
    })?;
    virtbench_lab::stop_starts_on(&REQUESTED);
    Ok(())
}

/// From now on the first signal ends the command, and says this: it only reads and computes.
pub fn end_at_once(kept: &'static str) {
    *AT_ONCE.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
}

/// Whether a stop was asked for.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// The flag itself, to be polled.
pub fn flag() -> &'static AtomicBool {
    &REQUESTED
}

/// Has this done when a stop is asked for; at once if one was.
pub fn on_request(action: impl Fn() + Send + 'static) {
    let mut actions = ON_REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    if requested() {
        action();
    }
    actions.push(Box::new(action));
}

/// The failure with which an interrupted command ends.
pub fn failure(what: &str) -> Failure {
    Failure::message(Kind::Interrupted, format!("interrupted: {what}"))
}

/// Called by a job, with the clock, when ramp-up is over.
pub type OnMeasuring<'a> = &'a mut (dyn FnMut(u64) + Send);

/// Runs a job and samples the host's CPU use over the measuring time. `look` is called every `tick` or so,
/// sooner at first, with the job's control and how long it has run.
pub fn watched<O: Send>(
    control: Control,
    tick: Duration,
    job: impl FnOnce(&Control, OnMeasuring<'_>) -> O + Send,
    mut look: impl FnMut(&Control, Duration),
) -> Result<(O, HostUse), Failure> {
    let control = stoppable(control);
    let began = Instant::now();
    let done = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut begin = None;
            let outcome = job(&control, &mut |_| begin = Some(CpuSample::take()));
            (outcome, begin, CpuSample::take())
        });
        while !thread.is_finished() {
            thread::sleep(tick.min(began.elapsed() / 4 + Duration::from_millis(1)));
            look(&control, began.elapsed());
        }
        thread.join()
    });
    let (outcome, begin, end) =
        done.map_err(|_| Failure::message(Kind::Other, "the job panicked: a defect of virtbench"))?;
    let end = end?;
    let begin = begin.transpose()?.unwrap_or_else(|| end.clone());
    Ok((outcome, begin.until(&end)))
}

/// A control that a signal stops, for as long as somebody holds it.
pub fn stoppable(control: Control) -> Arc<Control> {
    let control = Arc::new(control);
    let stopper = Arc::downgrade(&control);
    on_request(move || {
        if let Some(control) = stopper.upgrade() {
            control.stop();
        }
    });
    if requested() {
        control.stop();
    }
    control
}
