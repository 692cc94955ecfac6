//! What so many tiles will do, predicted from what each member does by itself: one tile stands, and each of its members in turn is alone
//! under load.
//!
//! Two levels. In its VM a member's users are customers of a closed network ([`queueing`](crate::predict::queueing)): they think, wait for
//! what is no processor, and compute on the VM's processors. On the host the processors of all VMs share those of the host equally:
//!
//! ```text
//! a member by itself ---> processor time an operation, waiting     Member
//! all members -------> how many processors are wanted at once      wanted
//!                  -> how many times as long computing takes       stretch
//!                  -> operations a second, and so how much is wanted, until nothing changes any more
//! ```
//!
//! What is waited for is taken to be as long as it is alone: disks and networks that are used up are not foreseen.

use virtbench_record::{
    HostUse, Status, TileAlone, TileDone, TileLoadKind, TileMemberPlan, TilePredicted, TilePredictedMember,
    TilePredictionErrors, TilesMeasured, TilesPlan, TilesRecord,
};

use crate::predict::queueing::{Network, Solved, Station, solve};

/// Users of a generator where nothing is said of them.
const USERS: u32 = 8;
/// Steps of a bisection.
const STEPS: u32 = 40;
/// Rounds after which a fixed point is reached: each closes a third of what is missing.
const ROUNDS: u32 = 200;
const DAMPING: f64 = 1.0 / 3.0;
/// A member that does less of its rate has not kept up with it, so that its response time has no mean.
const KEPT_UP: f64 = 0.98;

/// One tile whose members were each measured by themselves.
#[derive(Debug, Clone, PartialEq)]
struct Tile {
    members: Vec<Member>,
    /// Processors that the members take while nobody is under load.
    idle: f64,
    /// Processors of the host.
    processors: f64,
}

/// A member, as it was by itself.
#[derive(Debug, Clone, PartialEq)]
struct Member {
    name: String,
    users: u32,
    pace: Pace,
    /// Processors of its VM; natively those of the host.
    servers: f64,
    /// Processor time of the host for an operation, in seconds: guest, hypervisor and generator.
    host_s: f64,
    /// What of it a user waits for, in seconds: the rest is computed beside.
    computes_s: f64,
    /// What a user waits for beside it, in seconds.
    waits_s: f64,
}

/// What decides how often a user asks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pace {
    /// So many operations a second are due, of all users together.
    Rate(f64),
    /// A user thinks for so many seconds between two operations.
    Think(f64),
}

/// Predicts every run that counts of a study whose members were measured by themselves. Nothing where one of them is missing.
#[must_use]
pub(super) fn predicted(plan: &TilesPlan, records: &[TilesRecord]) -> Vec<TilePredicted> {
    let Some(tile) = Tile::of(plan, records) else { return Vec::new() };
    let together = records.iter().filter(|record| record.is_together() && record.void().is_none());
    let one = |record: &TilesRecord| {
        let measured = record.measured()?;
        let foreseen = tile.with(record.key.tiles);
        let members = tile.members.iter().zip(&foreseen.members);
        Some(TilePredicted {
            tiles: record.key.tiles,
            repetition: record.key.repetition,
            members: members.filter_map(|(member, done)| beside(member, *done, measured)).collect(),
            predicted_busy_percent: 100.0 * foreseen.busy,
            measured_busy_percent: 100.0 * used(&measured.host) / f64::from(measured.host.processors.max(1)),
        })
    };
    together.filter_map(one).collect()
}

/// Why no tiles are predicted, in words: the first member that was not measured by itself; nothing where predictions were not asked for.
#[must_use]
pub(super) fn unpredicted(plan: &TilesPlan, records: &[TilesRecord]) -> Option<String> {
    plan.measured_alone().into_iter().find_map(|who| {
        let name = match who {
            TileAlone::Nobody => "the idle tile",
            TileAlone::Member(place) => plan.members[place as usize].name.as_str(),
        };
        let last = records.iter().rfind(|record| record.key.alone == Some(who));
        let why = match last.map(|record| (&record.status, record.void())) {
            None => "was not measured yet".to_owned(),
            Some((_, Some(void))) => format!("has no run that counts: {}", void.join("; ")),
            Some((Status::Measured(_), None)) => return None,
            Some((
                Status::Failed { why, .. } | Status::Unavailable { why } | Status::Incomplete { why, .. },
                None,
            )) => {
                format!("failed: {why}")
            }
        };
        Some(format!("{name} by itself {why}"))
    })
}

/// How far predictions are off on average, each of a run by itself; nothing of none.
#[must_use]
pub(super) fn errors(predicted: &[TilePredicted]) -> Option<TilePredictionErrors> {
    let of = |pairs: &mut dyn Iterator<Item = (f64, f64)>| {
        let errors: Vec<f64> =
            pairs.filter(|(_, is)| *is > 0.0).map(|(said, is)| 100.0 * (said / is - 1.0).abs()).collect();
        (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64)
    };
    let members = || predicted.iter().flat_map(|run| &run.members);
    Some(TilePredictionErrors {
        runs: u32::try_from(predicted.len()).unwrap_or(u32::MAX),
        per_second_percent: of(&mut members().map(|one| (one.predicted_per_second, one.measured_per_second)))?,
        response_percent: of(&mut members()
            .filter_map(|one| Some((one.predicted_response_ns? as f64, one.measured_response_ns? as f64)))),
        busy_percent: of(&mut predicted
            .iter()
            .map(|run| (run.predicted_busy_percent, run.measured_busy_percent)))?,
    })
}

