//! A login to a machine with Windows: its shell is `cmd.exe` or PowerShell, which have no language in common with a script.
//!
//! ```text
//! ssh HOST echo ... %OS% $env:OS      which shell answers shows in what it makes of the words
//! sftp HOST                           a folder in the user's own, with a mark and the agent
//! ssh HOST .\FOLDER\agent.exe ...     one word is its order, in letters that no shell reads anything into
//!   <- ready                          it has checked its own digest
//!   <> the protocol, over the same connection
//! ```
//!
//! PowerShell reads the standard input of a session itself, so that nothing of it reaches a program. There the agent listens on loopback, for one
//! connection that knows a secret, which `ssh -W` makes.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use tempfile::TempDir;
use virtbench_agent::protocol::{SESSION, SessionOrder};
use virtbench_agents::windows_agent;
use virtbench_mark::{MARK_FILE, Mark, RunId};

use super::address::SshAddress;
use super::script::CONNECTION;
use crate::command::{CommandError, run_command_followed};
use crate::process::MachineError;

/// Begins the line by which a shell shows what it is.
const PROBE: &str = "virtbench-shell";
/// How long the shell may take to answer.
const PROBE_LIMIT: Duration = Duration::from_secs(60);
/// How long the agent may take to arrive.
const SEND_LIMIT: Duration = Duration::from_secs(120);
/// How long its removal may take where it did not start.
const REMOVE_LIMIT: Duration = Duration::from_secs(20);
/// The agent's name there.
const PROGRAM: &str = "agent.exe";

/// What executes the lines of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shell {
    /// `cmd.exe` of Windows.
    Cmd,
    /// PowerShell of Windows.
    Power,
    /// Any of another system.
    Other,
}

/// Asks what executes the lines of a login there.
///
/// # Errors
/// It does not answer.
pub(super) fn probe_shell(address: &SshAddress, options: &[&str]) -> Result<Shell, MachineError> {
    let mut command = Command::new("ssh");
    command.args(options).args(address.ssh_arguments());
    command.args(["--", &format!("echo {PROBE} %OS% $env:OS")]);
    let (mut said, mut is_next) = (String::new(), false);
    // PowerShell's echo has a line for each word.
    let mut told = |line: &str| {
        is_next |= line.contains(PROBE);
        if is_next {
            said.push(' ');
            said.push_str(line.trim());
        }
    };
    let what = "ssh, asked for the shell of the machine,";
    let ended = run_command_followed(command, what, PROBE_LIMIT, &AtomicBool::new(false), &mut told);
    let shell = shell_of(&said);
    match (ended, shell) {
        (_, Some(shell)) => Ok(shell),
        (Ok(()), None) => Ok(Shell::Other),
        (Err(error), None) => Err(unreachable(address, &error)),
    }
}

/// What a shell is that has made this of the words.
fn shell_of(said: &str) -> Option<Shell> {
    let words = said.split(PROBE).nth(1)?;
    let [cmd, power] = ["Windows_NT $env:OS", "%OS% Windows_NT"];
    let words: Vec<&str> = words.split_whitespace().collect();
    Some(match words.join(" ") {
        words if words.contains(power) => Shell::Power,
        // Wine's own answer has the second word as it is, and other shells expand it.
        words if words.contains(cmd) || words.starts_with("Windows_NT") => Shell::Cmd,
        _ => Shell::Other,
    })
}

fn unreachable(address: &SshAddress, error: &CommandError) -> MachineError {
    let command = format!("ssh {} echo", address.ssh_arguments().join(" "));
    MachineError::Unreachable {
        why: format!("{address} cannot be reached; `{command}` must work without asking for anything"),
        console: vec![error.to_string()],
    }
}

/// An agent that has been sent.
#[derive(Debug)]
pub(super) struct Sent {
    folder: String,
    digest: String,
}

