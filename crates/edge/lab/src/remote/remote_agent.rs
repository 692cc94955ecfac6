//! An agent on another machine, over one ssh connection: logins that wait for each other, and a controller that is known to run still.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use virtbench_agent::protocol::{FailureKind, Greeting, Request};
use virtbench_agents::agents;
use virtbench_mark::RunId;

use super::address::SshAddress;
use super::login::{LoginError, await_port, log_in};
use super::script::{self, CONNECTION, options};
use super::windows::{Sent, Shell, probe_shell};
use crate::connection::{Connection, Sender};
use crate::process::{AgentProcess, MachineError};

/// How long it may take from ssh's start to the agent's first word, the agent's transfer included.
const LOGIN_LIMIT: Duration = Duration::from_secs(120);

/// How long the agent may take to greet, and to end.
const LIMIT: Duration = Duration::from_secs(10);

/// How long ssh may take to say why it ended.
const END_LIMIT: Duration = Duration::from_secs(3);

/// ssh's own exit code when there is no connection.
const NO_CONNECTION: i32 = 255;

/// In what ssh says when the server hangs up before it has introduced itself.
const NO_GREETING: &str = "kex_exchange_identification";

/// In what ssh says where it got no further than to a machine or command in between, whether it noticed as it read or as it wrote. A
/// server that is reached straight drops a connection that has a peer; there is none behind a pipe.
const NO_WAY: [&str; 2] = ["UNKNOWN port", "stdio forwarding failed"];

/// An agent that has greeted. Dropping it ends it in good order, within a time limit and whatever failed meanwhile: its files there are
/// gone then.
#[derive(Debug)]
pub(crate) struct RemoteAgent {
    name: String,
    pub(crate) process: AgentProcess,
    pub(crate) connection: Connection,
    pub(crate) greeting: Greeting,
    _alive: Alive,
    /// What carries the conversation, where that is not the session itself.
    _way: Option<AgentProcess>,
    /// Last, so that no session uses it any more when it goes.
    left: Option<Left>,
}

impl RemoteAgent {
    /// Logs in and starts it; `name` is for the log.
    pub(crate) fn start(name: &str, address: &SshAddress) -> Result<Self, MachineError> {
        let failed = |source: io::Error| MachineError::Start { program: "ssh".into(), source };
        let turn = Turn::wait();
        if address.drive_folder().is_some() {
            let agent = Self::start_on_windows(name, address);
            drop(turn);
            return agent;
        }
        let (stream, other) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new("ssh");
        command.args(options());
        command.args(address.ssh_arguments());
        command.arg("--").arg(script::command(address, &RunId::new_random(), agents())?);
        let mut process = AgentProcess::spawn_talking(command, OwnedFd::from(other), "ssh")?;
        if let Err(error) = log_in(&stream, agents(), LOGIN_LIMIT) {
            // A shell of Windows understands nothing of the script, and says so in the language of its user.
            let may_be_windows = matches!(&error, LoginError::Broken { .. })
                && process
                    .ended_within(END_LIMIT)
                    .is_some_and(|(status, _)| status.code() != Some(NO_CONNECTION));
            if may_be_windows && !matches!(probe_shell(address, &options()), Ok(Shell::Other) | Err(_)) {
                return Self::start_on_windows(name, address);
            }
            return Err(explain(address, error, &mut process));
        }
        drop(turn);
        Self::greet(name, address, process, stream)
    }

    /// The same where the shell is one of Windows.
    fn start_on_windows(name: &str, address: &SshAddress) -> Result<Self, MachineError> {
        let options = options();
        let refused = |why: &str| MachineError::Refused {
            kind: FailureKind::Target,
            message: format!("{address} cannot be used: {why}"),
        };
        if address.encloses() {
            return Err(refused("appliances run on Linux machines, and its system is Windows"));
        }
        let shell = probe_shell(address, &options)?;
        if shell == Shell::Other {
            return Err(refused(
                "a folder with a drive is one of Windows, and its system is another: name it as in ssh://HOST/srv",
            ));
        }
        let sent = Sent::send(address)?;
        let begun = match shell {
            Shell::Power => begin_beside_powershell(address, &options, &sent),
            _ => begin_by_cmd(address, &options, &sent),
        };
        let (process, way, stream) = begun.inspect_err(|_| sent.remove(address))?;
        let left = Left { address: address.clone(), sent, agent_removes_it: false };
        let mut agent = Self::greet(name, address, process, stream)?;
        (agent._way, agent.left) = (way, Some(left));
        Ok(agent)
    }

