//! Operations on a real OpenStack whose hosts are fake, by virtbench's client and by Rally, in turn on one cloud; beside both what the cloud itself
//! recorded of the same servers.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use virtbench_openstack::{
    Address, Limit, NewServer, OpenStack, OpenStackStand, Operation, Pace, Rally, RallyAction, Until,
};

use crate::footprint;
use crate::pairs::{Verdict, alternated, median};

const LEAST_ROUNDS: usize = 3;
/// Clients at once.
const CLIENTS: [usize; 2] = [1, 4];
/// Times that a client does what a case has, where it is alone, and where there are more; and on slow hosts.
const TIMES: [usize; 2] = [8, 4];
const SLOW_TIMES: [usize; 2] = [3, 2];
/// Times that a client lists servers, and how many there are.
const LISTS: usize = 25;
const LISTED: usize = 20;
/// From the answer to the first look, and from look to look, where both look alike.
const LOOKS: Duration = Duration::from_millis(200);
/// By how much the means of a span that both measure may differ.
const MOST_APART: f64 = 0.05;
/// The median share of the client in a latency, in milliseconds, at most.
const MOST_OWN_MS: f64 = 2.0;

/// What is done again and again: its name here, Rally's scenario, its kinds by Rally's names and ours, and whether an operation is looked at.
struct Case {
    name: &'static str,
    flavor: Flavor,
    scenario: Scenario,
    kinds: &'static [Kind],
    looks: &'static [Looks],
}

/// What servers are made of, and with it how fast their hosts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flavor {
    /// An operation takes its host no time.
    Tiny,
    /// It takes a host five seconds, as real ones take seconds.
    Slow,
}

impl Flavor {
    /// As the stand calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Tiny => "tiny",
            Self::Slow => "slow",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    BootAndDelete,
    Snapshot,
    List,
}

impl Scenario {
    fn rally(self) -> &'static str {
        match self {
            Self::BootAndDelete => "NovaServers.boot_and_delete_server",
            Self::Snapshot => "NovaServers.snapshot_server",
            Self::List => "NovaServers.list_servers",
        }
    }
}

/// An operation: Rally's name of it, and that of the cloud's action, where there is one.
struct Kind {
    name: &'static str,
    action: Option<&'static str>,
    /// Whether both clients measure the same span: Rally logs in anew for the first operation of each iteration, within its time.
    is_same_span: bool,
}

const BOOT: Kind = Kind { name: "nova.boot_server", action: Some("create"), is_same_span: false };
const AGAIN: Kind = Kind { name: "nova.boot_server again", action: None, is_same_span: true };
const DELETE: Kind = Kind { name: "nova.delete_server", action: Some("delete"), is_same_span: true };
const SNAPSHOT: Kind = Kind { name: "nova.snapshot_server", action: Some("createImage"), is_same_span: true };
const LIST: Kind = Kind { name: "nova.list_servers", action: None, is_same_span: false };

const BOOT_AND_DELETE: Case = Case {
    name: "boot-and-delete",
    flavor: Flavor::Tiny,
    scenario: Scenario::BootAndDelete,
    kinds: &[BOOT, DELETE],
    looks: &[Looks::Alike, Looks::Own],
};
const SNAPSHOT_SERVER: Case = Case {
    name: "snapshot",
    flavor: Flavor::Tiny,
    scenario: Scenario::Snapshot,
    kinds: &[SNAPSHOT, AGAIN, DELETE],
    looks: &[Looks::Alike],
};
const LIST_SERVERS: Case = Case {
    name: "list",
    flavor: Flavor::Tiny,
    scenario: Scenario::List,
    kinds: &[LIST],
    looks: &[Looks::Own],
};
const CASES: [Case; 5] = [
    BOOT_AND_DELETE,
    Case {
        name: "boot-and-delete on slow hosts",
        flavor: Flavor::Slow,
        looks: &[Looks::Alike],
        ..BOOT_AND_DELETE
    },
    SNAPSHOT_SERVER,
    Case { name: "snapshot on slow hosts", flavor: Flavor::Slow, ..SNAPSHOT_SERVER },
    LIST_SERVERS,
];

