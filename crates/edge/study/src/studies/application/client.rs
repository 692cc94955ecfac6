//! A client's command, run on this host within an appliance's network: its words, its end, and several of them at one time.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{CommandError, CpuSample, Reach, RunningAppliance, run_command_followed};
use virtbench_record::{ApplicationFailureDetail, HostUse};

use super::schedule::ApplicationFailure;
use crate::disks::served::Served;
use crate::study_error::StudyError;

/// How much of what it prints is kept, in bytes: the end.
const MOST_OUTPUT: usize = 64 << 10;

/// A command that is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// Program and arguments.
    pub(crate) words: Vec<String>,
    /// Where it has to be.
    pub(crate) reach: Reach,
    /// How long it may take.
    pub(crate) limit: Duration,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct ClientEnd {
    /// Whether it did what it was to do.
    pub(crate) result: Result<(), CommandError>,
    /// The end of what it printed.
    pub(crate) output: String,
    /// How long it took.
    pub(crate) elapsed: Duration,
}

impl Client {
    /// Runs it to its end, or until `stop` is set. Nothing of it is left.
    pub(crate) fn run(&self, stop: &AtomicBool) -> ClientEnd {
        let (name, arguments) = self.words.split_first().map_or(("", &[][..]), |(name, rest)| (name, rest));
        let mut command = Command::new(name);
        command.args(arguments);
        self.reach.run_there(&mut command);
        let (begun, mut output) = (Instant::now(), String::new());
        let what = format!("the client {name}");
        let result = run_command_followed(command, &what, self.limit, stop, &mut |line| {
            output.push_str(line);
            output.push('\n');
            if output.len() > 2 * MOST_OUTPUT {
                output = end(&output).to_owned();
            }
        });
        ClientEnd { result, output: end(&output).to_owned(), elapsed: begun.elapsed() }
    }
}

/// The end of a text.
fn end(text: &str) -> &str {
    let mut from = text.len().saturating_sub(MOST_OUTPUT);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// Why it did not do what it was to do, and what helps.
pub(crate) fn explained(error: &CommandError) -> String {
    match error {
        CommandError::Start { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            format!("{error}: install it, or name it with its folder")
        }
        CommandError::TooLong { .. } => {
            format!("{error} and was ended: give it less to do, or raise limit in the study's file")
        }
        error => error.to_string(),
    }
}

/// A command for this software: `{host}` and `{port}` are the address of its first port, `{port:N}` that of port N,
/// `{processors}` how many it has. Everything else stays as it is.
///
/// # Errors
/// It has no such port; in words.
pub(crate) fn client_words(words: &[String], served: &dyn Served) -> Result<Vec<String>, String> {
    let ports = served.ports();
    let address = |port: u16| served.address(port);
    words.iter().map(|word| filled(word, &ports, served.processors(), &address)).collect()
}

fn filled(
    word: &str,
    ports: &[u16],
    processors: u32,
    address: &dyn Fn(u16) -> Option<SocketAddr>,
) -> Result<String, String> {
    let first = ports.first().and_then(|port| address(*port));
    let mut filled = word.replace("{processors}", &processors.to_string());
    if filled.contains("{host}") || filled.contains("{port}") {
        let first = first.ok_or("the recipe's services have no port, so there is no {host} and no {port}")?;
        filled =
            filled.replace("{host}", &first.ip().to_string()).replace("{port}", &first.port().to_string());
    }
    for port in ports {
        let name = format!("{{port:{port}}}");
        if let Some(address) = address(*port).filter(|_| filled.contains(&name)) {
            filled = filled.replace(&name, &address.port().to_string());
        }
    }
    match filled.split_once("{port:").and_then(|(_, rest)| rest.split_once('}')) {
        Some((port, _)) => Err(format!("{{port:{port}}}: the recipe's services have the ports {ports:?}")),
        None => Ok(filled),
    }
}

/// Between two looks at how everybody is.
const PAUSE: Duration = Duration::from_millis(50);

/// How long neighbours have been at work when measuring begins.
const LEAD: Duration = Duration::from_secs(1);

/// How long after a client's failure the news may take that its service has ended.
const NEWS: Duration = Duration::from_secs(2);

/// What came of clients that ran together.
#[derive(Debug)]
pub(super) struct Together {
    /// The one that was measured.
    pub(super) end: ClientEnd,
    /// The host meanwhile.
    pub(super) host: Option<HostUse>,
    /// How often each neighbour's client ended.
    pub(super) runs: Vec<u32>,
}

/// Why a neighbour is none any more.
type NeighbourEnd = Result<u32, (CommandError, String)>;

/// Runs the clients of these appliances, each by its number, the first being measured.
///
/// # Errors
/// A service or a machine ended, a client failed, or it was to stop.
pub(super) fn run_together(
    clients: &[Client],
    appliances: &mut [RunningAppliance],
    stop: &AtomicBool,
) -> Result<Together, ApplicationFailure> {
    let over = AtomicBool::new(false);
    let (first, others) =
        clients.split_first().ok_or_else(|| StudyError::input("there is no client: a defect"))?;
    thread::scope(|scope| {
        let neighbours: Vec<_> =
            others.iter().map(|client| scope.spawn(|| again_and_again(client, &over))).collect();
        let ended = || neighbours.iter().position(thread::ScopedJoinHandle::is_finished);
        let crash =
            match watch(appliances, stop, &|since| since >= LEAD || others.is_empty() || ended().is_some()) {
                None => None,
                Some(crash) => {
                    over.store(true, Ordering::Relaxed);
                    Some(crash)
                }
            };
        let measured = crash.is_none().then(|| {
            let before = CpuSample::take().ok();
            (scope.spawn(|| first.run(&over)), before)
        });
        let mut crash = crash;
        if let Some((measured, _)) = &measured {
            crash = watch(appliances, stop, &|_| measured.is_finished() || ended().is_some());
            over.store(crash.is_some() || ended().is_some(), Ordering::Relaxed);
        }
        let after = CpuSample::take().ok();
        let measured = measured.map(|(thread, before)| (thread.join(), before));
        over.store(true, Ordering::Relaxed);
        let ends = neighbours
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Ok(0)))
            .collect::<Vec<NeighbourEnd>>();
        if let Some(failure) = crash {
            return Err(with_output(failure, measured.and_then(|(end, _)| Some(end.ok()?.output))));
        }
        let mut runs = Vec::new();
        for (number, end) in (1..).zip(ends) {
            runs.push(end.map_err(|(error, output)| ApplicationFailure::Failed {
                why: format!("neighbour {number}: {}", explained(&error)),
                detail: ApplicationFailureDetail { output: Some(output) },
            })?);
        }
        let defect = || ApplicationFailure::failed("the client's thread has failed: a defect");
        let (end, before) = measured.ok_or_else(defect)?;
        let end = end.map_err(|_| defect())?;
        if end.result.is_err()
            && let Some(failure) = watch(appliances, stop, &|since| since >= NEWS)
        {
            return Err(with_output(failure, Some(end.output)));
        }
        let host = before.zip(after).map(|(before, after)| before.until(&after));
        Ok(Together { end, host, runs })
    })
}

