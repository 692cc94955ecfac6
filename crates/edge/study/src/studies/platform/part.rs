//! A run of another study: our own program with the words of that study, into a folder within the platform's run folder; and the host
//! meanwhile.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;
use virtbench_lab::{CommandError, CpuSample, NumaSample, mean_frequency_mhz, run_command_interrupted};
use virtbench_record::{HostUse, PlatformObserved, PlatformRun};

use crate::runner::progress::Progress;
use crate::runner::steps::NoResult;
use crate::study_error::StudyError;

/// A run may take so many times as long as it is expected to, and this long besides.
const PATIENCE: u32 = 10;

const LEAST_LIMIT: Duration = Duration::from_secs(900);

/// How long a study that is interrupted may take to end its guests and keep what it has.
const LEAVE: Duration = Duration::from_secs(120);

/// Exit codes of a study that this host lacks something for, and of a command that this build leaves out.
const LACKING: [i32; 2] = [4, 11];

/// Runs it to its end; a folder that has begun is gone on with.
///
/// # Errors
/// This host lacks something for it, it fails, or it was to stop.
pub(super) fn run_part(
    program: &Path,
    run: &PlatformRun,
    folder: &Path,
    takes: Duration,
    progress: &mut Progress<'_>,
) -> Result<(), NoResult> {
    let folder_error =
        |source| NoResult::Study(StudyError::input(format!("{} cannot be made: {source}", folder.display())));
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent).map_err(folder_error)?;
    }
    let mut command = Command::new(program);
    let words = run.command();
    command.args(&words).arg("--out").arg(folder).args(["--progress", "json"]);
    if folder.join("run.json").is_file() {
        command.arg("--resume");
    }
    let limit = (takes * PATIENCE).max(LEAST_LIMIT);
    let (mut last, mut plain) = (None, None);
    let (stop, name) = (progress.stop, &run.name);
    let told = &mut |line: &str| match heard(line) {
        Some(Heard::Doing(what)) => progress.doing(&format!("{name}: {what}")),
        Some(Heard::Remark(words)) => last = Some(words),
        Some(Heard::Plain(words)) => plain = Some(words),
        None => {}
    };
    let ended = run_command_interrupted(command, &words.join(" "), (limit, LEAVE), stop, told);
    match ended {
        Ok(()) => Ok(()),
        Err(CommandError::Stopped { .. }) => Err(StudyError::Stopped.into()),
        Err(CommandError::Failed { code, how, .. }) => {
            let said = last.or(plain).unwrap_or_else(|| format!("virtbench {} {how}", words.join(" ")));
            let why = said.trim_start_matches("virtbench: ").to_owned();
            let is_lacking = code.is_some_and(|code| LACKING.contains(&code));
            Err(if is_lacking { NoResult::Unavailable(why) } else { NoResult::failed(why) })
        }
        Err(error) => Err(NoResult::failed(error.to_string())),
    }
}

/// What a study says while it runs.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Doing(String),
    Remark(String),
    /// Said to people, as by a command that this build leaves out.
    Plain(String),
}

fn heard(line: &str) -> Option<Heard> {
    let Ok(event) = serde_json::from_str::<Value>(line) else {
        return Some(Heard::Plain(line.to_owned())).filter(|_| !line.trim().is_empty());
    };
    let text = |key: &str| event.get(key)?.as_str().map(str::to_owned);
    match event.get("event")?.as_str()? {
        "doing" => text("what").map(Heard::Doing),
        "remark" => text("text").map(Heard::Remark),
        _ => None,
    }
}

/// So often is the frequency looked at.
const EVERY: Duration = Duration::from_millis(500);

/// Looks on from its making to its end.
pub(super) struct HostWatch {
    cpu: Option<CpuSample>,
    numa: Option<NumaSample>,
    frequency: Option<FrequencyWatch>,
}

impl HostWatch {
    /// Begins.
    pub(super) fn begin() -> Self {
        let frequency = mean_frequency_mhz().map(FrequencyWatch::begin);
        Self { cpu: CpuSample::take().ok(), numa: NumaSample::take(), frequency }
    }

