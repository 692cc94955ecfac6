//! dbench: clients that replay a loadfile, each in a folder of its own.

mod client;
mod names;

use std::sync::Arc;

use virtbench_workload::files::{DbenchSpec, FileSpec};

use crate::crew::Crew;
use crate::error::FilesError;
use crate::folder::Folder;
use crate::phase::Phase;
use client::Client;

/// Starts the clients.
pub(crate) fn start(
    spec: &FileSpec,
    seed: u64,
    load: &Arc<DbenchSpec>,
    folder: &Folder,
    phase: &Phase,
) -> Result<Crew, FilesError> {
    let mut crew = Crew::new(Arc::clone(&phase.board));
    for number in 0..load.clients {
        let client = Client::new(spec, seed, load, folder.path(), phase, number)?;
        crew.start(number, move |_| client.run())?;
    }
    Ok(crew)
}
