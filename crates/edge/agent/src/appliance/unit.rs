//! A service that the root's own systemd runs.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, mknodat};
use virtbench_recipe::{Service, StopSignal};

use super::children::{Children, End};
use super::full_init::{FullInit, TARGET, is_populated};
use super::program::{Interior, inside};
use crate::console::Console;

/// Where the units that this run adds are, and what they write.
const UNITS: &str = "/run/systemd/system";
const OUTPUTS: &str = "/run/virtbench/outputs";
/// How long systemctl may take for what takes no time.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// What systemd may take beyond the time that a service has to end.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// A unit that was started. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Unit {
    name: String,
    interior: Interior,
    pub(crate) output: Console,
    /// What the unit writes into; open here too, so that its output does not end between two of its processes.
    writer: Arc<Mutex<Option<fs::File>>>,
    /// Its control group, once it was started.
    group: PathBuf,
}

/// How a unit is.
struct Shown {
    active: String,
    result: String,
    end: End,
    group: String,
}

/// The unit that runs a service.
pub(crate) fn unit_name(service: &Service) -> String {
    service.unit.clone().unwrap_or_else(|| format!("virtbench-{}.service", service.name))
}

/// Writes what systemd has to know of services, before it starts or is told to look again.
///
/// # Errors
/// They cannot be written; in words.
pub(crate) fn write_units(root: &Path, services: &[Service]) -> Result<(), String> {
    let write = || -> io::Result<()> {
        fs::create_dir_all(UNITS)?;
        fs::create_dir_all(OUTPUTS)?;
        let mut target = "[Unit]\nDescription=What virtbench starts\nRequires=sysinit.target\n\
                          Wants=sockets.target paths.target slices.target\nAfter=sysinit.target sockets.target\n"
            .to_owned();
        for service in services {
            let name = unit_name(service);
            // An order only. It keeps systemd from forgetting how the unit has ended.
            let _ = writeln!(target, "After={name}");
            let (place, text) = match &service.unit {
                Some(_) => (format!("{UNITS}/{name}.d"), settings(service)),
                None => (UNITS.to_owned(), settings(service) + &of_command(service)),
            };
            fs::create_dir_all(&place)?;
            let file = if service.unit.is_some() { "virtbench.conf" } else { name.as_str() };
            fs::write(Path::new(&place).join(file), text)?;
            let output = output_of(service);
            if !fs::exists(&output)? {
                mknodat(CWD, &output, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            }
        }
        fs::write(Path::new(UNITS).join(TARGET), target)
    };
    let written = inside(root, write).and_then(|done| done);
    written.map_err(|error| format!("its units cannot be written: {error}"))
}

fn output_of(service: &Service) -> String {
    format!("{OUTPUTS}/{}", service.name)
}

/// What holds for every unit. What dies stays dead: it is an error.
fn settings(service: &Service) -> String {
    let mut text = format!(
        "[Service]\nStandardOutput=append:{}\nStandardError=inherit\nRestart=no\nTimeoutStartSec=infinity\nTimeoutStopSec={}us\n",
        output_of(service),
        service.stop_within / 1000
    );
    for (name, value) in &service.environment {
        let _ = writeln!(text, "Environment={}", quoted(&format!("{name}={value}")));
    }
    text
}

/// What a unit of its own says beside that.
fn of_command(service: &Service) -> String {
    let words: Vec<String> = service.command.iter().map(|word| quoted(&word.replace('$', "$$"))).collect();
    let signal = match service.stop {
        StopSignal::Term => "SIGTERM",
        StopSignal::Interrupt => "SIGINT",
        StopSignal::Quit => "SIGQUIT",
    };
    format!("Type=exec\nUser={}\nKillSignal={signal}\nExecStart={}\n", service.user, words.join(" "))
}

/// A word by the rules of systemd.syntax(7) and systemd.service(5).
fn quoted(word: &str) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' => text.push_str("%%"),
            '\n' => text.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(text, "\\x{:02x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text + "\""
}

impl Unit {
    /// Has systemd start it; `root` is where its output can be read.
    ///
    /// # Errors
    /// It does not start within `limit`; in words, with what it has written.
    pub(crate) fn start(
        children: &Children,
        root: &Path,
        init: &FullInit,
        service: &Service,
        limit: Duration,
    ) -> Result<Self, (String, Vec<String>)> {
        let (reader, writer) = inside(root, || output(&output_of(service)))
            .and_then(|done| done)
            .map_err(|error| (format!("its output cannot be read: {error}"), Vec::new()))?;
        let output = Console::collect(reader).map_err(|error| (error.to_string(), Vec::new()))?;
        let (interior, writer) = (init.interior.clone(), Arc::new(Mutex::new(Some(writer))));
        let mut unit = Self { name: unit_name(service), interior, output, writer, group: PathBuf::new() };
        let started = FullInit::control(children, &unit.interior, &["start", &unit.name], limit);
        let shown = unit.show(children);
        let why = match (started, shown) {
            (Ok(_), Ok(shown)) if shown.active == "active" && !shown.group.is_empty() => {
                unit.group = init.group_of(&shown.group);
                return Ok(unit);
            }
            (Ok(_), Ok(shown)) if shown.active == "active" => {
                format!("{} has no process of its own: name the unit that has", unit.name)
            }
            (_, Ok(shown)) if shown.end != End::NONE || shown.result != "success" => {
                format!("it {} before it was ready", shown.describe())
            }
            (Err(_), Ok(shown)) if shown.active == "activating" => format!(
                "systemd had not started it within {} s; raise ready_within in the recipe if it only needs longer",
                limit.as_secs_f64()
            ),
            (Err(why), _) | (Ok(_), Err(why)) => why,
            (Ok(_), Ok(shown)) => format!("systemd says that it is {}", shown.active),
        };
        unit.release();
        unit.output.settle(Duration::from_secs(1));
        let said = unit.output.tail();
        Err((why, if said.is_empty() { unit.journal(children) } else { said }))
    }

    /// What systemd itself has noted of it, such as a program that is not there.
    fn journal(&self, children: &Children) -> Vec<String> {
        // The journal does not know whose process it was that has ended before it looked (systemd issue 2913, which is why -u
        // misses lines), but systemd says whom a line of its own is about.
        let (of_it, about_it) = (format!("_SYSTEMD_UNIT={}", self.name), format!("UNIT={}", self.name));
        let show = ["--no-pager", "-o", "cat", "-n", "10", &of_it, "+", &about_it];
        let run = |words: &[&str]| {
            let words: Vec<String> =
                ["/usr/bin/journalctl"].iter().chain(words).map(|word| (*word).to_owned()).collect();
            super::program::Program::run(children, &self.interior, &words, ANSWER_LIMIT)
        };
        // What was said a moment ago may not be in it yet.
        let _ = run(&["--sync"]);
        run(&show).map_or_else(|_| Vec::new(), |(_, text)| text.lines().map(str::to_owned).collect())
    }

    /// How it ended, with systemd's word for it, if it has. It costs a look into a file while it runs.
    pub(crate) fn end(&self, children: &Children) -> Option<(End, String)> {
        if is_populated(&self.group) {
            return None;
        }
        match self.show(children) {
            // Between two of its processes there may be none.
            Ok(shown) if ["active", "activating", "reloading", "deactivating"].contains(&&*shown.active) => {
                None
            }
            Ok(shown) => Some((shown.end, shown.word())),
            Err(_) => Some((End::NONE, " with the root's own init".into())),
        }
    }

    /// Has systemd stop it; returns how it ended and whether it had to be killed.
    pub(crate) fn stop(&self, children: &Children, limit: Duration) -> (End, bool) {
        let told = FullInit::control(children, &self.interior, &["stop", &self.name], limit + STOP_GRACE);
        let shown = self.show(children);
        self.release();
        let killed = told.is_err() || shown.as_ref().is_ok_and(|shown| shown.result == "timeout");
        (shown.map_or(End::NONE, |shown| shown.end), killed)
    }

    /// Lets its output end with the last process that writes to it.
    pub(crate) fn release(&self) {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn show(&self, children: &Children) -> Result<Shown, String> {
        let properties = "--property=ActiveState,Result,ExecMainCode,ExecMainStatus,ControlGroup";
        FullInit::control(children, &self.interior, &["show", properties, &self.name], ANSWER_LIMIT)
            .map(|text| Shown::parse(&text))
    }
}

impl Shown {
    fn parse(text: &str) -> Self {
        let value = |name: &str| {
            let of = |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned());
            text.lines().find_map(of).unwrap_or_default()
        };
        let status = value("ExecMainStatus").parse().ok();
        // CLD_EXITED, CLD_KILLED and CLD_DUMPED of waitid(2).
        let end = match value("ExecMainCode").as_str() {
            "1" => End { exit_code: status, signal: None },
            "2" | "3" => End { exit_code: None, signal: status },
            _ => End::NONE,
        };
        Self { active: value("ActiveState"), result: value("Result"), end, group: value("ControlGroup") }
    }

    /// systemd's word for an end that exit code and signal do not tell.
    fn word(&self) -> String {
        match self.result.as_str() {
            "" | "success" | "exit-code" | "signal" | "core-dump" => String::new(),
            word => format!(" (systemd: {word})"),
        }
    }

    fn describe(&self) -> String {
        format!("{}{}", self.end.describe(), self.word())
    }
}

/// Both ends of what a unit writes into. Called inside the root.
fn output(path: &str) -> io::Result<(fs::File, fs::File)> {
    let open = |options: &mut OpenOptions| {
        options.custom_flags(i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0)).open(path)
    };
    let reader = open(OpenOptions::new().read(true))?;
    let writer = OpenOptions::new().write(true).open(path)?;
    fcntl_setfl(&reader, fcntl_getfl(&reader)? - OFlags::NONBLOCK)?;
    Ok((reader, writer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_mean_themselves_to_systemd() {
        assert_eq!(quoted("a b\"c\\%n\n\t"), "\"a b\\\"c\\\\%%n\\n\\x09\"");
    }

    #[test]
    fn ends_are_read_from_what_systemctl_shows() {
        let shown = Shown::parse(
            "ActiveState=failed\nResult=oom-kill\nExecMainCode=2\nExecMainStatus=9\nControlGroup=\n",
        );
        assert_eq!((shown.end.signal, shown.end.exit_code, shown.active.as_str()), (Some(9), None, "failed"));
        assert_eq!(shown.describe(), "was killed by signal 9 (systemd: oom-kill)");
        let never = Shown::parse("ActiveState=inactive\nResult=success\nExecMainCode=0\nExecMainStatus=0\n");
        assert_eq!((never.end, never.describe()), (End::NONE, "ended".to_owned()));
        assert_eq!(Shown::parse("").end, End::NONE);
    }
}