/// How clients learn that an operation is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    /// Both after the same time, and then each so long: they measure the same span.
    Alike,
    /// Each in its own way: Rally after one second or two and then every two, virtbench so that it costs a twentieth of the cloud's time.
    Own,
}

impl Looks {
    fn rally(self) -> String {
        let mut settings = "[database]\nconnection = sqlite:////mnt/rally.sqlite\n[openstack]\n".to_owned();
        if self == Self::Alike {
            for what in ["boot", "delete", "image_create", "image_delete"] {
                for length in ["prepoll_delay", "poll_interval"] {
                    settings += &format!("nova_server_{what}_{length} = {}\n", LOOKS.as_secs_f64());
                }
            }
        }
        settings
    }

    fn pace(self) -> Pace {
        match self {
            Self::Alike => Pace::Steady { first: LOOKS, then: LOOKS },
            Self::Own => Pace::Sparing,
        }
    }
}

/// An operation, from when its client began with it until that knew its end, in seconds since 1970.
#[derive(Debug, Clone)]
struct Span {
    kind: String,
    begun: f64,
    ended: f64,
    /// The client's own share of it, in milliseconds, where it says so.
    own_ms: Option<f64>,
}

/// What the cloud recorded of an action, in seconds since 1970.
struct Recorded {
    action: String,
    /// When the API took it.
    taken: f64,
    /// When the last service was done with it.
    ended: f64,
}

/// When an operation was how far, of what the cloud recorded.
type Moment = fn(&Recorded) -> f64;

/// What a client did, and the cloud's own record of the same operations.
struct Driven {
    spans: Vec<Span>,
    recorded: Vec<Recorded>,
    /// Our processor time for an operation, in milliseconds.
    processor_ms: Option<f64>,
}

impl Driven {
    fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Span> {
        self.spans.iter().filter(move |span| span.kind == kind)
    }

    fn mean_ms(&self, kind: &str) -> f64 {
        1e3 * mean(self.of(kind).map(|span| span.ended - span.begun))
    }

    /// From when the client began to a moment of the cloud's record, in milliseconds.
    fn recorded_ms(&self, kind: &Kind, moment: Moment) -> Option<f64> {
        let of_kind = self.recorded.iter().filter(|recorded| Some(recorded.action.as_str()) == kind.action);
        let moments: Vec<f64> = of_kind.map(moment).collect();
        let begun = mean(self.of(kind.name).map(|span| span.begun));
        (moments.len() == self.of(kind.name).count() && !moments.is_empty())
            .then(|| 1e3 * (mean(moments.into_iter()) - begun))
    }