/// A member's prediction beside what it did, on average over the tiles of a run.
fn beside(member: &Member, foreseen: Foreseen, measured: &TilesMeasured) -> Option<TilePredictedMember> {
    let own = || measured.members.iter().filter(|one| one.member == member.name);
    let done: Vec<&TileDone> = own().filter_map(|one| one.done.as_ref()).collect();
    let mean = |values: Vec<f64>| {
        (values.len() == done.len()).then(|| values.iter().sum::<f64>() / values.len().max(1) as f64)
    };
    let kept_up = done.iter().all(|done| !done.fell_behind);
    let response_s = mean(done.iter().filter_map(|done| response_s(done)).collect()).filter(|_| kept_up);
    let nanoseconds = |seconds: f64| std::time::Duration::try_from_secs_f64(seconds).ok();
    let nanoseconds = |seconds: Option<f64>| {
        nanoseconds(seconds?).map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    };
    Some(TilePredictedMember {
        member: member.name.clone(),
        predicted_per_second: foreseen.per_second,
        measured_per_second: mean(done.iter().map(|done| done.per_second).collect())
            .filter(|_| !done.is_empty())?,
        predicted_response_ns: nanoseconds(foreseen.response_s),
        measured_response_ns: nanoseconds(response_s),
    })
}

/// Processors that the members, their generators and the kernel for them take.
fn used(host: &HostUse) -> f64 {
    (host.cpu_percent - host.others_percent.unwrap_or(0.0)).max(0.0) / 100.0
}

/// Mean response time, in seconds; of a client what it told.
fn response_s(done: &TileDone) -> Option<f64> {
    let told_ns = done.client_response_ns.map(|ns| ns as f64);
    done.latency_ns.map(|latency| latency.mean).or(told_ns).map(|ns| ns / 1e9)
}

/// A member among so many tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Foreseen {
    per_second: f64,
    /// Mean response time, in seconds; nothing where it does not keep up with its rate.
    response_s: Option<f64>,
}

/// So many tiles.
#[derive(Debug, Clone, PartialEq)]
struct Together {
    members: Vec<Foreseen>,
    /// Share of the host's processors that is busy.
    busy: f64,
}

impl Tile {
    /// What was measured of each member by itself; nothing where one is missing, or a run does not count.
    fn of(plan: &TilesPlan, records: &[TilesRecord]) -> Option<Self> {
        let alone = |who: TileAlone| {
            let own = records.iter().filter(|record| record.key.alone == Some(who));
            own.filter(|record| record.void().is_none()).find_map(TilesRecord::measured)
        };
        let nobody = alone(TileAlone::Nobody)?;
        let processors = f64::from(nobody.host.processors.max(1));
        let idle = used(&nobody.host);
        let member = |place: &u32| {
            let member = &plan.members[*place as usize];
            let measured = alone(TileAlone::Member(*place))?;
            let done = measured.members.iter().find(|one| one.member == member.name)?.done.as_ref()?;
            let servers = if plan.vm { f64::from(member.vcpus) } else { processors };
            let more = (used(&measured.host) - idle).max(0.0);
            Member::of(member, done, more, servers)
        };
        let members: Option<Vec<Member>> = plan.loaded().iter().map(member).collect();
        let members = members.filter(|members| !members.is_empty())?;
        Some(Self { members, idle, processors })
    }

    /// All members of so many tiles at once.
    fn with(&self, tiles: u32) -> Together {
        let mut stretches = vec![1.0; self.members.len()];
        for _ in 0..ROUNDS {
            let wanted = self.wanted(tiles, &stretches);
            for (place, stretch) in stretches.iter_mut().enumerate() {
                let now = self.stretch(&wanted, place);
                *stretch += DAMPING * (now - *stretch);
            }
        }
        let members: Vec<Foreseen> =
            self.members.iter().zip(&stretches).map(|(member, stretch)| member.foreseen(*stretch)).collect();
        let of_members =
            members.iter().zip(&self.members).map(|(done, member)| done.per_second * member.host_s);
        let used = f64::from(tiles) * (self.idle + of_members.sum::<f64>());
        Together { members, busy: (used / self.processors).min(1.0) }
    }

    /// Who wants a processor of the host, by the share of time: for each member how many are alike and how often each wants one, first
    /// the processors of its VMs and then what is computed beside, and at last tiles that only stand there.
    fn wanted(&self, tiles: u32, stretches: &[f64]) -> Vec<(u32, f64)> {
        let of_member = |(member, stretch): (&Member, &f64)| {
            let rate = member.foreseen(*stretch).per_second * stretch;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a number of processors
            let servers = member.servers.min(f64::from(member.users)).max(1.0) as u32;
            let own = rate * member.computes_s / f64::from(servers);
            let rest = rate * (member.host_s - member.computes_s);
            [(tiles * servers, own.min(1.0)), (tiles, rest.min(1.0))]
        };
        let mut wanted: Vec<(u32, f64)> = self.members.iter().zip(stretches).flat_map(of_member).collect();
        wanted.push((tiles, self.idle.min(1.0)));
        wanted
    }

