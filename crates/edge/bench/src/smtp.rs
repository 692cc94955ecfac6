//! Postfix's smtp-source, and its smtp-sink as a server that takes mail and keeps none.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use virtbench_users::{free_port, ordinary_command, ordinary_folder, until_it_listens};

use crate::pairs::Sample;

/// Connections that may wait.
const BACKLOG: &str = "1024";
const FILES: [&str; 4] = ["smtp-sink", "smtp-source", "libpostfix-global.so", "libpostfix-util.so"];

/// A server that runs, on a free port of loopback. It ends with this.
#[derive(Debug)]
pub struct SmtpSink {
    port: u16,
    process: Child,
    /// Copies of the programs: an ordinary user may see nothing of root's cache.
    folder: TempDir,
}

impl SmtpSink {
    /// Starts one as an ordinary user, and waits until it listens.
    ///
    /// # Errors
    /// The programs are missing, with how to get them, or it does not listen.
    pub fn start() -> Result<Self> {
        let (from, folder, port) = (postfix(), ordinary_folder()?, free_port()?);
        for name in FILES {
            let copied = fs::copy(from.join(name), folder.path().join(name));
            copied.with_context(|| {
                format!("{} is missing: scripts/setup.sh bench", from.join(name).display())
            })?;
        }
        let mut command = ordinary_command(&folder.path().join("smtp-sink"));
        command.env("LD_LIBRARY_PATH", folder.path()).arg(format!("127.0.0.1:{port}")).arg(BACKLOG);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let mut sink = Self { port, process, folder };
        until_it_listens(&mut sink.process, port).context("smtp-sink")?;
        Ok(sink)
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets smtp-source send so many messages of so many bytes to this port, over so many connections at once, each message over one of
    /// its own.
    ///
    /// It tells no times. All its sessions always have a message in flight, so that what one takes on average follows from
    /// how many there were and how long all took (Little's law).
    ///
    /// # Errors
    /// It failed, in its own words.
    pub fn source(&self, port: u16, sessions: u32, messages: u32, bytes: usize) -> Result<Sample> {
        let mut command = Command::new(self.folder.path().join("smtp-source"));
        command.env("LD_LIBRARY_PATH", self.folder.path());
        command.args(["-s", &sessions.to_string(), "-m", &messages.to_string(), "-l", &bytes.to_string()]);
        command.args(["-f", "user1@mail.test", "-t", "user2@mail.test"]).arg(format!("127.0.0.1:{port}"));
        let begun = Instant::now();
        let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
        let took = begun.elapsed().as_secs_f64();
        ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(sample(sessions, messages, took))
    }
}

impl Drop for SmtpSink {
    fn drop(&mut self) {
        // It is one process that keeps nothing.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where `scripts/setup-smtp-source.sh` puts the programs.
fn postfix() -> PathBuf {
    virtbench_lab::cache_directory().join("postfix")
}

fn sample(sessions: u32, messages: u32, took_seconds: f64) -> Sample {
    Sample {
        iops: f64::from(messages) / took_seconds,
        mean_latency_ns: f64::from(sessions) * took_seconds * 1e9 / f64::from(messages),
        cpu_per_io_ns: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_takes_follows_from_how_many_are_under_way() {
        let sample = sample(8, 2_000, 0.5);
        assert_eq!((sample.iops, sample.mean_latency_ns), (4_000.0, 2e6));
    }
}
