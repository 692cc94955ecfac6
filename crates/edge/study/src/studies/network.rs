//! What virtualization costs the network: paths natively, to guests and between guests.

use std::time::{Duration, Instant};

use virtbench_lab::{
    ApplianceError, BOOT_LIMIT, EndProcessors, NetworkPath, PathGuest, PathKind, SshAddress, Traffic,
    TrafficMeasured, vhost_device,
};
use virtbench_record::{
    Better, NetworkPathKind, NetworkPlan, Plan, Sample, SamplesKey, SamplesMeasured, TimeCounts,
};

use crate::guests::{ApplianceGuests, GuestChoice};
use crate::runner::event::Estimate;
use crate::runner::progress::{Progress, nanoseconds};
use crate::runner::run::{Experiment, Run, RunEnd};
use crate::runner::sides::SidesSchedule;
use crate::runner::steps::{NoResult, Schedule, Steps, Study, Taken, run_study};
use crate::study_error::StudyError;

/// What a study of the network is asked to do.
#[derive(Debug, Clone)]
pub struct NetworkOptions {
    /// What is measured.
    pub plan: NetworkPlan,
    /// What runs the guests of paths that have some.
    pub guests: GuestChoice,
}

impl Experiment for NetworkOptions {
    const NAME: &'static str = "network";

    fn estimate(&self) -> Estimate {
        NetworkStudy::estimate(&self.plan)
    }

    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        let needs_guests = self.plan.paths.iter().any(|path| path.has_guest());
        let guests = needs_guests.then(|| self.guests.find((self.plan.vcpus, false), run)).transpose()?;
        NetworkStudy::new(self.plan.clone(), guests).run(run)
    }
}

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

const MICROSECOND_NS: f64 = 1e3;

const SECOND_NS: f64 = 1e9;

const GIGABYTE: f64 = 1e9;

/// Adds what one kind of traffic comes to. Of several kinds the host's use is that of the busiest.
fn of_traffic(name: &str, traffic: Traffic, found: &TrafficMeasured, measured: &mut SamplesMeasured) {
    let outcome = &found.outcome;
    let seconds = (outcome.elapsed_ns as f64 / SECOND_NS).max(f64::MIN_POSITIVE);
    let processor_s = found.host.as_ref().map(|host| host.cpu_percent / 100.0 * seconds);
    let cost = |unit: &str, of: f64, scale: f64| {
        let each = processor_s.filter(|_| of > 0.0).map(|seconds| seconds / of * scale);
        each.map(|each| Sample::new(format!("{name}, CPU"), unit, Better::Lower, each))
    };
    let rate = |what: &str, unit: &str, of: u64| Sample::new(what, unit, Better::Higher, of as f64 / seconds);
    let samples = &mut measured.samples;
    match traffic {
        Traffic::To { .. } | Traffic::From { .. } => {
            samples.push(rate(name, "B/s", outcome.bytes));
            samples.extend(cost("s/GB", outcome.bytes as f64 / GIGABYTE, 1.0));
        }
        Traffic::Requests | Traffic::Connections => {
            samples.push(rate(&format!("{name}s"), "1/s", outcome.completed));
            for (part, words) in [(0.5, "median"), (0.99, "99 %")] {
                let time = percentile(&outcome.latencies, part).map(|ns| ns as f64 / MICROSECOND_NS);
                samples.extend(
                    time.map(|us| Sample::new(format!("{name} time, {words}"), "us", Better::Lower, us)),
                );
            }
            samples.extend(cost("us", outcome.completed as f64, 1e6));
            measured.times.push(TimeCounts { name: name.to_owned(), counts: outcome.latencies.clone() });
        }
        Traffic::Datagrams { .. } => {
            samples.push(rate("datagrams received", "1/s", outcome.completed));
            let lost = outcome.sent.saturating_sub(outcome.completed) as f64;
            let percent = 100.0 * lost / (outcome.sent.max(1) as f64);
            samples.push(Sample::new("datagrams lost", "%", Better::Lower, percent));
            samples.extend(cost("us", outcome.completed as f64, 1e6));
        }
    }
    let busiest = measured.host.as_ref().map_or(0.0, |host| host.cpu_percent);
    if found.host.as_ref().is_some_and(|host| host.cpu_percent > busiest) {
        measured.host.clone_from(&found.host);
    }
}

/// The time that so large a part of all does not exceed, in nanoseconds; nothing of none.
fn percentile(counts: &[(u64, u64)], part: f64) -> Option<u64> {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let mut below = 0;
    counts.iter().find_map(|(end, count)| {
        below += count;
        (below as f64 >= part * total as f64).then_some(*end)
    })
}

#[cfg(test)]
mod tests {
    use virtbench_lab::NetworkOutcome;
    use virtbench_samples::host::host_use;

    use super::*;

    fn value(measured: &SamplesMeasured, name: &str) -> f64 {
        measured.samples.iter().find(|sample| sample.name == name).unwrap_or_else(|| panic!("{name}")).value
    }

    #[test]
    fn costs_are_the_hosts_processors_for_a_gigabyte_and_for_each_request() {
        let outcome = NetworkOutcome {
            elapsed_ns: 2_000_000_000,
            bytes: 4_000_000_000,
            completed: 100_000,
            sent: 125_000,
            latencies: vec![(10_000, 50_000), (20_000, 49_000), (900_000, 1000)],
        };
        let found = TrafficMeasured { outcome, host: Some(host_use(150.0, 100.0, 50.0)) };
        let mut measured = SamplesMeasured::default();
        for (name, traffic) in [
            ("TCP to, 1 stream", Traffic::To { streams: 1 }),
            ("request", Traffic::Requests),
            ("datagrams", Traffic::Datagrams { bytes: 64 }),
        ] {
            of_traffic(name, traffic, &found, &mut measured);
        }
        // 3 s of processors for 4 GB and for 100,000 requests.
        assert_eq!(value(&measured, "TCP to, 1 stream"), 2e9);
        assert_eq!(value(&measured, "TCP to, 1 stream, CPU"), 0.75);
        assert_eq!((value(&measured, "requests"), value(&measured, "request, CPU")), (50_000.0, 30.0));
        assert_eq!(value(&measured, "request time, median"), 10.0);
        assert_eq!(value(&measured, "request time, 99 %"), 20.0);
        assert_eq!((value(&measured, "datagrams lost"), measured.times.len()), (20.0, 1));
    }

    #[test]
    fn of_nothing_there_is_no_time_and_no_cost() {
        let found = TrafficMeasured { outcome: NetworkOutcome::default(), host: None };
        let mut measured = SamplesMeasured::default();
        of_traffic("request", Traffic::Requests, &found, &mut measured);
        assert_eq!(measured.samples.len(), 1);
        assert_eq!(measured.samples[0].value, 0.0);
    }
}