    /// How many times as long a processor of this member's VM takes for its work, because others want one too: the mean over how many
    /// do at once.
    fn stretch(&self, wanted: &[(u32, f64)], place: usize) -> f64 {
        let mut at_once = vec![1.0];
        for (index, (number, share)) in wanted.iter().enumerate() {
            let others = if index == 2 * place { number.saturating_sub(1) } else { *number };
            for _ in 0..others {
                at_once = with_one_more(&at_once, *share);
            }
        }
        let slower = |others: usize| ((1 + others) as f64 / self.processors).max(1.0);
        at_once.iter().enumerate().map(|(others, weight)| weight * slower(others)).sum()
    }
}

/// How likely it is that so many want a processor at once, with another one that does for this share of the time.
fn with_one_more(at_once: &[f64], share: f64) -> Vec<f64> {
    let mut more = vec![0.0; at_once.len() + 1];
    for (count, weight) in at_once.iter().enumerate() {
        more[count] += weight * (1.0 - share);
        more[count + 1] += weight * share;
    }
    more
}

impl Member {
    /// By what it did alone, when the host computed so many processors' time more than with nobody under load.
    fn of(plan: &TileMemberPlan, done: &TileDone, more: f64, servers: f64) -> Option<Self> {
        let (rate, response_s) = (done.per_second, response_s(done)?);
        if rate <= 0.0 || response_s <= 0.0 {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at least one, and few
        let in_flight = (rate * response_s).round().max(1.0) as u32;
        let of_kind = if plan.load.kind == TileLoadKind::Client { in_flight } else { USERS };
        let users = plan.load.users.unwrap_or(of_kind);
        let pace = match plan.load.rate {
            Some(rate) => Pace::Rate(rate),
            None => Pace::Think((f64::from(users) / rate - response_s).max(0.0)),
        };
        let host_s = more / rate;
        let mut member =
            Self { name: plan.name.clone(), users, pace, servers, host_s, computes_s: host_s, waits_s: 0.0 };
        // What takes longer to compute than users wait for is computed beside; what is left of their waiting is no computing.
        let is_longer = |member: &Self| member.response_alone_s(rate) > response_s;
        let (mut low, mut high) = (0.0, host_s);
        if is_longer(&member) {
            for _ in 0..STEPS {
                member.computes_s = f64::midpoint(low, high);
                if is_longer(&member) { high = member.computes_s } else { low = member.computes_s }
            }
            member.computes_s = low;
        } else {
            (low, high) = (0.0, response_s);
            for _ in 0..STEPS {
                member.waits_s = f64::midpoint(low, high);
                if is_longer(&member) { high = member.waits_s } else { low = member.waits_s }
            }
        }
        Some(member)
    }

    /// The response time by itself when it does so much a second, in seconds.
    fn response_alone_s(&self, rate: f64) -> f64 {
        let think_s = match self.pace {
            Pace::Think(seconds) => seconds,
            Pace::Rate(_) => return self.at_rate(1.0, rate).1,
        };
        self.response(1.0, think_s).1
    }

    /// Operations a second and the response time in seconds, with computing stretched and users who think for so long.
    fn response(&self, stretch: f64, think_s: f64) -> (f64, f64) {
        let computing = Station { demand_s: self.computes_s * stretch, servers: self.servers };
        let stations = vec![computing];
        let Solved { per_second, residence_s, .. } =
            solve(&Network { customers: self.users, think_s: think_s + self.waits_s, stations });
        (per_second, self.waits_s + residence_s[0])
    }

    /// The same where so many operations a second are due: less where all users are busy before.
    fn at_rate(&self, stretch: f64, rate: f64) -> (f64, f64) {
        let (mut low, mut high) = (0.0, f64::from(self.users) / rate);
        let most = self.response(stretch, 0.0);
        if most.0 <= rate {
            return most;
        }
        for _ in 0..STEPS {
            let think_s = f64::midpoint(low, high);
            if self.response(stretch, think_s).0 > rate { low = think_s } else { high = think_s }
        }
        self.response(stretch, high)
    }

    /// What it does where computing takes so many times as long.
    fn foreseen(&self, stretch: f64) -> Foreseen {
        match self.pace {
            Pace::Think(seconds) => {
                let (per_second, response_s) = self.response(stretch, seconds);
                Foreseen { per_second, response_s: Some(response_s) }
            }
            Pace::Rate(rate) => {
                let (per_second, response_s) = self.at_rate(stretch, rate);
                let kept_up = per_second >= KEPT_UP * rate;
                Foreseen { per_second: per_second.min(rate), response_s: kept_up.then_some(response_s) }
            }
        }
    }
}

#[cfg(test)]
#[path = "predicted_tests.rs"]
mod tests;