    /// Lets an agent that is ready greet.
    fn greet(
        name: &str,
        address: &SshAddress,
        mut process: AgentProcess,
        stream: UnixStream,
    ) -> Result<Self, MachineError> {
        let failed = |source: io::Error| MachineError::Start { program: "ssh".into(), source };
        let mut connection = Connection::new(stream).map_err(failed)?;
        let greeting = connection.greet(LIMIT).map_err(|error| process.explain(error))?;
        let alive = Alive::begin(connection.sender()).map_err(failed)?;
        tracing::info!(name, %address, process = process.id(), "the remote agent answers");
        let name = name.to_owned();
        Ok(Self { name, process, connection, greeting, _alive: alive, _way: None, left: None })
    }
}

impl Drop for RemoteAgent {
    fn drop(&mut self) {
        let told = self.connection.shut_down().is_ok();
        tracing::info!(name = self.name, process = self.process.id(), told, "the remote agent ends");
        if let Some(left) = &mut self.left {
            left.agent_removes_it = told;
        }
        self.process.end_within(if told { LIMIT } else { Duration::ZERO });
    }
}

/// The folder that a login made on Windows. An agent that is told to end removes it itself; one that was killed, or is not heard of any more,
/// does not, so that it is removed with this value.
#[derive(Debug)]
struct Left {
    address: SshAddress,
    sent: Sent,
    agent_removes_it: bool,
}

impl Drop for Left {
    fn drop(&mut self) {
        if !self.agent_removes_it {
            self.sent.remove(&self.address);
        }
    }
}

/// An agent's session, what carries the conversation if that is not it, and the conversation.
type Begun = (AgentProcess, Option<AgentProcess>, UnixStream);

/// A process of ssh whose standard streams are the other end of what is returned.
fn talk(
    address: &SshAddress,
    options: &[&str],
    more: &[&str],
    line: Option<&str>,
) -> Result<(AgentProcess, UnixStream), MachineError> {
    let failed = |source: io::Error| MachineError::Start { program: "ssh".into(), source };
    let (stream, other) = UnixStream::pair().map_err(failed)?;
    let mut command = Command::new("ssh");
    command.args(options).args(more).args(address.ssh_arguments());
    if let Some(line) = line {
        command.arg("--").arg(line);
    }
    Ok((AgentProcess::spawn_talking(command, OwnedFd::from(other), "ssh")?, stream))
}

/// Begins an agent that speaks over its session.
fn begin_by_cmd(address: &SshAddress, options: &[&str], sent: &Sent) -> Result<Begun, MachineError> {
    let line = sent.command(address, None)?;
    let (mut process, stream) = talk(address, options, &[], Some(&line))?;
    log_in(&stream, agents(), LOGIN_LIMIT).map_err(|error| explain(address, error, &mut process))?;
    Ok((process, None, stream))
}