    /// While the first began and the last ended.
    fn per_second(&self) -> f64 {
        let begun = self.spans.iter().map(|span| span.begun).fold(f64::MAX, f64::min);
        let ended = self.spans.iter().map(|span| span.ended).fold(f64::MIN, f64::max);
        self.spans.len() as f64 / (ended - begun)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    sum / count
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn limit() -> Limit {
    Limit::at(Instant::now() + Duration::from_secs(300))
}

/// The cloud, Rally beside it, and what servers are made of.
struct Stand {
    /// It runs as long as this value lives.
    _stand: OpenStackStand,
    address: Address,
    /// Ids of flavors by their names.
    flavors: BTreeMap<String, String>,
    image: String,
}

impl Stand {
    fn start() -> Result<Self> {
        let stand = OpenStackStand::start()?;
        let address = Address::parse(&stand.argument("admin"))?;
        let cloud = OpenStack::connect(&address, limit())?;
        let flavors = cloud.flavors(limit())?.into_iter().map(|flavor| (flavor.name, flavor.id)).collect();
        let image = cloud.images(limit())?.into_iter().find(|image| image.name == "cirros");
        Ok(Self { _stand: stand, address, flavors, image: image.context("no image")?.id })
    }

    fn connect(&self, looks: Looks) -> Result<OpenStack> {
        Ok(OpenStack::connect(&self.address, limit())?.paced(looks.pace()))
    }

    /// The cloud's record of all that was done with servers since then.
    fn recorded(&self, since: SystemTime) -> Result<Vec<Recorded>> {
        let (cloud, mut servers, mut recorded) = (self.connect(Looks::Own)?, Vec::new(), Vec::new());
        cloud.each_changed_server(since, limit(), |server| servers.push(server.id))?;
        for server in servers {
            for (action, told) in cloud.actions_of(&server, limit())? {
                let told = told.with_context(|| format!("the cloud has no events of {action}"))?;
                if told.ended > since {
                    let ended = seconds(told.ended);
                    recorded.push(Recorded { action, taken: ended - told.elapsed.as_secs_f64(), ended });
                }
            }
        }
        Ok(recorded)
    }
}

/// Alternates the clients, and holds what is promised of the ratios; `only` names a case, and the clients at once.
pub fn check(rounds: usize, only: Option<&str>) -> Result<Vec<Verdict>> {
    // Such as `boot-and-delete:4`, with four clients alone.
    let (name, at_once): (_, Option<usize>) = only.map_or((None, None), |only| match only.split_once(':') {
        Some((name, clients)) => (Some(name), clients.parse().ok()),
        None => (Some(only), None),
    });
    let cases: Vec<&Case> = CASES.iter().filter(|case| name.is_none_or(|name| name == case.name)).collect();
    ensure!(!cases.is_empty(), "there is no case {}", only.unwrap_or_default());
    println!("operations on a real OpenStack with fake hosts; the other client is Rally");
    let stand = Stand::start()?;
    let mut verdicts = Vec::new();
    for case in cases {
        for looks in case.looks {
            for clients in CLIENTS.into_iter().filter(|clients| at_once.is_none_or(|only| only == *clients)) {
                let rally = Rally::ready(&looks.rally())?;
                let mut pairs = Vec::new();
                for round in 0..rounds.max(LEAST_ROUNDS) {
                    let ours = || ours(&stand, case, *looks, clients);
                    let theirs = || theirs(&stand, &rally, case, clients);
                    pairs.push(alternated(round, ours, theirs)?);
                }
                let alike = if *looks == Looks::Alike { ", looks alike" } else { "" };
                let name = format!("openstack: {}, {clients} clients{alike}", case.name);
                verdicts.extend(lines(&name, case, *looks, &pairs));
            }
        }
    }
    Ok(verdicts)
}

/// Where the cloud's record says how far an operation was.
const MOMENTS: [(&str, Moment); 2] =
    [("took it", |recorded| recorded.taken), ("was done", |recorded| recorded.ended)];

/// What is promised of a ratio, in words, and whether it holds.
type Promise = (&'static str, fn(f64) -> bool);

fn lines(name: &str, case: &Case, looks: Looks, pairs: &[(Driven, Driven)]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let mut row = |what: String, values: Vec<(f64, f64)>, promise: Option<Promise>| {
        let ratios: Vec<f64> = values.iter().map(|(ours, theirs)| ours / theirs).collect();
        let (low, high) = ratios.iter().fold((f64::MAX, f64::MIN), |(l, h), r| (l.min(*r), h.max(*r)));
        let (ours, theirs) = values.into_iter().unzip::<f64, f64, Vec<_>, Vec<_>>();
        let ratio = median(ratios);
        let judged = promise.map(|(words, holds)| (words, holds(ratio)));
        let kept = judged.map_or("", |(_, kept)| if kept { "kept" } else { "BROKEN" });
        println!(
            "{what:<68} {:>9.1} {:>9.1} {ratio:>7.3} {:>13}  {} {kept}",
            median(ours),
            median(theirs),
            format!("{low:.2} to {high:.2}"),
            judged.map_or("", |(words, _)| words)
        );
        verdicts.extend(judged.map(|(_, kept)| if kept { Verdict::Kept } else { Verdict::Broken }));
    };
    let rates = pairs.iter().map(|(ours, theirs)| (ours.per_second(), theirs.per_second())).collect();
    row(format!("{name}: operations/s"), rates, Some((">= 1", |ratio| ratio >= 1.0)));
    for kind in case.kinds {
        let means = pairs.iter().map(|(ours, theirs)| (ours.mean_ms(kind.name), theirs.mean_ms(kind.name)));
        let alike: Promise = ("within 5 %", |ratio| (ratio - 1.0).abs() <= MOST_APART);
        let promise = Some(alike).filter(|_| looks == Looks::Alike && kind.is_same_span);
        row(format!("{name}: {}, mean ms", kind.name), means.collect(), promise);
        for (what, moment) in MOMENTS {
            let of_pair = |(ours, theirs): &(Driven, Driven)| {
                Some((ours.recorded_ms(kind, moment)?, theirs.recorded_ms(kind, moment)?))
            };
            let recorded: Vec<(f64, f64)> = pairs.iter().filter_map(of_pair).collect();
            if !recorded.is_empty() {
                row(format!("{name}: {}, until the cloud {what}, ms", kind.name), recorded, None);
            }
        }
    }
    let processor = median(pairs.iter().filter_map(|(ours, _)| ours.processor_ms).collect());
    // Where hosts are slow, an equal pace of looks says how much that is.
    if case.flavor == Flavor::Tiny {
        verdicts.push(footprint::line(&format!("{name}: own processor time (ms)"), processor, MOST_OWN_MS));
    } else {
        println!("{:<68} {processor:>9.2}", format!("{name}: own processor time, ms"));
    }
    let shares = pairs.iter().flat_map(|(ours, _)| ours.spans.iter().filter_map(|span| span.own_ms));
    let share = median(shares.collect());
    verdicts.push(footprint::line(&format!("{name}: own share of a latency (ms)"), share, MOST_OWN_MS));
    verdicts
}

/// Threads on one connection, each with servers of its own, again and again.
fn ours(stand: &Stand, case: &Case, looks: Looks, clients: usize) -> Result<Driven> {
    let cloud = stand.connect(looks)?;
    if case.scenario == Scenario::List {
        fill(stand, &cloud)?;
    }
    let (since, before) = (SystemTime::now(), spent_ms());
    let done: Vec<Vec<Span>> = thread::scope(|scope| {
        let client = |number| load(stand, &cloud, case, (number, times_each(case, clients)));
        let threads: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number))).collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a client panicked"))?);
        joined.collect::<Result<_>>()
    })?;
    let spent = spent_ms() - before;
    let spans: Vec<Span> = done.into_iter().flatten().collect();
    let processor_ms = Some(spent / spans.len() as f64);
    let recorded = if case.scenario == Scenario::List { Vec::new() } else { stand.recorded(since)? };
    Ok(Driven { spans, recorded, processor_ms })
}

