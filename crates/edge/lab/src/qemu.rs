//! The QEMU on this host, and the processors that its guests see under KVM.

use std::collections::BTreeSet;
use std::env;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use thiserror::Error;

use crate::adapters::Adapter;
use crate::child::{BoundChild, describe_end};

/// The program for x86 guests.
const PROGRAM: &str = "qemu-system-x86_64";

/// How long it may take to say what it is.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// What of its words is read, in bytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

/// Why there is no QEMU.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum QemuError {
    /// It is not installed.
    #[error("{program} was not found: `apt install qemu-system-x86`, or set VIRTBENCH_QEMU to its path")]
    Missing {
        /// What was looked for.
        program: String,
    },
    /// It does not run.
    #[error("{} does not run: {why}; reinstall it with `apt install --reinstall qemu-system-x86`", path.display())]
    Broken {
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// It does not answer in time, as on a host that is very busy.
    #[error("{} did not answer within {} s: if this host is very busy, wait and try again", path.display(), limit.as_secs())]
    Late {
        path: PathBuf,
        /// How long it was waited for.
        limit: Duration,
    },
    /// It does not emulate an adapter.
    #[error(
        "QEMU {version} emulates no {device}, which the adapter {adapter} needs: leave the adapter out, or set \
         VIRTBENCH_QEMU to a QEMU that has it (`qemu-system-x86_64 -device help` lists them)"
    )]
    NoDevice {
        /// QEMU's version.
        version: String,
        adapter: &'static str,
        /// QEMU's device for it.
        device: &'static str,
    },
}

impl QemuError {
    fn of_output(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Late { path, limit: ANSWER_LIMIT },
            _ => Self::Broken { path, why: error.to_string() },
        }
    }
}

/// A QEMU that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qemu {
    /// The program.
    pub path: PathBuf,
    /// Its version, such as `7.2.22 (Debian 1:7.2+dfsg-7)`.
    pub version: String,
}

impl Qemu {
    /// Finds it: `$VIRTBENCH_QEMU`, else on the path.
    ///
    /// # Errors
    /// It is not there, or does not say its version.
    pub fn find() -> Result<Self, QemuError> {
        let program = env::var("VIRTBENCH_QEMU").unwrap_or_else(|_| PROGRAM.to_owned());
        let path = which::which(&program).map_err(|_| QemuError::Missing { program })?;
        let broken = |why: String| QemuError::Broken { path: path.clone(), why };
        let output = output(&path, &["--version"]).map_err(|error| QemuError::of_output(&path, &error))?;
        let version = parse_version(&output).ok_or_else(|| {
            broken(format!("it does not look like QEMU: {:?}", output.lines().next().unwrap_or("")))
        })?;
        Ok(Self { path, version })
    }

    /// The devices it emulates, by name and alias.
    ///
    /// # Errors
    /// It does not say.
    pub fn devices(&self) -> Result<BTreeSet<String>, QemuError> {
        let broken = |error: io::Error| QemuError::of_output(&self.path, &error);
        Ok(parse_devices(&output(&self.path, &["-device", "help"]).map_err(broken)?))
    }

    /// Checks that it emulates an adapter.
    ///
    /// # Errors
    /// It does not, or does not say what it emulates.
    pub fn check_adapter(&self, adapter: &Adapter) -> Result<(), QemuError> {
        let devices = self.devices()?;
        match adapter.drivers().find(|driver| !devices.contains(*driver)) {
            None => Ok(()),
            Some(device) => {
                let version = self.version.clone();
                Err(QemuError::NoDevice { version, adapter: adapter.name, device })
            }
        }
    }
}

/// What a program prints, which ends within seconds and prints little.
pub(crate) fn output(path: &Path, arguments: &[&str]) -> io::Result<String> {
    let (mut reader, writer) = io::pipe()?;
    let mut command = Command::new(path);
    command.args(arguments).stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
    let mut child = BoundChild::spawn(command, Vec::new())?;
    // What it says fits a pipe (64 KiB), so it can end before it is read.
    match child.wait_within(ANSWER_LIMIT)? {
        Some(status) if status.success() => {}
        Some(status) => return Err(io::Error::other(describe_end(status))),
        None => return Err(io::ErrorKind::TimedOut.into()),
    }
    let mut text = Vec::new();
    Read::by_ref(&mut reader).take(MAX_OUTPUT_BYTES).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Names and aliases in QEMU's list: `name "ich9-ahci", bus PCI, alias "ahci"`.
fn parse_devices(output: &str) -> BTreeSet<String> {
    let quoted = |line: &str, key: &str| {
        let (_, rest) = line.split_once(key)?;
        Some(rest.split('"').next()?.to_owned())
    };
    output
        .lines()
        .filter(|line| line.starts_with("name "))
        .flat_map(|line| [quoted(line, "name \""), quoted(line, "alias \"")])
        .flatten()
        .collect()
}

fn parse_version(output: &str) -> Option<String> {
    output.lines().next()?.strip_prefix("QEMU emulator version ").map(|version| version.trim().to_owned())
}

/// The processor that a guest sees under KVM: the host's, or what works where a KVM refuses that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvmCpu {
    /// The host's.
    #[default]
    Host,
    /// The host's, without the register of its architectural capabilities, which a nested KVM may not let QEMU set.
    HostWithoutCapabilities,
    /// All that KVM offers.
    Max,
}

impl KvmCpu {
    /// In the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::Host, Self::HostWithoutCapabilities, Self::Max];

    /// QEMU's word for it.
    #[must_use]
    pub fn model(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::HostWithoutCapabilities => "host,-arch-capabilities",
            Self::Max => "max",
        }
    }

    /// The one that is tried after it.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        let place = Self::ALL.iter().position(|cpu| *cpu == self)?;
        Self::ALL.get(place + 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read() {
        let output = "QEMU emulator version 7.2.22 (Debian 1:7.2)\nCopyright (c) 2003-2022\n";
        assert_eq!(parse_version(output).as_deref(), Some("7.2.22 (Debian 1:7.2)"));
        assert_eq!(parse_version("GNU bash, version 5"), None);
    }

    #[test]
    fn devices_are_read_with_their_aliases() {
        let output =
            "Storage devices:\nname \"ich9-ahci\", bus PCI, alias \"ahci\"\nname \"nvme\", bus PCI\n\n";
        let devices: Vec<String> = parse_devices(output).into_iter().collect();
        assert_eq!(devices, ["ahci", "ich9-ahci", "nvme"]);
    }
}
