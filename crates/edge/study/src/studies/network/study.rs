//! The study of the network: a path at a time, between machines that are started for it.

use std::time::{Duration, Instant};

use virtbench_lab::{
    ApplianceError, BOOT_LIMIT, EndProcessors, NetworkPath, PathGuest, PathKind, SshAddress, Traffic,
    TrafficMeasured, vhost_device,
};
use virtbench_record::{NetworkPathKind, NetworkPlan, Plan, SamplesKey, SamplesMeasured};

use super::samples::of_traffic;
use crate::guests::ApplianceGuests;
use crate::runner::course::nanoseconds;
use crate::runner::estimate::Estimate;
use crate::runner::progress::Progress;
use crate::runner::run::{Run, RunEnd};
use crate::runner::sides::SidesSchedule;
use crate::runner::steps::{NoResult, Schedule, Steps, Study, Taken, run_study};
use crate::study_error::StudyError;

/// A study of the network.
#[derive(Debug)]
pub struct NetworkStudy {
    plan: NetworkPlan,
    guests: Option<ApplianceGuests>,
}

impl NetworkStudy {
    /// One by a plan, with what its guests are made of where a path has some.
    #[must_use]
    pub fn new(plan: NetworkPlan, guests: Option<ApplianceGuests>) -> Self {
        Self { plan, guests }
    }

    /// What is measured, and about how long that takes.
    #[must_use]
    pub fn estimate(plan: &NetworkPlan) -> Estimate {
        SidesSchedule::new(Plan::Network(plan.clone())).estimate()
    }

    /// Measures what is missing in the run folder.
    ///
    /// # Errors
    /// It failed before anything was measured. Any other failure is the answer, and the folder holds what was measured until then.
    pub fn run(&mut self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        run_study(&SidesSchedule::new(Plan::Network(self.plan.clone())), self, run)
    }

    /// The kinds of traffic of each side, with the names of their samples.
    fn traffic(&self) -> Vec<(String, Traffic)> {
        let NetworkPlan { streams, datagram_bytes, .. } = self.plan;
        let several = |direction: &str| format!("TCP {direction}, {streams} streams");
        let mut all = vec![
            ("TCP to, 1 stream".to_owned(), Traffic::To { streams: 1 }),
            ("TCP from, 1 stream".to_owned(), Traffic::From { streams: 1 }),
        ];
        if streams > 1 {
            all.push((several("to"), Traffic::To { streams }));
            all.push((several("from"), Traffic::From { streams }));
        }
        all.push(("request".to_owned(), Traffic::Requests));
        all.push(("connection".to_owned(), Traffic::Connections));
        all.push(("datagrams".to_owned(), Traffic::Datagrams { bytes: datagram_bytes }));
        all
    }

    fn between_machines(&self) -> Result<NetworkPath, NoResult> {
        let input = |why: String| NoResult::Study(StudyError::input(why));
        let Some([near, far]) = &self.plan.between else {
            return Err(input("no machines are named for a path between machines".into()));
        };
        let near = network_machine(near).map_err(input)?;
        let far = network_machine(far).map_err(input)?;
        let far = far.ok_or_else(|| input("the machine that answers has to be an ssh:// address".into()))?;
        NetworkPath::between(near.as_ref(), &far).map_err(failure)
    }