/// Looks until something is so whether everybody still runs; if not, why.
fn watch(
    appliances: &mut [RunningAppliance],
    stop: &AtomicBool,
    until: &dyn Fn(Duration) -> bool,
) -> Option<ApplicationFailure> {
    let begun = Instant::now();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Some(StudyError::Stopped.into());
        }
        if let Some(error) = appliances.iter_mut().find_map(RunningAppliance::crashed) {
            return Some(ApplicationFailure::failed(error.to_string()));
        }
        if until(begun.elapsed()) {
            return None;
        }
        thread::sleep(PAUSE);
    }
}

fn with_output(failure: ApplicationFailure, printed: Option<String>) -> ApplicationFailure {
    match failure {
        ApplicationFailure::Failed { why, detail } => {
            let output = detail.output.or(printed);
            ApplicationFailure::Failed { why, detail: ApplicationFailureDetail { output } }
        }
        failure => failure,
    }
}

/// How often a client ended until it was over.
fn again_and_again(client: &Client, over: &AtomicBool) -> NeighbourEnd {
    let mut runs = 0;
    loop {
        let end = client.run(over);
        match end.result {
            Ok(()) => runs += 1,
            Err(CommandError::Stopped { .. }) => return Ok(runs),
            Err(error) => return Err((error, end.output)),
        }
        if over.load(Ordering::Relaxed) {
            return Ok(runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stand_in_for_their_names_and_the_rest_stays() {
        let address = |port: u16| Some(SocketAddr::from(([127, 0, 0, 1], port + 1000)));
        let fill = |word: &str| filled(word, &[80, 443], 2, &address);
        assert_eq!(fill("http://{host}:{port}/{x}").unwrap(), "http://127.0.0.1:1080/{x}");
        assert_eq!(fill("{port:443} {processors} {}").unwrap(), "1443 2 {}");
        assert!(fill("{port:99}").unwrap_err().contains("[80, 443]"));
        assert!(filled("{port}", &[], 1, &address).unwrap_err().contains("no port"));
    }
}
