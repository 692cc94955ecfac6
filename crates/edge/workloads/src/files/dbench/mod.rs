//! dbench: clients that replay a loadfile, each in a folder of its own.

mod client;
mod names;

use std::sync::Arc;

use virtbench_workload::files::{DbenchSpec, FileSpec};

use crate::files::error::FilesError;
use crate::files::folder::Folder;
use crate::files::phase::Phase;
use crate::files::threads::Threads;
use client::Client;

/// Starts the clients.
pub(crate) fn start(
    spec: &FileSpec,
    seed: u64,
    load: &Arc<DbenchSpec>,
    folder: &Folder,
    phase: &Phase,
) -> Result<Threads, FilesError> {
    let mut threads = Threads::new(Arc::clone(&phase.board));
    for number in 0..load.clients {
        let client = Client::new(spec, seed, load, folder.path(), phase, number)?;
        threads.start(number, move |_| client.run())?;
    }
    Ok(threads)
}
