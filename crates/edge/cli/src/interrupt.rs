//! SIGINT, SIGTERM and SIGHUP: the first asks for a clean stop, a second one ends at once.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;

static REQUESTED: AtomicBool = AtomicBool::new(false);
static ON_REQUEST: Mutex<Vec<Box<dyn Fn() + Send>>> = Mutex::new(Vec::new());

/// Catches the signals from now on.
pub fn install() -> Outcome {
    ctrlc::set_handler(|| {
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