    /// What was seen. What this host does not tell is absent.
    pub(super) fn end(self) -> (Option<HostUse>, PlatformObserved) {
        let host = self.cpu.and_then(|begun| Some(begun.until(&CpuSample::take().ok()?)));
        let observed = PlatformObserved {
            frequency_mhz: self.frequency.and_then(FrequencyWatch::end),
            numa: self.numa.and_then(|begun| Some(begun.until(NumaSample::take()?))),
            disks: Vec::new(),
        };
        (host, observed)
    }
}

/// A thread that looks at the frequency until it is told to end.
struct FrequencyWatch {
    stop: Sender<()>,
    thread: JoinHandle<[u32; 2]>,
}

impl FrequencyWatch {
    fn begin(first_mhz: u32) -> Self {
        let (stop, stopped) = channel();
        let thread = thread::spawn(move || {
            let mut seen = [first_mhz; 2];
            while matches!(stopped.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout)) {
                let now = mean_frequency_mhz().unwrap_or(first_mhz);
                seen = [seen[0].min(now), seen[1].max(now)];
            }
            seen
        });
        Self { stop, thread }
    }

    fn end(self) -> Option<[u32; 2]> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn events_and_remarks_are_told_apart_from_what_is_printed() {
        assert_eq!(heard(r#"{"event":"doing","what":"booting"}"#), Some(Heard::Doing("booting".into())));
        assert_eq!(heard(r#"{"event":"remark","text":"no KVM"}"#), Some(Heard::Remark("no KVM".into())));
        assert_eq!(heard(r#"{"event":"done","done":1,"total":2}"#), None);
        assert_eq!(heard("VMs reach 0.5."), Some(Heard::Plain("VMs reach 0.5.".into())));
        assert_eq!(heard(""), None);
    }

    /// What becomes of a part whose program is this script.
    fn end_of(script: &str) -> Result<(), String> {
        let temp = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let run =
            PlatformRun { name: "part".into(), words: vec!["-c".into(), script.into()], place: Vec::new() };
        let folder = temp.path().join("storage/1/part");
        let progress = &mut Progress { stop: &stop, observer: &mut () };
        let ended = run_part(Path::new("sh"), &run, &folder, Duration::ZERO, progress);
        assert!(temp.path().join("storage/1").is_dir());
        ended.map_err(|failure| match failure {
            NoResult::Unavailable(why) => format!("unavailable: {why}"),
            NoResult::Failed { why, .. } => format!("failed: {why}"),
            NoResult::Study(error) => format!("study: {error}"),
        })
    }

    #[test]
    fn the_last_words_of_a_part_say_why_and_its_exit_code_says_what_it_means() {
        let said = r#"echo '{"event":"remark","text":"virtbench: /dev/kvm: not found"}' >&2;"#;
        assert_eq!(end_of("exit 0"), Ok(()));
        assert_eq!(end_of(&format!("{said} exit 4")), Err("unavailable: /dev/kvm: not found".into()));
        assert_eq!(end_of(&format!("{said} exit 11")), Err("unavailable: /dev/kvm: not found".into()));
        assert_eq!(end_of(&format!("{said} exit 6")), Err("failed: /dev/kvm: not found".into()));
        let plain = "echo 'virtbench: this build leaves it out' >&2; exit 11";
        assert_eq!(end_of(plain), Err("unavailable: this build leaves it out".into()));
        assert!(end_of("exit 1").unwrap_err().contains("ended with exit code 1"));
    }

    #[test]
    fn a_watch_ends_with_what_the_host_tells() {
        let (host, observed) = HostWatch::begin().end();
        assert!(host.is_some_and(|host| host.processors > 0));
        assert_eq!(observed.frequency_mhz.is_some(), mean_frequency_mhz().is_some());
        assert_eq!(FrequencyWatch::begin(1000).end().map(|[least, most]| least <= most), Some(true));
    }
}
