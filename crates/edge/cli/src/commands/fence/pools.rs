//! Which of a file's fences a command is about, and what ends such a command, with its exit code.

use std::path::Path;

use serde::Serialize;
use virtbench_fence_daemon::ServeError;
use virtbench_fence_daemon::admin::ResizeError;
use virtbench_fence_daemon::config::{Config, Pools};
use virtbench_fence_daemon::frontend::nbd::NbdSetupError;

use crate::args::fence::PoolArg;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;

/// Reads a configuration.
pub fn load(path: &Path) -> Result<Pools, Failure> {
    Pools::load(path).map_err(|error| failure(error.into()))
}

/// The same once more, as a daemon that is supervised.
pub fn load_again(path: &Path) -> Result<Pools, Failure> {
    Pools::load_again(path).map_err(|error| failure(error.into()))
}

/// The fences that `--pool` names: all without it.
pub fn chosen<'a>(pools: &'a Pools, only: &PoolArg) -> Result<Vec<&'a Config>, Failure> {
    only.pool
        .as_deref()
        .map_or_else(|| Ok(pools.all().iter().collect()), |name| named(pools, name).map(|one| vec![one]))
}

/// The fence that `--pool` names, or the only one.
pub fn one<'a>(pools: &'a Pools, pool: Option<&str>) -> Result<&'a Config, Failure> {
    match (pool, pools.all()) {
        (Some(name), _) => named(pools, name),
        (None, [one]) => Ok(one),
        (None, _) => {
            let why = format!("the configuration has several pools: {}", pools.which());
            Err(Failure::message(Kind::Usage, why))
        }
    }
}

/// The fence that has a disk.
pub fn of_disk<'a>(pools: &'a Pools, disk: &str) -> Result<&'a Config, Failure> {
    pools.of_disk(disk).ok_or_else(|| broken(ResizeError::NoDisk(disk.to_owned())))
}

fn named<'a>(pools: &'a Pools, name: &str) -> Result<&'a Config, Failure> {
    let unknown = || {
        let why = format!("--pool {name}: there is no such pool: {}", pools.which());
        Failure::message(Kind::Usage, why)
    };
    pools.named(name).ok_or_else(unknown)
}

/// What lines about a fence begin with.
pub fn prefix(fence: &Config) -> String {
    fence.pool.as_ref().map_or_else(String::new, |pool| format!("pool {pool}: "))
}

/// The failure of a fence, which says of which.
pub fn within(fence: &Config, failure: Failure) -> Failure {
    match &fence.pool {
        Some(pool) => failure.within(format!("pool {pool}")),
        None => failure,
    }
}

/// Does the same to each fence, though one fails. The worst failure is the answer; others are told.
pub fn each(fences: &[&Config], mut work: impl FnMut(&Config) -> Outcome) -> Outcome {
    let mut failures = Vec::new();
    for fence in fences {
        if let Err(failure) = work(fence) {
            let is_over = failure.kind() == Kind::Interrupted;
            failures.push(within(fence, failure));
            if is_over {
                break;
            }
        }
    }
    worst_of(failures).map_or(Ok(()), Err)
}

/// The worst of them; the others are told.
pub fn worst_of(mut failures: Vec<Failure>) -> Option<Failure> {
    let place = (0..failures.len()).min_by_key(|&place| rank(failures[place].kind()))?;
    let worst = failures.remove(place);
    for other in failures {
        tell!("virtbench: {}", other.sentence());
    }
    Some(worst)
}

/// Of several ways in which pools ended the one whose code is the command's: damage before what can be tried again.
pub fn rank(kind: Kind) -> usize {
    let worst_first =
        [Kind::Inconsistent, Kind::Target, Kind::Environment, Kind::Usage, Kind::Other, Kind::Interrupted];
    worst_first.iter().position(|&one| one == kind).unwrap_or(worst_first.len())
}

/// What was found of one pool.
#[derive(Serialize)]
struct OfPool<T> {
    pool: String,
    #[serde(flatten)]
    found: T,
}

/// What `--json` prints: an object, or in a file with pools `{"pools": [...]}` with the name of each.
pub fn json<T: Serialize>(found: Vec<(Option<String>, T)>) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct All<T> {
        pools: Vec<OfPool<T>>,
    }
    let mut pools = Vec::new();
    for (pool, found) in found {
        match pool {
            Some(pool) => pools.push(OfPool { pool, found }),
            None => return virtbench_formats::json::pretty_text(&found),
        }
    }
    virtbench_formats::json::pretty_text(&All { pools })
}

/// A fence cannot be served or looked at.
pub fn failure(error: ServeError) -> Failure {
    let kind = match &error {
        error if error.is_damage() => Kind::Inconsistent,
        ServeError::Load(_) | ServeError::Config(_) => Kind::Usage,
        ServeError::Device(_)
        | ServeError::Label(_)
        | ServeError::Attach(_)
        | ServeError::Cache { .. }
        | ServeError::Listen(_)
        | ServeError::MemoryLog(_) => Kind::Target,
        ServeError::Nbd(NbdSetupError::Tls(_)) => Kind::Usage,
        ServeError::Nbd(NbdSetupError::Listen(_)) => Kind::Target,
        ServeError::System { .. } => Kind::Environment,
    };
    Failure::new(kind, error)
}

/// A fence cannot be changed.
pub fn broken(error: ResizeError) -> Failure {
    let kind = match error {
        ResizeError::Serve(error) => return failure(error),
        ResizeError::NoDisk(_) | ResizeError::Value(_) | ResizeError::Shrinks { .. } => Kind::Usage,
        ResizeError::NoRoom { .. } | ResizeError::Served(_) | ResizeError::NotNow(_) => Kind::Target,
        ResizeError::Damaged { .. } | ResizeError::OfOtherDisks { .. } => Kind::Inconsistent,
        ResizeError::Interrupted => Kind::Interrupted,
    };
    Failure::new(kind, error)
}
