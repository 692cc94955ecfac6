//! What guests need, as failures of a command.

use virtbench_lab::{Adapter, Environment, Filesystem, GuestDisk};
use virtbench_record::SetupFacts;
use virtbench_study::{Extras, Guests, GuestsError};

use crate::args::GuestArgs;
use crate::exit::{Failure, Kind};
use crate::say::tell;

/// What guests need, found before anything is measured.
pub struct Lab(Guests);

impl Lab {
    /// Looks for everything that guests with these adapters need.
    pub fn find(args: &GuestArgs, adapters: &[&'static Adapter]) -> Result<Self, Failure> {
        Self::with_filesystems(args, adapters, &[])
    }

    /// The same for guests that also mount any of these file systems.
    pub fn with_filesystems(
        args: &GuestArgs,
        adapters: &[&'static Adapter],
        filesystems: &[Filesystem],
    ) -> Result<Self, Failure> {
        let extras = Extras { filesystems, carried: &[] };
        let found = Guests::find(&args.options(), adapters, extras, &mut |remark| tell!("{remark}"));
        found.map(Self).map_err(guests_failure)
    }

    /// Memory of each guest, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    /// The environment `name`: guests with this disk, as one configuration of several if `setup` is given.
    pub fn vm(
        &self,
        name: &str,
        disk: GuestDisk,
        setup: Option<SetupFacts>,
    ) -> Result<Box<dyn Environment>, Failure> {
        self.0.vm(name, disk, setup, Vec::new()).map_err(guests_failure)
    }

    /// The same, its guests held to these processors of the host unless there are none.
    pub fn pinned_vm(
        &self,
        name: &str,
        disk: GuestDisk,
        setup: Option<SetupFacts>,
        processors: Vec<usize>,
    ) -> Result<Box<dyn Environment>, Failure> {
        self.0.vm(name, disk, setup, processors).map_err(guests_failure)
    }
}

fn guests_failure(error: GuestsError) -> Failure {
    Failure::new(guests_kind(&error), error)
}

/// The kind of failure of a command that can have no guests.
pub fn guests_kind(error: &GuestsError) -> Kind {
    if matches!(error, GuestsError::NoImage(_)) { Kind::Other } else { Kind::Environment }
}
