//! Guests that hang whenever they are measured: how often a run starts them again.

use std::os::unix::net::UnixStream;
use std::time::Instant;

use tempfile::TempDir;
use virtbench_agent::protocol::{Reply, Request, receive, send};
use virtbench_lab::Machine;
use virtbench_record::Plan;

use super::*;
use crate::fake_machine::FakeMachine;
use crate::runner::begun_run::described;
use crate::runner::event::Event;

/// Boots guests that are lost as soon as a load starts, and counts them.
struct Hanging(u32);

impl Environment for Hanging {
    fn name(&self) -> &str {
        "vm1"
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        self.0 += 1;
        assert!(self.0 < 100, "started again without end");
        Ok(FakeMachine::boxed(play))
    }
}

fn play(mut stream: UnixStream) {
    let begun = Instant::now();
    while let Ok(request) = receive::<Request>(&mut stream) {
        let clock_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap();
        match request {
            Request::Ping { id } => send(&mut stream, &Reply::Pong { id, clock_ns }).unwrap(),
            Request::Prepare(_) => send(&mut stream, &Reply::Prepared { target: None }).unwrap(),
            _ => return,
        }
    }
}

/// Counts the guests that are said to be started again.
struct StartsAgain(u32);

impl Observer for StartsAgain {
    fn event(&mut self, event: Event<'_>) {
        self.0 += u32::from(matches!(event, Event::Remark(what) if what.contains("is started anew")));
    }
}

#[test]
fn a_guest_that_hangs_again_and_again_is_started_anew_three_times_a_run_and_no_more() {
    let dir = TempDir::new().unwrap();
    let provenance = described(Plan::NativeVsVm(GridPlan {
        environments: vec!["vm1".into()],
        ramp_ns: 0,
        time_ns: 1_000_000,
        ..virtbench_samples::grid::plan(&[4096], &[50], &[100], 2)
    }));
    let mut folder = RunFolder::create(&dir.path().join("run"), provenance).unwrap();
    let mut environments: Vec<Box<dyn Environment>> = vec![Box::new(Hanging(0))];
    let stop = AtomicBool::new(false);
    let mut heard = StartsAgain(0);
    let ended = measure_points(&mut folder, &mut environments, Course::SIDE_BY_SIDE, &stop, &mut heard);
    assert!(matches!(ended, Err(StudyError::Lab(LabError::Machine { .. }))), "{ended:?}");
    assert_eq!(heard.0, 3);
    assert_eq!(folder.provenance().notes.len(), 3, "{:?}", folder.provenance().notes);
    assert!(folder.records().is_empty());
}
