//! SIGINT, SIGTERM and SIGHUP: the first asks for a clean stop, a second one ends at once.

use std::io::{self, IsTerminal as _};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

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
