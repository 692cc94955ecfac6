//! A job in this process, watched: progress, a signal that stops it, what it cost the host.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_engine::Control;
use virtbench_lab::CpuSample;
use virtbench_record::HostUse;

use crate::exit::{Failure, Kind};
use crate::{interrupt, progress};

/// Called by a job, with the clock, when ramp-up is over.
pub type OnMeasuring<'a> = &'a mut (dyn FnMut(u64) + Send);

/// Runs a job of about `expected_ns`, showing progress, and samples the host's CPU use over the
/// measuring time. `look` is called with its control every 100 ms or so.
pub fn watched<O: Send>(
    control: Control,
    expected_ns: u64,
    job: impl FnOnce(&Control, OnMeasuring<'_>) -> O + Send,
    mut look: impl FnMut(&Control),
) -> Result<(O, HostUse), Failure> {
    let control = stoppable(control);
    let bar = progress::timer(expected_ns, "measuring");
    let began = Instant::now();
    let done = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut begin = None;
            let outcome = job(&control, &mut |_| begin = Some(CpuSample::take()));
            (outcome, begin, CpuSample::take())
        });
        let mut before = 0;
        while !thread.is_finished() {
            thread::sleep(Duration::from_millis(100).min(began.elapsed() / 4 + Duration::from_millis(1)));
            let now = control.completed();
            progress::tick(&bar, began.elapsed());
            bar.set_message(format!("{now} operations, {} more", now - before));
            before = now;
            look(&control);
        }
        thread.join()
    });
    bar.finish_and_clear();
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
    interrupt::on_request(move || {
        if let Some(control) = stopper.upgrade() {
            control.stop();
        }
    });
    if interrupt::requested() {
        control.stop();
    }
    control
}
