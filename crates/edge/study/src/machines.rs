//! The machines of a study: booted, quiesced while another is measured, started anew when they hang; and jobs as they get them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use virtbench_lab::{
    Assignment, Environment, LabError, Machine, MachineError, MeasuredTogether, Observed, TimeLimits,
    measure_observed, measure_together, observe,
};
use virtbench_record::{
    GuestFacts, GuestsState, IdleBaseline, MachineFacts, Measured, ProcessRole, Provenance, Record,
};
use virtbench_runs::RunFolder;
use virtbench_workload::{JobSpec, LoadSpec, Workload};

use crate::runner::event::{Event, Observer};
use crate::runner::progress::{Course, unix_ns};
use crate::study_error::StudyError;

/// What a start comes to.
type Started = Result<Box<dyn Machine>, StudyError>;

/// The machines, one for each environment at most.
pub(crate) struct Machines<'a> {
    environments: &'a mut [Box<dyn Environment>],
    course: Course,
    running: Vec<Option<Box<dyn Machine>>>,
    /// Those that run, that which was not used for longest first.
    order: Vec<usize>,
}

impl<'a> Machines<'a> {
    pub(crate) fn new(environments: &'a mut [Box<dyn Environment>], course: Course) -> Self {
        let running = environments.iter().map(|_| None).collect();
        Self { environments, course, running, order: Vec::new() }
    }

    /// Starts as many as may run, and measures what they cost without a load if they are to be quiesced.
    pub(crate) fn start_all(
        &mut self,
        folder: &mut RunFolder,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), StudyError> {
        let count = self.environments.len().min(self.course.booted.max(1));
        for index in 0..count {
            if stop.load(Ordering::Relaxed) {
                return Err(StudyError::Stopped);
            }
            let name = self.environments[index].name().to_owned();
            observer.event(Event::Starting(&name));
            let what = format!("writing the test file of {name}");
            self.start(index, folder, stop, &mut |done, total| {
                observer.event(Event::Making { what: &what, done, total });
            })?;
        }
        if self.course.quiesce {
            self.idle(GuestsState::Running, folder, stop, observer)?;
            (0..count).try_for_each(|index| self.quiesce(index))?;
            self.idle(GuestsState::Stopped, folder, stop, observer)?;
        }
        Ok(())
    }

    fn start<R: Record>(
        &mut self,
        index: usize,
        folder: &mut RunFolder<R>,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), StudyError> {
        let machine = started(self.environments[index].as_mut(), stop, on_progress)?;
        self.keep(index, machine, folder)
    }

    fn keep<R: Record>(
        &mut self,
        index: usize,
        machine: Box<dyn Machine>,
        folder: &mut RunFolder<R>,
    ) -> Result<(), StudyError> {
        folder.amend(|provenance| describe(provenance, machine.as_ref()))?;
        self.running[index] = Some(machine);
        self.order.push(index);
        Ok(())
    }

    /// Measures what all that run cost without a load, for as long as a point is measured.
    fn idle(
        &mut self,
        guests: GuestsState,
        folder: &mut RunFolder,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), StudyError> {
        observer.event(Event::Idling(guests));
        let time_ns = folder.provenance().plan.grid().map_or(0, |plan| plan.time_ns);
        let observed = self.observed(None);
        let started_unix_ns = unix_ns();
        let (host, processes) =
            observe(&observed, Duration::from_nanos(time_ns), stop)?.ok_or(StudyError::Stopped)?;
        let environments = &self.environments;
        let baseline = IdleBaseline {
            guests,
            environments: self.order.iter().map(|index| environments[*index].name().to_owned()).collect(),
            started_unix_ns,
            elapsed_ns: time_ns,
            host,
            processes,
        };
        Ok(folder.amend(|provenance| provenance.idle.push(baseline))?)
    }

    /// All processes whose use is told apart while `loaded` is measured.
    fn observed(&self, loaded: Option<usize>) -> Vec<Observed> {
        let mut all = vec![Observed {
            process_id: std::process::id(),
            environment: None,
            role: ProcessRole::Virtbench,
        }];
        for (index, machine) in self.running.iter().enumerate() {
            let Some(machine) = machine else { continue };
            let [own, server] = if loaded == Some(index) {
                [ProcessRole::MeasuredGuest, ProcessRole::Backing]
            } else {
                [ProcessRole::IdleGuest, ProcessRole::IdleBacking]
            };
            let environment = Some(machine.name().to_owned());
            let processes = machine.processes().into_iter().map(|process| (process, own));
            let servers = machine.servers().into_iter().map(|process| (process, server));
            all.extend(processes.chain(servers).map(|(process_id, role)| Observed {
                process_id,
                environment: environment.clone(),
                role,
            }));
        }
        all
    }