    fn path(&self, kind: NetworkPathKind, mtu: u32) -> Result<NetworkPath, NoResult> {
        let unavailable = |why: &str| NoResult::Unavailable(why.to_owned());
        if kind == NetworkPathKind::Machines {
            return self.between_machines();
        }
        let vhost = matches!(kind, NetworkPathKind::TapVhost | NetworkPathKind::GuestsVhost);
        let path = match kind {
            NetworkPathKind::Native => PathKind::Pair,
            NetworkPathKind::User => PathKind::User,
            NetworkPathKind::Tap | NetworkPathKind::TapVhost => PathKind::Tap { vhost },
            NetworkPathKind::Guests | NetworkPathKind::GuestsVhost => PathKind::Guests { vhost },
            NetworkPathKind::Machines => return Err(unavailable("no machines are named: a defect")),
        };
        let guests = match &self.guests {
            Some(guests) => Some(guests),
            None if kind.has_guest() => return Err(unavailable("no guest was looked for: a defect")),
            None => None,
        };
        let is_of_qemu = guests.is_some_and(ApplianceGuests::are_of_qemu);
        if (vhost || kind == NetworkPathKind::User) && !is_of_qemu {
            return Err(unavailable("guests of User Mode Linux have no such network; --accelerator tcg has"));
        }
        if let Some(why) = vhost.then(vhost_device).flatten() {
            return Err(NoResult::Unavailable(why));
        }
        let place = guests.map_or(virtbench_lab::Place::Native, |guests| guests.place(BOOT_LIMIT));
        let guest = PathGuest { place, vcpus: self.plan.vcpus, memory_bytes: self.plan.memory_bytes };
        let on = match self.plan.pinned {
            true => EndProcessors::apart(self.plan.vcpus),
            false => EndProcessors::default(),
        };
        NetworkPath::open(path, mtu, &guest, &on).map_err(failure)
    }
}

/// A machine that is there: this host, or one that is reached by ssh.
///
/// # Errors
/// It is written as neither.
pub fn network_machine(text: &str) -> Result<Option<SshAddress>, String> {
    if text == "native:" {
        return Ok(None);
    }
    let address = SshAddress::parse(text).and_then(SshAddress::without_device);
    address.map(Some).map_err(|error| format!("{error}; this host is native:"))
}

/// Whether the host's kernel can carry frames of guests.
#[must_use]
pub fn has_vhost() -> bool {
    vhost_device().is_none()
}

/// What a host does not allow is missing on every try.
fn failure(error: ApplianceError) -> NoResult {
    match error {
        error @ ApplianceError::Network { .. } => NoResult::Unavailable(error.to_string()),
        error => NoResult::failed(error.to_string()),
    }
}

impl NetworkStudy {
    fn once(&mut self, side: &str, progress: &mut Progress<'_>) -> Result<Taken<SamplesMeasured>, NoResult> {
        let begun = Instant::now();
        let sides = self.plan.sides();
        let found = sides.into_iter().find(|(name, ..)| name == side);
        let (_, kind, mtu) =
            found.ok_or_else(|| StudyError::input(format!("{side} is no side: a defect")))?;
        let mut path = self.path(kind, mtu)?;
        let time = Duration::from_nanos(self.plan.time_ns);
        let ramp = Duration::from_nanos(self.plan.ramp_ns);
        let mut measured = SamplesMeasured { notes: path.notes().to_vec(), ..SamplesMeasured::default() };
        for (name, traffic) in self.traffic() {
            progress.check().map_err(StudyError::from)?;
            let found: TrafficMeasured = path
                .measure(traffic, ramp, time)
                .map_err(|error| NoResult::failed(format!("{name}: {error}")))?;
            of_traffic(&name, traffic, &found, &mut measured);
        }
        let guests = self.guests.as_ref().filter(|_| kind.has_guest());
        let guest =
            guests.map(|guests| guests.facts_of((self.plan.vcpus, self.plan.memory_bytes), path.crossing()));
        path.close();
        measured.elapsed_ns = nanoseconds(begun.elapsed());
        Ok(Taken::of(measured, guest))
    }
}

impl Study for NetworkStudy {
    type Schedule = SidesSchedule;

    fn measure(
        &mut self,
        first: SamplesKey,
        steps: &mut Steps<'_, '_, SidesSchedule>,
    ) -> Result<(), StudyError> {
        let (side, repetition) = (first.side.clone(), first.repetition);
        let once = |progress: &mut Progress<'_>| {
            progress.doing(&format!("{side}: repetition {}", repetition + 1));
            self.once(&side, progress)
        };
        steps.take(first, once).map(drop)
    }
}