impl Sent {
    /// Sends the agent into a new folder in the user's own.
    ///
    /// # Errors
    /// There is no agent for Windows, no SFTP there, or no room.
    pub(super) fn send(address: &SshAddress) -> Result<Self, MachineError> {
        let agent = windows_agent();
        let failed = |source: io::Error| MachineError::Start { program: "sftp".into(), source };
        let run = RunId::new_random();
        let folder = format!(".virtbench-login-{run}");
        let here = TempDir::new().map_err(failed)?;
        let [program, mark, orders] = [PROGRAM, MARK_FILE, "orders"].map(|name| here.path().join(name));
        fs::write(&program, agent.blocks()?).map_err(failed)?;
        fs::write(&mark, format!("{}\n", Mark::new(run, "login"))).map_err(failed)?;
        let lines = format!(
            "mkdir {folder}\nput {} {folder}/{MARK_FILE}\nput {} {folder}/{PROGRAM}\n",
            quoted(&mark),
            quoted(&program)
        );
        fs::write(&orders, lines).map_err(failed)?;
        let sent = Self { folder, digest: agent.digest()?.to_owned() };
        tracing::debug!(%address, folder = sent.folder, "the agent is sent by sftp");
        match transfer(address, &orders, SEND_LIMIT) {
            Ok(()) => Ok(sent),
            Err(error) => {
                sent.remove(address);
                Err(MachineError::Unreachable {
                    why: format!(
                        "{address}: the agent could not be sent by SFTP, which OpenSSH for Windows has as `Subsystem sftp` in its sshd_config; \
                         is there room in the user's own folder?"
                    ),
                    console: vec![error.to_string()],
                })
            }
        }
    }

    /// The line that begins it, which is one for each of the shells.
    pub(super) fn command(&self, address: &SshAddress, secret: Option<&str>) -> Result<String, MachineError> {
        let folder = address.folder().to_string_lossy();
        let folder = match address.drive_folder() {
            Some(folder) => folder.to_owned(),
            None if folder.starts_with('/') => {
                return Err(MachineError::Unreachable {
                    why: format!(
                        "{address} cannot be used: its system is Windows, where a folder is named with its drive, as in \
                         ssh://HOST/C:{folder}, or in the user's own, as in ssh://HOST/~{folder}"
                    ),
                    console: Vec::new(),
                });
            }
            None => folder.into_owned(),
        };
        let order = SessionOrder {
            digest: self.digest.clone(),
            folder,
            name: address.agent_name().map(str::to_owned),
            secret: secret.map(str::to_owned),
        };
        let order = serde_json::to_vec(&order).map_err(|error| MachineError::Start {
            program: "ssh".into(),
            source: io::Error::other(error),
        })?;
        Ok(format!(".\\{}\\{PROGRAM} {SESSION} {}", self.folder, BASE64.encode(order)))
    }

    /// Removes what was sent, as far as it can be: an agent that has started removes it itself.
    pub(super) fn remove(&self, address: &SshAddress) {
        let Ok(here) = TempDir::new() else { return };
        let orders = here.path().join("orders");
        let folder = &self.folder;
        let lines = format!("-rm {folder}/{PROGRAM}\n-rm {folder}/{MARK_FILE}\n-rmdir {folder}\n");
        if fs::write(&orders, lines).is_ok()
            && let Err(error) = transfer(address, &orders, REMOVE_LIMIT)
        {
            tracing::warn!(%address, %error, folder, "what was sent is left there");
        }
    }
}

/// A name on this machine as one word for sftp.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

fn transfer(address: &SshAddress, orders: &Path, limit: Duration) -> Result<(), CommandError> {
    let mut command = Command::new("sftp");
    command.args(CONNECTION).arg("-b").arg(orders).args(address.transfer_arguments());
    run_command_followed(command, "sftp", limit, &AtomicBool::new(false), &mut |line| {
        tracing::trace!(line, "sftp says");
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_told_by_what_they_make_of_the_words() {
        for (said, shell) in [
            (" virtbench-shell Windows_NT $env:OS", Some(Shell::Cmd)),
            (" virtbench-shell %OS% Windows_NT", Some(Shell::Power)),
            (" virtbench-shell %OS% :OS", Some(Shell::Other)),
            (" Welcome", None),
        ] {
            assert_eq!(shell_of(said), shell, "{said}");
        }
    }

    #[test]
    fn an_order_is_one_word_whatever_the_folder() {
        let sent = Sent { folder: ".virtbench-login-1".into(), digest: "0".into() };
        let address = SshAddress::parse("ssh://metal/C:/it's%20%25%22%26%C3%BC").unwrap();
        let line = sent.command(&address, None).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words[..2], [".\\.virtbench-login-1\\agent.exe", SESSION]);
        let order: SessionOrder = serde_json::from_slice(&BASE64.decode(words[2]).unwrap()).unwrap();
        assert_eq!((order.folder.as_str(), words.len()), ("C:/it's %\"&ü", 3));
        assert!(words[2].bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
        let without_drive = SshAddress::parse("ssh://metal/srv").unwrap();
        let error = sent.command(&without_drive, None).unwrap_err().to_string();
        assert!(error.contains("C:/srv") && error.contains("Windows"), "{error}");
    }
}