fn spent_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Makes a server of the case's flavor, of the image or of another.
fn create(
    (stand, case): (&Stand, &Case),
    cloud: &OpenStack,
    name: &str,
    image: Option<&str>,
) -> Result<(Span, String)> {
    let metadata = BTreeMap::new();
    let flavor = stand.flavors.get(case.flavor.name());
    let flavor = flavor.with_context(|| format!("no flavor {}", case.flavor.name()))?;
    let kind = image.map_or(BOOT.name, |_| AGAIN.name);
    let new = NewServer::new(name, "", &metadata, [flavor, image.unwrap_or(&stand.image)]);
    let (span, made) = timed(cloud, "", &Operation::Create(new), kind)?;
    Ok((span, made.context("it names no server")?))
}

/// Does an operation until the cloud says that it is over.
fn timed(
    cloud: &OpenStack,
    server: &str,
    operation: &Operation<'_>,
    kind: &str,
) -> Result<(Span, Option<String>)> {
    let begun = seconds(SystemTime::now());
    let (times, made) = cloud.perform_until(server, operation, Until::Done, limit());
    let made = made?;
    // The sum of its phases, as a study shows them.
    let length = times.client + times.accepted + times.scheduling + times.running + times.done;
    let own_ms = Some(1e3 * times.client.as_secs_f64());
    Ok((Span { kind: kind.to_owned(), begun, ended: begun + length.as_secs_f64(), own_ms }, made))
}

