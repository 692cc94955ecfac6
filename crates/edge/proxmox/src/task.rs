//! Tasks, by their names: looked at until they are over.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;
use virtbench_https::{Limit, Polling};

use crate::error::{Fault, ProxmoxError};
use crate::session::{Call, Session, encoded};

/// Lines of a task's log that an error repeats.
const LINES: usize = 3;

/// Lines that are asked for: a task that copies a disk writes one for every percent.
const MOST_LINES: usize = 5000;

/// A task that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Whether it did what it was for.
    pub result: Result<(), Fault>,
    /// From the first look until the one that found it running last.
    pub running: Duration,
    /// From then until it was found over.
    pub done: Duration,
    /// How often a look had to be repeated.
    pub retries: u32,
}

/// Waits until a task is over.
pub(crate) fn end(session: &Session, upid: &Upid, limit: Limit) -> Result<Ended, ProxmoxError> {
    let call =
        Call::get(format!("nodes/{}/tasks/{}/status", encoded(upid.node()), encoded(&upid.to_string())));
    let (polling, begun) = (Polling::start(), Instant::now());
    let (mut running, mut retries) = (Duration::ZERO, 0);
    loop {
        let looked = begun.elapsed();
        let answered = session.through_outages(&call, limit)?;
        retries += answered.retries;
        if answered.value["status"] == "stopped" {
            let result = result(&answered.value, || log(session, upid, limit));
            return Ok(Ended { result, running, done: begun.elapsed() - running, retries });
        }
        if answered.value["status"] != "running" {
            return Err(session.garbled(&call, "a task neither runs nor has stopped"));
        }
        running = looked;
        let pause = polling.pause(answered.waited);
        if limit.left() <= pause {
            return Err(ProxmoxError::Late { what: format!("task {}", upid.kind()), limit: limit.length() });
        }
        std::thread::sleep(pause);
    }
}

/// A task may end with warnings.
fn result(status: &Value, log: impl FnOnce() -> String) -> Result<(), Fault> {
    match status["exitstatus"].as_str().unwrap_or_default() {
        "OK" => Ok(()),
        warnings if warnings.starts_with("WARNINGS:") => Ok(()),
        why => {
            let (fault, log) = (Fault::new(0, why), log());
            let message = if log.is_empty() { fault.message } else { format!("{} ({log})", fault.message) };
            Err(Fault { message, kind: fault.kind })
        }
    }
}

/// The last lines of a task's log, without the one that repeats how it ended.
fn log(session: &Session, upid: &Upid, limit: Limit) -> String {
    let path = format!("nodes/{}/tasks/{}/log", encoded(upid.node()), encoded(&upid.to_string()));
    let answered = session.call(&Call::get(path).with("limit", MOST_LINES.to_string()), limit);
    let lines = answered.map(|answered| answered.value).unwrap_or_default();
    last_lines(&lines)
}

fn last_lines(log: &Value) -> String {
    let lines = log.as_array().into_iter().flatten().filter_map(|line| line["t"].as_str());
    let mut lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with("TASK ERROR") && *line != "no content")
        .collect();
    let from = lines.len().saturating_sub(LINES);
    lines.drain(..from);
    lines.join("; ")
}

/// A task's name: on which node it runs, since when, what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upid {
    text: String,
    node: String,
    kind: String,
}

impl Upid {
    /// Reads `UPID:NODE:PID:PSTART:STARTTIME:TYPE:ID:USER:`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(':');
        let (prefix, node) = (fields.next()?, fields.next()?);
        let hexadecimal =
            (0..3).all(|_| fields.next().is_some_and(|field| u64::from_str_radix(field, 16).is_ok()));
        let (kind, _id, _user) = (fields.next()?, fields.next()?, fields.next()?);
        // It becomes part of a path.
        let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || b":-_.@!".contains(&letter);
        let is_one = prefix == "UPID" && hexadecimal && !node.is_empty() && !kind.is_empty();
        let (node, kind) = (node.to_owned(), kind.to_owned());
        (is_one && text.bytes().all(is_plain)).then(|| Self { text: text.to_owned(), node, kind })
    }

    /// The node on which it runs.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// What it does, such as `qmstart`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }
}

impl fmt::Display for Upid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::FaultKind;

    #[test]
    fn a_task_that_failed_says_why_with_its_log() {
        let status = json!({"status": "stopped", "exitstatus": "VM is locked (backup)"});
        let log = json!([{"n": 1, "t": "trying"}, {"n": 2, "t": "TASK ERROR: VM is locked (backup)"}]);
        let fault = result(&status, || last_lines(&log)).unwrap_err();
        assert_eq!(
            (fault.kind, fault.message.as_str()),
            (FaultKind::Locked, "VM is locked (backup) (trying)")
        );
        for fine in ["OK", "WARNINGS: 2"] {
            assert_eq!(result(&json!({"exitstatus": fine}), || unreachable!()), Ok(()));
        }
        let unknown = result(&json!({}), String::new).unwrap_err();
        assert_eq!(unknown.to_string(), "refused without a reason");
    }

    #[test]
    fn a_tasks_name_says_where_it_runs_and_nothing_else_is_one() {
        let text = "UPID:pve1:0000C350:00055730:68A1B2C3:qmstart:100:root@pam!bench:";
        let upid = Upid::parse(text).unwrap();
        assert_eq!((upid.node(), upid.kind(), upid.to_string()), ("pve1", "qmstart", text.to_owned()));
        for other in [
            "",
            "UPID",
            "UPID:a:1:2:3:x",
            "UPID:a:q:2:3:x:1:u:",
            "UPID:a/../b:1:2:3:x:1:u:",
            "UPID::1:2:3:x:1:u:",
        ] {
            assert_eq!(Upid::parse(other), None, "{other}");
        }
    }
}
