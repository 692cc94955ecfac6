//! The QEMU on this host.

use std::env;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use thiserror::Error;

use crate::child::{BoundChild, describe_end};

/// The program for x86 guests.
const PROGRAM: &str = "qemu-system-x86_64";
/// How long it may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// Why there is no QEMU.
#[derive(Debug, Error)]
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
        /// Which.
        path: PathBuf,
        /// What happened.
        why: String,
    },
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
        let output = version_output(&path).map_err(|error| broken(error.to_string()))?;
        let version = parse_version(&output).ok_or_else(|| {
            broken(format!("it does not look like QEMU: {:?}", output.lines().next().unwrap_or("")))
        })?;
        Ok(Self { path, version })
    }
}

fn version_output(path: &std::path::Path) -> io::Result<String> {
    let (mut reader, writer) = io::pipe()?;
    let mut command = Command::new(path);
    command.arg("--version").stdin(Stdio::null()).stdout(writer).stderr(Stdio::null());
    let mut child = BoundChild::spawn(command, Vec::new())?;
    // What it says fits a pipe, so it can end before it is read.
    match child.wait_within(VERSION_LIMIT)? {
        Some(status) if status.success() => {}
        Some(status) => return Err(io::Error::other(describe_end(status))),
        None => return Err(io::Error::other(format!("it says nothing within {VERSION_LIMIT:?}"))),
    }
    let mut text = Vec::new();
    Read::by_ref(&mut reader).take(4096).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn parse_version(output: &str) -> Option<String> {
    output.lines().next()?.strip_prefix("QEMU emulator version ").map(|version| version.trim().to_owned())
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
}