    /// Has the machine ready to be loaded: booted if it is not, and awake.
    pub(crate) fn wake(
        &mut self,
        index: usize,
        folder: &mut RunFolder,
        stop: &AtomicBool,
    ) -> Result<(), StudyError> {
        if self.running[index].is_some() {
            return self.tell(index, |machine| machine.wake());
        }
        while self.order.len() >= self.course.booted.max(1) {
            let oldest = self.order.remove(0);
            self.end(oldest);
        }
        self.start(index, folder, stop, &mut |_, _| ())
    }

    /// Has the machine wait, if machines are to.
    pub(crate) fn quiesce(&mut self, index: usize) -> Result<(), StudyError> {
        if self.course.quiesce { self.tell(index, |machine| machine.quiesce()) } else { Ok(()) }
    }

    fn tell(
        &mut self,
        index: usize,
        what: impl FnOnce(&mut dyn Machine) -> Result<(), MachineError>,
    ) -> Result<(), StudyError> {
        let Some(machine) = self.running[index].as_mut() else { return Ok(()) };
        what(machine.as_mut())
            .map_err(|source| LabError::Machine { machine: machine.name().to_owned(), source }.into())
    }

    /// Applies a load to a machine that is awake.
    pub(crate) fn measure(
        &mut self,
        index: usize,
        spec: LoadSpec,
        stop: &AtomicBool,
    ) -> Result<(u64, Measured), LabError> {
        self.order.retain(|other| *other != index);
        self.order.push(index);
        // Two environments side by side are told apart by what is loaded; more need it said.
        let observed = if self.course.quiesce { self.observed(Some(index)) } else { Vec::new() };
        match self.running[index].as_mut() {
            Some(machine) => measure_observed(machine.as_mut(), spec, &observed, TimeLimits::default(), stop),
            None => Err(LabError::Stopped),
        }
    }

    /// Has just these machines awake: boots those that do not run, all at once, and has the others wait.
    pub(crate) fn wake_only<R: Record>(
        &mut self,
        wanted: &[usize],
        folder: &mut RunFolder<R>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), StudyError> {
        for index in 0..self.running.len() {
            if wanted.contains(&index) {
                self.tell(index, |machine| machine.wake())?;
            } else {
                self.tell(index, |machine| machine.quiesce())?;
            }
        }
        let running = &self.running;
        let missing = self.environments.iter_mut().enumerate();
        let missing = missing.filter(|(index, _)| wanted.contains(index) && running[*index].is_none());
        let started = all_started(missing, stop, observer);
        for (index, machine) in started {
            self.keep(index, machine?, folder)?;
        }
        Ok(())
    }

    /// Gives each of these machines its job at one moment.
    pub(crate) fn measure_together(
        &mut self,
        jobs: &[(usize, JobSpec)],
        limits: TimeLimits,
        stop: &AtomicBool,
    ) -> Result<MeasuredTogether, LabError> {
        let mut observed = self.observed(None);
        for one in &mut observed {
            let of_job = |(index, _): &(usize, JobSpec)| {
                one.environment.as_deref() == Some(self.environments[*index].name())
            };
            one.role = match one.role {
                ProcessRole::IdleGuest if jobs.iter().any(of_job) => ProcessRole::MeasuredGuest,
                ProcessRole::IdleBacking if jobs.iter().any(of_job) => ProcessRole::Backing,
                role => role,
            };
        }
        let mut machines: Vec<_> = self.running.iter_mut().map(Option::as_mut).collect();
        let assignments: Option<Vec<Assignment<'_>>> = jobs
            .iter()
            .map(|(index, spec)| {
                let machine = machines[*index].take()?.as_mut();
                Some(Assignment { machine, spec: spec.clone() })
            })
            .collect();
        measure_together(assignments.ok_or(LabError::Stopped)?, &observed, limits, stop)
    }

    /// Whether a guest still runs and answers nothing, or has ended.
    pub(crate) fn is_lost(error: &LabError) -> bool {
        matches!(error, LabError::Machine { source, .. } if !matches!(source, MachineError::Refused { .. }))
    }

    /// The index of the machine of this name.
    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.environments.iter().position(|environment| environment.name() == name)
    }

    /// Whether a guest that still runs has fallen silent, or its disk has. A native disk that fails is
    /// nothing that starting anew would mend.
    pub(crate) fn hangs(&self, index: usize, error: &StudyError) -> bool {
        match error {
            StudyError::Lab(LabError::Machine { source, .. }) => {
                matches!(source, MachineError::Conversation { .. })
            }
            StudyError::Target { .. } => {
                self.running[index].as_ref().is_some_and(|machine| machine.guest().is_some())
            }
            _ => false,
        }
    }

    /// Whether it runs on this host, so that what its processors did is what this host's did.
    pub(crate) fn is_on_host(&self, index: usize) -> bool {
        self.running[index].as_ref().is_none_or(|machine| machine.facts().is_none())
    }

    /// Kills a machine; it is gone before another can have its disk.
    pub(crate) fn discard(&mut self, index: usize) {
        self.order.retain(|other| *other != index);
        drop(self.running[index].take());
    }

    /// Ends all in good order.
    pub(crate) fn shut_down(mut self) {
        for index in std::mem::take(&mut self.order) {
            self.end(index);
        }
    }

    fn end(&mut self, index: usize) {
        if self.course.quiesce {
            // One that waits cannot hear that it is to end.
            let _ = self.tell(index, |machine| machine.wake());
        }
        if let Some(machine) = self.running[index].take() {
            machine.shut_down();
        }
    }
}

