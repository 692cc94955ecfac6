//! `virtbench appliance run`

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use virtbench_lab::ServiceEnd;
use virtbench_recipe::Recipe;
use virtbench_study::{
    BuiltAppliance, Progress, StudyError, TriedAppliance, check_native, find_recipe, trial_folder,
};

use crate::applications::shown;
use crate::args::appliance::ApplianceRunArgs;
use crate::commands::study_runs::study_failure;
use crate::exit::Outcome;
use crate::interrupt;
use crate::own_networks::command_within;
use crate::say::{print_json, say, tell};

/// How often it is looked whether something has ended.
const LOOK: Duration = Duration::from_millis(200);

/// What `--json` prints once everything is ready.
#[derive(Serialize)]
struct Answer {
    appliance: String,
    vm: bool,
    /// Its process on this host: QEMU's, User Mode Linux's, or the agent's.
    process: Option<u32>,
    /// Of each service, how long it took to get ready, in nanoseconds.
    services: BTreeMap<String, u64>,
    /// Of each port, where clients connect to.
    ports: BTreeMap<u16, String>,
    /// Its network namespace, where clients have to be; nothing where they reach it from this host's network.
    network: Option<String>,
    /// The words before a client's command that bring it there.
    enter: Option<String>,
    /// Where its agent answers measurements of the path to it.
    agent: Option<String>,
}

/// Starts an appliance, says where it is, and ends it in good order.
pub fn execute(args: &ApplianceRunArgs) -> Outcome {
    let recipe = find_recipe(&args.recipe).map_err(study_failure)?.recipe;
    let begun = Instant::now();
    let mut tried = shown(|progress| start(args, &recipe, progress)).map_err(study_failure)?;
    let answer = answer(&recipe.name, !args.native, &tried);
    if args.json {
        print_json(&answer)?;
    } else {
        show(&answer, begun.elapsed());
    }
    let ended = watch(&mut tried, args.time);
    if args.logs || ended.is_err() {
        for service in &recipe.services {
            let log = tried.appliance.log(&service.name).unwrap_or_else(|error| error.to_string());
            tell!("--- the end of {}'s log\n{}", service.name, log.trim_end());
        }
    }
    ended?;
    let (services, notes) = tried.stop().map_err(study_failure)?;
    if !args.json {
        services.iter().for_each(|end| say!("{} {}", end.service, how(end)));
    }
    notes.iter().for_each(|note| tell!("virtbench: {note}"));
    Ok(())
}

fn start(
    args: &ApplianceRunArgs,
    recipe: &Recipe,
    progress: &mut Progress<'_>,
) -> Result<TriedAppliance, StudyError> {
    if args.native {
        check_native()?;
    }
    let built = BuiltAppliance::find(recipe, progress)?;
    let remark = &mut |what: &str| progress.remark(what);
    let find = || args.qemu.appliance_guests(recipe.screen, remark);
    let guests = (!args.native).then(find).transpose()?;
    progress.doing(&format!("starting {}", recipe.name));
    let folder = trial_folder().map_err(|error| StudyError::Environment(error.into()))?;
    let size = (args.vcpus, args.memory.unwrap_or_else(|| built.least_memory()));
    TriedAppliance::start(&built, guests, size, &folder)
}

/// How a service ended.
fn how(end: &ServiceEnd) -> String {
    let how = match (end.killed, end.exit_code, end.signal) {
        (true, ..) => "had to be killed".to_owned(),
        (false, Some(code), _) => format!("ended with code {code}"),
        (false, None, Some(signal)) => format!("ended by signal {signal}"),
        (false, None, None) => "ended".to_owned(),
    };
    format!("{how} after {:.1} s", end.took_ns as f64 / 1e9)
}

fn answer(name: &str, vm: bool, tried: &TriedAppliance) -> Answer {
    let appliance = &tried.appliance;
    let ports = appliance.ports().into_iter();
    Answer {
        appliance: name.to_owned(),
        vm,
        process: appliance.processes().first().copied(),
        services: appliance.facts().services.iter().map(|one| (one.service.clone(), one.ready_ns)).collect(),
        enter: appliance.reach().path().map(|path| command_within(&path)),
        network: appliance.reach().path(),
        agent: appliance.path_address().map(|address| address.to_string()),
        ports: ports.filter_map(|port| Some((port, appliance.address(port)?.to_string()))).collect(),
    }
}

fn show(answer: &Answer, took: Duration) {
    let Answer { appliance, vm, services, ports, enter, agent, .. } = answer;
    let place = if *vm { "in a VM" } else { "natively" };
    say!("{appliance} runs {place} after {:.1} s; Ctrl-C ends it", took.as_secs_f64());
    for (name, ready_ns) in services {
        say!("service  {name}, ready after {:.1} s", *ready_ns as f64 / 1e9);
    }
    for (port, address) in ports {
        say!("port     {port} at {address}");
    }
    if let Some(agent) = agent {
        say!("agent    at {agent}: `virtbench appliance path {agent}` measures the path to it");
    }
    if let Some(enter) = enter.as_ref().filter(|_| !ports.is_empty()) {
        say!("its network is its own: {enter} COMMAND runs a client there");
    }
}

/// Waits until a stop is asked for or the time is over.
///
/// # Errors
/// A service or the machine has ended by itself.
fn watch(tried: &mut TriedAppliance, time: Option<Duration>) -> Outcome {
    let begun = Instant::now();
    while !interrupt::requested() && time.is_none_or(|time| begun.elapsed() < time) {
        if let Some(crash) = tried.appliance.crashed() {
            return Err(study_failure(crash.into()));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
