//! The agent on another machine: it speaks on its standard streams, works in a folder of its own, and leaves nothing.
//!
//! It ends when its controller says so or hangs up, when a signal tells it to, and when nothing was heard of the
//! controller for [`SILENCE_LIMIT`](crate::protocol::SILENCE_LIMIT): a network that is cut tells neither side.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use crate::departure::Departure;
use crate::enclosed::{self, Enclosure};
use crate::protocol::{NOT_READY, READY};
use crate::session::{Accounts, Heard, Watched, serve};
use crate::work_folder::{WorkFolder, sweep};

/// What an agent on another machine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Loads, and files that are kept.
    Loads,
    /// To enclose one appliance.
    Appliance,
}

/// Serves the controller at the other end of the standard streams, in a folder made in `folder`, where agents of several
/// names have one each. `is_made` says that the login has made `folder`: it goes too, if nothing else is in it. `login` is the folder that the login made for this program, to be removed at once; nothing where there is none.
#[must_use]
pub fn run_remotely(
    role: Role,
    (folder, is_made): (&Path, bool),
    name: Option<&str>,
    login: Option<&Path>,
) -> ExitCode {
    serve_remotely(role, (folder, is_made), name, login, io::stdin(), io::stdout())
}

/// The same at the other end of other streams.
pub(crate) fn serve_remotely(
    role: Role,
    (folder, is_made): (&Path, bool),
    name: Option<&str>,
    login: Option<&Path>,
    reader: impl Read + Send + 'static,
    mut out: impl Write + Send,
) -> ExitCode {
    let departure = Departure::begin(login);
    sweep(folder);
    let begun = WorkFolder::make(folder, name).and_then(|mut folder| {
        folder.goes_with_parent(is_made);
        let path = folder.path().to_owned();
        std::env::set_current_dir(&path)
            .map_err(|error| format!("cannot enter {}: {error}", path.display()))?;
        let ending = Ending::new(folder, departure);
        ending.on_signals()?;
        Ok((path, ending))
    });
    let (folder, ending) = match begun {
        Ok(begun) => begun,
        Err(why) => {
            // A login's greeting may have ended without a line's end.
            let _ = writeln!(out, "\n{NOT_READY}{why}").and_then(|()| out.flush());
            return ExitCode::FAILURE;
        }
    };
    let heard = Heard::default();
    heard.watch({
        let ending = ending.clone();
        move |why| ending.end(why)
    });
    let reader = Watched { reader, heard: heard.clone() };
    let said = writeln!(out, "\n{READY}").and_then(|()| out.flush());
    let served = said.map_err(Into::into).and_then(|()| match role {
        Role::Loads => serve(reader, out, Accounts::Agent),
        Role::Appliance => enclosed::serve(&folder, reader, out, |enclosure| ending.keep(enclosure)),
    });
    ending.tidy();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("virtbench-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What has to go before the process does, in this order: the appliance that it has enclosed, its folder, and what the login has left.
type Kept = (Option<Enclosure>, WorkFolder, Departure);

/// What is kept, until somebody has let go of it.
#[derive(Clone)]
struct Ending(Arc<Mutex<Option<Kept>>>);

impl Ending {
    fn new(folder: WorkFolder, departure: Departure) -> Self {
        Self(Arc::new(Mutex::new(Some((None, folder, departure)))))
    }

    /// Has an appliance go first.
    fn keep(&self, enclosure: Enclosure) {
        if let Some(kept) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            kept.0 = Some(enclosure);
        }
    }

    /// Lets go of all, once.
    fn tidy(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Ends the process whatever its other threads do.
    fn end(&self, why: &str) -> ! {
        eprintln!("virtbench-agent: {why}");
        self.tidy();
        std::process::exit(1)
    }

    fn on_signals(&self) -> Result<(), String> {
        let ending = self.clone();
        ctrlc::set_handler(move || ending.end("ended by a signal"))
            .map_err(|error| format!("cannot listen for signals: {error}"))
    }
}
