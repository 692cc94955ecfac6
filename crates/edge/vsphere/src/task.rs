//! What the server says of a task.

use std::time::{Duration, SystemTime};

use roxmltree::Node;

use crate::error::Fault;
use crate::properties::{self, PropertySet};
use crate::reply;
use crate::reply::Reference;

/// What is read of a task.
pub(crate) const TASK: PropertySet = PropertySet { kind: "Task", paths: &["info"] };

/// What is followed of a task. The rest is read once it is over: a server makes a copy of all that is followed, again and again.
pub(crate) const STATE: PropertySet = PropertySet { kind: "Task", paths: &["info.state"] };

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Progress {
    /// It waits or runs.
    #[default]
    Open,
    /// It is done; what it made.
    Done(Option<Reference>),
    /// It failed.
    Failed(Fault),
}

/// A task as the server tells of it, with the times of its own clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Task {
    pub progress: Progress,
    queued: Option<SystemTime>,
    started: Option<SystemTime>,
    completed: Option<SystemTime>,
}

impl Task {
    /// Reads the task of an object's properties.
    pub fn of_object(object: Node<'_, '_>) -> Result<Self, String> {
        let info = properties::values(object).find(|(path, _)| *path == "info");
        info.ok_or_else(|| "a task says nothing of itself".to_owned()).and_then(|(_, info)| Self::read(info))
    }

    /// Reads a `TaskInfo`.
    pub fn read(info: Node<'_, '_>) -> Result<Self, String> {
        let moment = |name: &str| reply::text(info, name).and_then(reply::parse);
        let progress = match reply::text(info, "state") {
            Some("queued" | "running") => Progress::Open,
            Some("success") => {
                let made = reply::child(info, "result").filter(|result| result.attribute("type").is_some());
                Progress::Done(made.and_then(|made| reply::reference(made).ok()))
            }
            Some("error") => {
                let fault = reply::child(info, "error").map(Fault::of_task);
                Progress::Failed(fault.unwrap_or_else(|| Fault::new("", "it failed and does not say why")))
            }
            other => return Err(format!("a task is in the state {other:?}")),
        };
        let (queued, started, completed) = (moment("queueTime"), moment("startTime"), moment("completeTime"));
        Ok(Self { progress, queued, started, completed })
    }

    /// How long it was queued, by the server's clock.
    pub fn queue_time(&self) -> Duration {
        between(self.queued, self.started.or(self.completed))
    }

    /// How long it ran, by the server's clock.
    pub fn run_time(&self) -> Duration {
        between(self.started, self.completed)
    }
}

/// Whether a task in this state is over.
pub(crate) fn is_over(state: &str) -> bool {
    ["success", "error"].contains(&state)
}

fn between(from: Option<SystemTime>, to: Option<SystemTime>) -> Duration {
    from.zip(to).and_then(|(from, to)| to.duration_since(from).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use roxmltree::Document;

    use super::*;
    use crate::error::FaultKind;

    fn read(info: &str) -> Result<Task, String> {
        let text = format!("<val xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">{info}</val>");
        Task::read(Document::parse(&text).unwrap().root_element())
    }

    #[test]
    fn a_tasks_times_and_ends_are_read() {
        let times =
            "<queueTime>2026-11-23T10:00:00Z</queueTime><startTime>2026-11-23T10:00:01.5Z</startTime>";
        let open = read(&format!("<state>running</state>{times}")).unwrap();
        assert_eq!(
            (open.progress.clone(), open.queue_time(), open.run_time()),
            (Progress::Open, Duration::from_millis(1500), Duration::ZERO)
        );
        let done = format!(
            "<state>success</state><result xsi:type=\"ManagedObjectReference\" type=\"VirtualMachine\">vm-9</result>{times}\
                            <completeTime>2026-11-23T12:00:04.5+02:00</completeTime>"
        );
        let done = read(&done).unwrap();
        assert_eq!(done.progress, Progress::Done(Some(Reference::new("VirtualMachine", "vm-9"))));
        assert_eq!(done.run_time(), Duration::from_secs(3));
        let failed = read(
            "<state>error</state><error><fault xsi:type=\"NoDiskSpace\"><file>a</file><datastore>big</datastore></fault>\
             <localizedMessage>full</localizedMessage></error>",
        );
        let Progress::Failed(fault) = failed.unwrap().progress else { panic!("not failed") };
        assert_eq!(
            (fault.kind, fault.detail.as_deref(), fault.message.as_str()),
            (FaultKind::NoRoom, Some("big"), "full")
        );
        assert!(read("<state>mad</state>").is_err() && read("").is_err());
    }

    proptest! {
        #[test]
        fn no_words_make_it_panic(state in "\\w{0,8}|success|error", time in "[0-9T:.Z+-]{0,30}") {
            let _ = read(&format!("<state>{state}</state><queueTime>{time}</queueTime><startTime>{time}</startTime>"))
                .map(|task| (task.queue_time(), task.run_time()));
        }
    }
}
