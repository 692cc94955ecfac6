//! What the command line of a session says: one word, so that neither `cmd.exe` nor PowerShell finds anything in it to take for its own.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest, Sha256};

use crate::protocol::{NOT_READY, session::SessionOrder};
use crate::remote::{Role, run_remotely};

/// Serves a controller as its order says, once this program is known to have arrived whole.
#[must_use]
pub fn run_session(word: &str) -> ExitCode {
    match begin(word) {
        Ok((order, login)) => {
            let folder = PathBuf::from(&order.folder);
            let is_made = !folder.exists();
            run_remotely(Role::Loads, (&folder, is_made), order.name.as_deref(), Some(&login))
        }
        Err(why) => {
            let mut out = io::stdout();
            let _ = writeln!(out, "\n{NOT_READY}{why}").and_then(|()| out.flush());
            ExitCode::FAILURE
        }
    }
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
