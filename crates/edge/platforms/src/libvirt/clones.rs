//! The ways to make a VM, and to clone one.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use virtbench_lab::{CommandError, run_command};
use virtbench_libvirt::{Domain, Volume};
use virtbench_record::{CloneKind, FailureKind, Phase};

use super::disks::disk_name;
use super::refusals::failure;
use super::vm::Bench;
use super::xml::{Format, volume};
use crate::failure::Failure;
use crate::stopwatch::Stopwatch;

impl Bench<'_> {
    /// Makes a domain that is off.
    pub(super) fn create(&self, name: &str) -> Result<Domain, Failure> {
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
        let path = made.and_then(|disk| disk.path()).map_err(failure)?;
        let domain = self.model.domain(name, (&path, format));
        self.hypervisor.define(&domain, self.left()).map_err(failure)
    }

    pub(super) fn clone_vm(
        &self,
        name: &str,
        into: &str,
        way: CloneKind,
        watch: &mut Stopwatch,
    ) -> Result<(), Failure> {
        let format = if way == CloneKind::Linked { Format::Qcow2 } else { self.disks.format() };
        let disk = self.clone_disk(name, &disk_name(into, format), way, watch);
        let defined = disk.and_then(|disk| {
            let path = disk.path().map_err(failure)?;
            let domain = self.model.domain(into, (&path, format));
            self.hypervisor.define(&domain, self.left()).map(drop).map_err(failure)
        });
        watch.lap(Phase::Running);
        defined?;
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
            watch.lap(Phase::Client);
            return self.pool.create(&xml).map_err(failure);
        }
        let from = self.pool.volume(&disk_name(name, format)).map_err(failure)?;
        if way == CloneKind::Array {
            return self.told_to_clone(&from, into, watch);
        }
        let xml = volume(into, self.disks.bytes, format, None);
        watch.lap(Phase::Client);
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