/// Begins an agent that listens on loopback there, and connects with it.
fn begin_beside_powershell(
    address: &SshAddress,
    options: &[&str],
    sent: &Sent,
) -> Result<Begun, MachineError> {
    let secret = format!("{}{}", RunId::new_random(), RunId::new_random());
    let line = sent.command(address, Some(&secret))?;
    let (mut process, session) = talk(address, options, &[], Some(&line))?;
    let port = await_port(&session, LOGIN_LIMIT).map_err(|error| explain(address, error, &mut process))?;
    let place = format!("127.0.0.1:{port}");
    let (mut way, mut stream) = talk(address, &CONNECTION, &["-W", &place], None)?;
    writeln!(stream, "{secret}").map_err(|source| MachineError::Start { program: "ssh".into(), source })?;
    log_in(&stream, agents(), LOGIN_LIMIT).map_err(|error| match explain(address, error, &mut way) {
        MachineError::Unreachable { console, .. } => MachineError::Unreachable {
            why: format!(
                "{address}: its shell is PowerShell, which keeps a session's input to itself, and its ssh server forwards no connection \
                 to the agent instead: set AllowTcpForwarding in its sshd_config, or cmd.exe as its shell"
            ),
            console,
        },
        error => error,
    })?;
    Ok((process, Some(way), stream))
}

/// What a failed login means.
fn explain(address: &SshAddress, error: LoginError, process: &mut AgentProcess) -> MachineError {
    match error {
        LoginError::Stopped => MachineError::Stopped,
        LoginError::Unusable(why) => {
            MachineError::Unreachable { why: format!("{address} cannot be used: {why}"), console: Vec::new() }
        }
        LoginError::Folder(why) => MachineError::Refused {
            kind: FailureKind::Target,
            message: format!("{address} cannot be used: {why}"),
        },
        LoginError::Broken { error, last } => {
            let ended = process.ended_within(END_LIMIT);
            let command = format!("ssh {} true", address.ssh_arguments().join(" "));
            let dropped = |console: &[String]| console.iter().any(|line| line.contains(NO_GREETING));
            let jumps = |console: &[String]| {
                console.iter().any(|line| NO_WAY.iter().any(|words| line.contains(words)))
            };
            let why = match &ended {
                Some((_, console)) if jumps(console) => format!(
                    "{address}: what ssh reaches it through (ProxyJump or ProxyCommand in its configuration) gives no way to it, and \
                     `{command}` must work"
                ),
                Some((_, console)) if dropped(console) => format!(
                    "{address}: its ssh server dropped the connection before the login; too many may be logging in there at \
                     once (MaxStartups in its sshd_config), and `{command}` must work"
                ),
                Some((status, _)) if status.code() == Some(NO_CONNECTION) => {
                    format!("{address} cannot be reached; `{command}` must work without asking for anything")
                }
                Some(_) => {
                    format!("{address}: the login ended before the agent ran; does `{command}` work?")
                }
                None => {
                    format!("{address}: the login started no agent ({error}); does `{command}` work?")
                }
            };
            let mut console = ended.map(|(_, console)| console).unwrap_or_default();
            console.extend(Some(last).filter(|last| !last.is_empty()));
            MachineError::Unreachable { why, console }
        }
    }
}

/// How many of this process are in flight at once. sshd drops some beyond ten by itself (`MaxStartups 10:30:100` in
/// sshd_config(5)).
const AT_ONCE: usize = 8;

static FREE: Mutex<usize> = Mutex::new(AT_ONCE);

static FREED: Condvar = Condvar::new();

/// A login's turn, which ends with this value.
#[derive(Debug)]
pub(super) struct Turn(());

impl Turn {
    /// Waits for one. Each login has a limit, so this ends too.
    pub(super) fn wait() -> Self {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = FREED.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        FREED.notify_one();
    }
}

/// How often; a fifth of what the agent bears.
const INTERVAL: Duration = Duration::from_secs(3);

/// A thread that says so until this value is dropped.
#[derive(Debug)]
pub(crate) struct Alive {
    _stop: mpsc::Sender<()>,
}

impl Alive {
    /// # Errors
    /// No thread can be started.
    pub(crate) fn begin(agent: Sender) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        thread::Builder::new().name("alive".into()).spawn(move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // Who talks with the agent notices a broken connection as well, and says so.
                if agent.send(&Request::Alive).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { _stop: stop })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn so_many_log_in_at_once_and_all_have_their_turn() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..5 * AT_ONCE {
                scope.spawn(|| {
                    let _turn = Turn::wait();
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert!((1..=AT_ONCE).contains(&most.into_inner()) && now.into_inner() == 0);
    }
}