/// As many servers as are listed; those that are there already count.
fn fill(stand: &Stand, cloud: &OpenStack) -> Result<()> {
    let mut there = Vec::new();
    cloud.each_server(limit(), |server| there.push(server.id))?;
    while there.len() < LISTED {
        there.push(create((stand, &LIST_SERVERS), cloud, &format!("listed-{}", there.len()), None)?.1);
    }
    Ok(())
}

/// What one client does, as Rally's scenario does it.
fn load(stand: &Stand, cloud: &OpenStack, case: &Case, (client, times): (usize, usize)) -> Result<Vec<Span>> {
    let mut spans = Vec::new();
    if case.scenario == Scenario::List {
        for _ in 0..times {
            let begun = seconds(SystemTime::now());
            let mut listed = Vec::new();
            let times = cloud.each_server(limit(), |server| listed.push(server))?;
            ensure!(listed.len() >= LISTED, "it lists {} servers", listed.len());
            let own_ms = Some(1e3 * times.client.as_secs_f64());
            spans.push(Span { kind: LIST.name.to_owned(), begun, ended: seconds(SystemTime::now()), own_ms });
        }
        return Ok(spans);
    }
    for number in 0..times {
        let name = format!("bench-{client}-{number}");
        let (span, server) = create((stand, case), cloud, &name, None)?;
        spans.push(span);
        if case.scenario == Scenario::Snapshot {
            let metadata = BTreeMap::new();
            let operation = Operation::CreateImage { name: &name, metadata: &metadata };
            let (span, made) = timed(cloud, &server, &operation, SNAPSHOT.name)?;
            spans.push(span);
            let image = made.context("it names no image")?;
            spans.push(timed(cloud, &server, &Operation::Delete, DELETE.name)?.0);
            let (span, server) = create((stand, case), cloud, &name, Some(&image))?;
            spans.push(span);
            spans.push(timed(cloud, &server, &Operation::Delete, DELETE.name)?.0);
            let operation = Operation::DeleteImage { image: &image };
            spans.push(timed(cloud, "", &operation, "glance.delete_image")?.0);
        } else {
            spans.push(timed(cloud, &server, &Operation::Delete, DELETE.name)?.0);
        }
    }
    Ok(spans)
}

/// How often each client does what a case has.
fn times_each(case: &Case, clients: usize) -> usize {
    let several = usize::from(clients > 1);
    match (case.scenario, case.flavor) {
        (Scenario::List, _) => LISTS,
        (_, Flavor::Tiny) => TIMES[several],
        (_, Flavor::Slow) => SLOW_TIMES[several],
    }
}

fn theirs(stand: &Stand, rally: &Rally, case: &Case, clients: usize) -> Result<Driven> {
    if case.scenario == Scenario::List {
        fill(stand, &stand.connect(Looks::Own)?)?;
    }
    let times = clients * times_each(case, clients);
    let what = json!({ "flavor": { "name": case.flavor.name() }, "image": { "name": "cirros" }, "auto_assign_nic": false });
    let arguments = if case.scenario == Scenario::List { json!({ "detailed": true }) } else { what };
    let runner = json!({ "type": "constant", "times": times, "concurrency": clients });
    let since = SystemTime::now();
    let iterations =
        rally.run(&json!({ case.scenario.rally(): [{ "args": arguments, "runner": runner }] }))?;
    let spans = iterations.into_iter().flat_map(spans_of).collect();
    let recorded = if case.scenario == Scenario::List { Vec::new() } else { stand.recorded(since)? };
    Ok(Driven { spans, recorded, processor_ms: None })
}

/// Rally's actions of one iteration. A second boot is of a client that has logged in.
fn spans_of(actions: Vec<RallyAction>) -> Vec<Span> {
    let mut boots = 0;
    let spans = actions.into_iter().map(|RallyAction { name, begun, ended }| {
        boots += u32::from(name == BOOT.name);
        let is_again = boots > 1 && name == BOOT.name;
        Span { kind: if is_again { AGAIN.name.to_owned() } else { name }, begun, ended, own_ms: None }
    });
    spans.collect()
}