/// Starts a machine and has it make what its loads are applied to.
fn started(
    environment: &mut dyn Environment,
    stop: &AtomicBool,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Started {
    let mut machine = environment.start()?;
    make_target(machine.as_mut(), stop, on_progress)?;
    Ok(machine)
}

/// Has a machine make what its loads are applied to. `on_progress` is told bytes written of bytes in all.
///
/// # Errors
/// It cannot be made, or `stop` was set.
pub fn make_target(
    machine: &mut dyn Machine,
    stop: &AtomicBool,
    on_progress: &mut dyn FnMut(u64, u64),
) -> Result<(), StudyError> {
    let made = machine.make_target(&mut |done, total| {
        on_progress(done, total);
        !stop.load(Ordering::Relaxed)
    });
    match made {
        Err(_) if stop.load(Ordering::Relaxed) => Err(StudyError::Stopped),
        made => {
            made.map_err(|source| LabError::Machine { machine: machine.name().to_owned(), source }.into())
        }
    }
}

/// Starts these machines at once.
fn all_started<'e>(
    environments: impl Iterator<Item = (usize, &'e mut Box<dyn Environment>)>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Vec<(usize, Started)> {
    let (progress, making) = mpsc::channel::<(String, u64, u64)>();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, environment) in environments {
            observer.event(Event::Starting(environment.name()));
            let (what, progress) =
                (format!("writing the test file of {}", environment.name()), progress.clone());
            let start = move || {
                started(environment.as_mut(), stop, &mut |done, total| {
                    // Its observer may be gone; the file is made nevertheless.
                    let _ = progress.send((what.clone(), done, total));
                })
            };
            threads.push((index, scope.spawn(start)));
        }
        drop(progress);
        for (what, done, total) in making {
            observer.event(Event::Making { what: &what, done, total });
        }
        let joined = |thread: thread::ScopedJoinHandle<'_, Started>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(|(index, thread)| (index, joined(thread))).collect()
    })
}

/// Says of a machine that was started what it is.
fn describe(provenance: &mut Provenance, machine: &dyn Machine) {
    if let Some(facts) = machine.facts() {
        // Several machines of sets may live on one host, which is named once.
        let home = provenance.plan.colocation().and_then(|plan| plan.home(machine.name()));
        let environment = home.map_or_else(|| machine.name().to_owned(), |home| home.environment.clone());
        provenance.machines.retain(|other| other.environment != environment);
        let guest = machine.guest();
        provenance.machines.push(MachineFacts { environment, facts: facts.clone(), guest });
    } else if let Some(guest) = machine.guest() {
        let is_new = |other: &GuestFacts| other.accelerator.name != guest.accelerator.name;
        if provenance.guest.iter().chain(&provenance.other_guests).all(is_new) {
            match &mut provenance.guest {
                Some(_) => provenance.other_guests.push(guest),
                none => *none = Some(guest),
            }
        }
    }
    provenance.add_notes(machine.notes());
    if let Some(setup) = machine.setup()
        && let Some(place) = provenance.setups.iter_mut().find(|other| other.name == setup.name)
    {
        *place = setup;
    }
}

/// Gives a job the times that were asked for, and checks it again.
///
/// # Errors
/// The job makes no sense with them.
pub(crate) fn fit(job: &mut JobSpec, time_ns: Option<u64>, ramp_ns: Option<u64>) -> Result<(), StudyError> {
    match job {
        JobSpec::Load(load) => {
            load.time_ns = time_ns.unwrap_or(load.time_ns);
            load.ramp_ns = ramp_ns.unwrap_or(load.ramp_ns);
            load.interval_ns = (load.time_ns / 20).max(1_000_000);
        }
        JobSpec::Workload(workload) => {
            workload.time_ns = time_ns.or(workload.time_ns);
            workload.ramp_ns = ramp_ns.unwrap_or(workload.ramp_ns);
            if let (Some(time_ns), Workload::Files(files)) = (time_ns, &mut workload.workload) {
                files.run_ns = files.run_ns.min(time_ns);
            }
        }
    }
    job.validate().map_err(StudyError::input)
}

/// The job on a disk of this size.
pub(crate) fn sized(job: &JobSpec, size_bytes: u64) -> JobSpec {
    let mut job = job.clone();
    if let JobSpec::Load(load) = &mut job {
        load.region_bytes = load.region_bytes.min(size_bytes);
    }
    job
}
