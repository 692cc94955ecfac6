//! What the command line of a session says: one word, so that neither `cmd.exe` nor PowerShell finds anything in it to take for its own.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest, Sha256};

use crate::departure::Departure;
use crate::protocol::{LISTENS, NOT_READY, SessionOrder};
use crate::remote::{Role, run_remotely, serve_remotely};

/// How long it may take until somebody connects.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);
/// How long who has connected may take to say the secret.
const WORD_LIMIT: Duration = Duration::from_secs(5);

/// Serves a controller as its order says, once this program is known to have arrived whole.
#[must_use]
pub fn run_session(word: &str) -> ExitCode {
    match begin(word) {
        Ok((order, login)) => {
            let folder = PathBuf::from(&order.folder);
            let is_made = !folder.exists();
            let name = order.name.as_deref();
            let Some(secret) = &order.secret else {
                return run_remotely(Role::Loads, (&folder, is_made), name, Some(&login));
            };
            match accept(secret) {
                Ok((reader, writer)) => {
                    serve_remotely(Role::Loads, (&folder, is_made), name, Some(&login), reader, writer)
                }
                Err(error) => {
                    eprintln!("virtbench-agent: nobody connected: {error}");
                    drop(Departure::begin(Some(&login)));
                    ExitCode::FAILURE
                }
            }
        }
        Err(why) => {
            let mut out = io::stdout();
            let _ = writeln!(out, "\n{NOT_READY}{why}").and_then(|()| out.flush());
            ExitCode::FAILURE
        }
    }
}

/// Listens on loopback until somebody connects who knows the secret.
fn accept(secret: &str) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let mut out = io::stdout();
    writeln!(out, "\n{LISTENS}{}", listener.local_addr()?.port())?;
    out.flush()?;
    let until = Instant::now() + CONNECT_LIMIT;
    loop {
        match listener.accept() {
            Ok((stream, _)) if knows(&stream, secret).unwrap_or(false) => {
                stream.set_read_timeout(None)?;
                stream.set_nodelay(true)?;
                return Ok((stream.try_clone()?, stream));
            }
            Ok(_) => {}
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if Instant::now() > until => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => thread::sleep(CONNECT_LIMIT / 1000),
        }
    }
}

/// Whether who has connected begins with the secret and a line's end.
fn knows(mut stream: &TcpStream, secret: &str) -> io::Result<bool> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(WORD_LIMIT))?;
    let mut word = vec![0; secret.len() + 1];
    stream.read_exact(&mut word)?;
    let expected = secret.bytes().chain([b'\n']);
    Ok(word.iter().zip(expected).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0)
}

/// What is ordered, and the folder that the login made for this program.
fn begin(word: &str) -> Result<(SessionOrder, PathBuf), String> {
    let bytes = BASE64.decode(word).map_err(|error| format!("it was begun with no order: {error}"))?;
    let order: SessionOrder =
        serde_json::from_slice(&bytes).map_err(|error| format!("it was begun with no order: {error}"))?;
    let own = std::env::current_exe().map_err(|error| format!("the agent does not find itself: {error}"))?;
    let program = fs::read(&own).map_err(|error| format!("cannot read {}: {error}", own.display()))?;
    let digest: String = Sha256::digest(program).iter().map(|byte| format!("{byte:02x}")).collect();
    if digest != order.digest {
        return Err(format!("the agent has not arrived whole in {}: is there room?", own.display()));
    }
    let folder = Path::new(&order.folder);
    // Not its parents: a mistyped name would have another disk measured.
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists())
    {
        return Err(format!("cannot make the folder {}: there is no {}", folder.display(), parent.display()));
    }
    let login = own.parent().map(Path::to_owned).ok_or("the agent lies in no folder")?;
    Ok((order, login))
}
