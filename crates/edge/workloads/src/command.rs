//! Somebody else's program, run where its storage is to be measured.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use virtbench_counters::machine_cpu_ns;
use virtbench_engine::monotonic_ns;
use virtbench_record::{Better, CommandEnd};
use virtbench_workload::CommandSpec;

use crate::machine::disk_operations;
use crate::mount::{Mount, furnish};
use crate::program_group::{ProgramGroup, signal_of};
use crate::runner::{RunError, Runner, Sheet, Storage, Watch};
use crate::storage_folder::folder;

/// Between two looks at whether it has ended: what its elapsed time is known to.
const PAUSE: Duration = Duration::from_millis(2);
/// How long it may take to end once it was asked to, and its output to end with it.
const END_LIMIT_NS: u64 = 5_000_000_000;
/// Where programs are looked for.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A command and the folder it is run in.
pub(crate) struct Program {
    spec: CommandSpec,
    directory: PathBuf,
    /// The disk that its storage is on, where that is our own.
    disk: Option<String>,
    _mount: Option<Mount>,
}

impl Program {
    /// Finds the folder; a disk of our own is mounted, and what programs expect of a machine is made.
    pub(crate) fn new(
        spec: &CommandSpec,
        place: Option<&Storage>,
        notes: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        let (mount, directory) = folder(place, notes)?;
        let disk = match place {
            Some(Storage::Disk(node)) => {
                furnish().map_err(|source| RunError::resource("furnishing the guest", source))?;
                node.file_name().map(|name| name.to_string_lossy().into_owned())
            }
            _ => None,
        };
        Ok(Self { spec: spec.clone(), directory, disk, _mount: mount })
    }

    fn start(&self) -> io::Result<(Child, ProgramGroup, io::PipeReader)> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(&self.spec.words[0]);
        command.args(&self.spec.words[1..]);
        command.current_dir(&self.directory);
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        if self.disk.is_some() {
            command.env_clear().env("PATH", SEARCH_PATH).env("HOME", "/").env("LC_ALL", "C");
        }
        let (child, group) = ProgramGroup::spawn(&mut command)?;
        Ok((child, group, reader))
    }
}

impl Runner for Program {
    fn threads(&self) -> u32 {
        1
    }

    fn round(&mut self, watch: &Watch<'_>, sheet: &mut Sheet) -> Result<(), RunError> {
        let program = &self.spec.words[0];
        let (cpu_before, disk_before) = (machine_cpu_ns(), self.disk.as_deref().and_then(disk_operations));
        let begin_ns = monotonic_ns();
        let (mut child, group, reader) = self
            .start()
            .map_err(|source| RunError::resource(format!("starting the command {program}"), source))?;
        let kept = self.spec.output_bytes as usize;
        let listener = thread::Builder::new()
            .spawn(move || tail(reader, kept))
            .map_err(|source| RunError::resource("starting a thread", source))?;
        let (status, timed_out) = wait(&mut child, &group, watch);
        let elapsed_ns = monotonic_ns() - begin_ns;
        let (cpu, disk) = (machine_cpu_ns(), self.disk.as_deref().and_then(disk_operations));
        // Whatever it left running would disturb the next run, and holds the pipe open.
        group.kill();
        let listened_ns = monotonic_ns();
        while !listener.is_finished() && monotonic_ns() - listened_ns < END_LIMIT_NS {
            thread::sleep(PAUSE);
        }
        let (output, output_bytes) =
            if listener.is_finished() { listener.join().unwrap_or_default() } else { Default::default() };
        let end = CommandEnd {
            exit_code: status.and_then(|status| status.code()),
            signal: status.and_then(signal_of),
            timed_out,
            output: String::from_utf8_lossy(&output).into_owned(),
            output_bytes,
        };
        if let Some(trouble) = end.trouble() {
            sheet.errors(&trouble, 1);
        }
        watch.count(1, 0);
        let seconds = elapsed_ns as f64 / 1e9;
        sheet.sample("elapsed", "s", Better::Lower, seconds);
        if let (Some(before), Some(after)) = (disk_before, disk) {
            sheet.sample(
                "disk operations",
                "operations/s",
                Better::Higher,
                (after - before) as f64 / seconds,
            );
        }
        if let (Some(before), Some(after)) = (cpu_before, cpu) {
            for (name, mode) in [("machine user", 0), ("machine system", 1)] {
                let percent =
                    100.0 * after[mode].saturating_sub(before[mode]) as f64 / elapsed_ns.max(1) as f64;
                sheet.sample(name, "%", Better::Neither, percent);
            }
        }
        sheet.command(end);
        Ok(())
    }
}

/// Waits for its end, or ends it; gives how it ended and whether its time was over.
fn wait(child: &mut Child, group: &ProgramGroup, watch: &Watch<'_>) -> (Option<ExitStatus>, bool) {
    let mut asked_ns = None;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return (Some(status), asked_ns.is_some()),
            Ok(None) => {}
            Err(_) => return (None, asked_ns.is_some()),
        }
        match asked_ns {
            None if watch.is_over() => {
                group.ask_to_end();
                asked_ns = Some(monotonic_ns());
            }
            Some(asked_ns) if monotonic_ns() - asked_ns > END_LIMIT_NS => {
                group.kill();
                let _ = child.kill();
            }
            _ => {}
        }
        thread::sleep(PAUSE);
    }
}

/// Reads to the end; gives the last `kept` bytes and how many there were.
fn tail(mut reader: impl Read, kept: usize) -> (Vec<u8>, u64) {
    let (mut last, mut all) = (Vec::new(), 0);
    let mut buffer = [0; 4096];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                all += count as u64;
                last.extend_from_slice(&buffer[..count]);
                if last.len() > 2 * kept + buffer.len() {
                    last.drain(..last.len() - kept);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let surplus = last.len().saturating_sub(kept);
    last.drain(..surplus);
    (last, all)
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
