//! `virtbench fence add` and `virtbench fence remove`

use virtbench_fence_daemon::admin;
use virtbench_fence_daemon::config::{DiskTable, Size};

use super::resize::{broken, shown, unchanged};
use super::serve::load;
use crate::args::fence::{AddArgs, RemoveArgs};
use crate::exit::Outcome;
use crate::interrupt;
use crate::say::tell;

/// Changes the devices, then the configuration.
pub fn add(args: &AddArgs) -> Outcome {
    let config = load(&args.config)?;
    let disk = DiskTable {
        cache: args.cache.map(Size),
        slots: args.slots,
        share: args.share,
        socket: args.socket.clone(),
        export: args.export.clone(),
        ..DiskTable::new(args.disk.clone(), args.size)
    };
    let (bar, mut tell) = shown("adding the disk");
    let added = admin::add(&config, &disk, |step| {
        tell(step);
        !interrupt::requested()
    });
    bar.finish_and_clear();
    added.map_err(broken)?;
    admin::add_to_file(&args.config, &disk).map_err(unchanged)?;
    tell!("virtbench fence: disk {} is there; the next daemon serves it", args.disk);
    Ok(())
}

/// The same.
pub fn remove(args: &RemoveArgs) -> Outcome {
    let config = load(&args.config)?;
    let (bar, mut tell) = shown("removing the disk");
    let removed = admin::remove(&config, &args.disk, |step| {
        tell(step);
        !interrupt::requested()
    });
    bar.finish_and_clear();
    removed.map_err(broken)?;
    admin::remove_from_file(&args.config, &args.disk).map_err(unchanged)?;
    tell!("virtbench fence: disk {} is gone", args.disk);
    Ok(())
}
