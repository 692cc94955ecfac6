//! Both sides of a trial, as they really are: this host, and a VM on it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use virtbench_lab::run_command;
use virtbench_record::{Case, Costs, Profile};

use super::costs::measure_costs;
use super::error::ApplicationsError;
use super::machine::find_guests;
use super::middle::middle;
use super::native::profile_natively;
use super::native_folder::NativeSide;
use super::options::VmOptions;
use super::references::renew_references;
use super::verify::{Verified, VerifyInputs, verify};
use crate::runner::progress::Progress;

/// How long copying what an application begins with may take.
const COPY_LIMIT: Duration = Duration::from_secs(600);

/// What a study of predictions has measured.
pub trait TrialSides {
    /// What work costs on both sides.
    ///
    /// # Errors
    /// It cannot be measured, or it was to stop.
    fn costs(&mut self, progress: &mut Progress<'_>) -> Result<Costs, ApplicationsError>;

    /// Measures the native side of the costs' references once more.
    ///
    /// # Errors
    /// It cannot be measured, or it was to stop.
    fn renew(&mut self, costs: &mut Costs, progress: &mut Progress<'_>) -> Result<(), ApplicationsError>;

    /// The case natively, beginning with a copy of the folder `prepared`: the run in the middle of so many.
    ///
    /// # Errors
    /// It cannot be run or profiled, or it was to stop.
    fn profile(
        &mut self,
        case: &Case,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Profile, ApplicationsError>;

    /// The case in the VM, likewise.
    ///
    /// # Errors
    /// It cannot be run, the VM failed, or it was to stop.
    fn verify(
        &mut self,
        case: &Case,
        profile: &Profile,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Verified, ApplicationsError>;
}

/// This host and a VM on it.
#[derive(Debug)]
pub struct HostAndVm {
    options: VmOptions,
    native: NativeSide,
}

impl HostAndVm {
    /// Both sides, when everything has been found that they need; see [`NativeSide::new`] for when to make them.
    ///
    /// # Errors
    /// There is no such file system or adapter, or something is missing on this host.
    pub fn new(options: VmOptions, progress: &mut Progress<'_>) -> Result<Self, ApplicationsError> {
        let native = NativeSide::new(&options, progress)?;
        find_guests(&options, &[], progress)?;
        Ok(Self { options, native })
    }
}

impl TrialSides for HostAndVm {
    fn costs(&mut self, progress: &mut Progress<'_>) -> Result<Costs, ApplicationsError> {
        measure_costs(&self.options, &self.native, progress)
    }

    fn renew(&mut self, costs: &mut Costs, progress: &mut Progress<'_>) -> Result<(), ApplicationsError> {
        renew_references(&self.options, &self.native, &mut costs.references, progress)
    }

    fn profile(
        &mut self,
        case: &Case,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Profile, ApplicationsError> {
        let place = self.native.place()?;
        let work = place.folder().join("work");
        let mut copy = Command::new("cp");
        copy.args(["-a", "--"]).arg(prepared).arg(&work);
        let what = format!("copying what {} begins with", case.name);
        run_command(copy, &what, COPY_LIMIT, progress.stop)?;
        // What the copy left unwritten is not to be paid for by the application.
        rustix::fs::sync();
        let profiles: Result<Vec<Profile>, ApplicationsError> =
            (0..runs.max(1)).map(|_| profile_natively(case, &work, progress)).collect();
        drop(place);
        middle(profiles?, |profile| profile.capacity().value)
            .ok_or_else(|| ApplicationsError::Measured("it was not run natively".into()))
    }

    fn verify(
        &mut self,
        case: &Case,
        profile: &Profile,
        prepared: &Path,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Verified, ApplicationsError> {
        let with: Vec<PathBuf> = case.with.iter().map(PathBuf::from).collect();
        let inputs = VerifyInputs { with: &with, disk_from: Some(prepared), runs };
        verify(profile, &self.options, &inputs, progress)
    }
}
