//! The ways to make a VM, and to clone one.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use virtbench_lab::{CommandError, check_free, run_command};
use virtbench_libvirt::{Domain, Volume};
use virtbench_record::{CloneKind, FailureKind, Phase};

use super::guest::failure;
use super::vm::Bench;
use super::xml::{Format, disk_name, volume};
use crate::platform::{Failure, Stopwatch};

impl Bench<'_> {
    /// Makes a domain that is off. It is defined before its disk is made, which it lists: whenever this is cut off, the disk is found.
    pub(super) fn create(&self, name: &str) -> Result<Domain, Failure> {
        let format = self.disks.format();
        let domain = self.define(name, format)?;
        self.with_disk(&domain, self.create_disk(name))?;
        Ok(domain)
    }

    fn define(&self, name: &str, format: Format) -> Result<Domain, Failure> {
        let disk = disk_name(name, format);
        check_free(self.pool, &disk).map_err(failure)?;
        let path = self.disks.path(&disk);
        let xml = self.model.domain(name, (&path, format));
        self.hypervisor.define(&xml, self.left()).map_err(failure)
    }

    /// Takes a domain away again whose disk could not be made. One that was late stays: its disk may come yet.
    fn with_disk(&self, domain: &Domain, disk: Result<Volume, Failure>) -> Result<(), Failure> {
        match disk {
            Err(error) if matches!(error.kind, FailureKind::TimedOut | FailureKind::Unreachable) => {
                Err(error)
            }
            Err(error) => {
                let _ = domain.undefine(self.left());
                Err(error)
            }
            Ok(_) => Ok(()),
        }
    }

    fn create_disk(&self, name: &str) -> Result<Volume, Failure> {
        let format = self.disks.format();
        let xml = |backing| volume(&disk_name(name, format), self.disks.bytes, format, backing);
        let base = self.disks.base.as_deref();
        let made = match (format, base) {
            (Format::Raw, Some(path)) => {
                let name = path.rsplit('/').next().unwrap_or(path);
                let base = self.pool.volume(name).map_err(failure)?;
                self.pool.copy(&xml(None), &base, self.disks.shares(), self.left())
            }
            _ => self.pool.create(&xml(base)),
        };
        made.map_err(failure)
    }

    pub(super) fn clone_vm(
        &self,
        name: &str,
        into: &str,
        way: CloneKind,
        watch: &mut Stopwatch,
    ) -> Result<(), Failure> {
        let format = if way == CloneKind::Linked { Format::Qcow2 } else { self.disks.format() };
        watch.lap(Phase::Client);
        let defined = self.define(into, format);
        watch.lap(Phase::Running);
        let domain = defined?;
        let disk = self.clone_disk(name, &disk_name(into, format), way, watch);
        let made = self.with_disk(&domain, disk);
        watch.lap(Phase::Running);
        made?;
        let seen =
            self.until("the copy is listed", || self.hypervisor.domain(into).map(|_| true).map_err(failure));
        watch.lap(Phase::Seen);
        seen
    }

    fn clone_disk(
        &self,
        name: &str,
        into: &str,
        way: CloneKind,
        watch: &mut Stopwatch,
    ) -> Result<Volume, Failure> {
        let format = self.disks.format();
        if way == CloneKind::Linked {
            let xml = volume(into, self.disks.bytes, Format::Qcow2, self.disks.base.as_deref());
            return self.pool.create(&xml).map_err(failure);
        }
        let from = self.pool.volume(&disk_name(name, format)).map_err(failure);
        watch.lap(Phase::Accepted);
        let from = from?;
        if way == CloneKind::Array {
            return self.told_to_clone(&from, into, watch);
        }
        let xml = volume(into, self.disks.bytes, format, None);
        self.pool.copy(&xml, &from, way == CloneKind::Reflink, self.left()).map_err(failure)
    }

    /// Has the user's command tell the storage to clone a volume, and the hypervisor look for it.
    fn told_to_clone(&self, from: &Volume, into: &str, watch: &mut Stopwatch) -> Result<Volume, Failure> {
        let Some(told) = &self.disks.command else {
            return Err(Failure::new(FailureKind::Unsupported, "there is no command that clones a volume"));
        };
        let (name, path) = (from.name().map_err(failure)?, from.path().map_err(failure)?);
        let folder = path.strip_suffix(&name).unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", told]).env("SOURCE", &name).env("TARGET", into);
        command.env("SOURCE_PATH", &path).env("TARGET_PATH", format!("{folder}{into}"));
        watch.lap(Phase::Client);
        let cloned =
            run_command(command, "the command that clones a volume", self.left(), &AtomicBool::new(false));
        watch.lap(Phase::Running);
        cloned.map_err(|error| {
            let kind = match error {
                CommandError::TooLong { .. } => FailureKind::TimedOut,
                _ => FailureKind::Refused,
            };
            Failure::new(kind, error.to_string())
        })?;
        let found = self.pool.refresh().and_then(|()| self.pool.volume(into));
        watch.lap(Phase::Done);
        found.map_err(failure)
    }
}
