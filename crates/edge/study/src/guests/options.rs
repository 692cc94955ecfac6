//! What guests are to be made of, and why there can be none.

use std::borrow::Cow;
use std::path::PathBuf;

use thiserror::Error;
use virtbench_lab::{Accelerator, ApplianceError, KvmCpu, LabError, UmlDiskKind};

/// What guests of User Mode Linux see their disks through: as QEMU's, past the host's page cache.
pub(super) const UML_DISK: UmlDiskKind = UmlDiskKind::VirtioBlk;
/// Why they have no kernel that was named for QEMU.
pub(super) const NO_KERNEL: &str =
    "--kernel names a kernel that QEMU boots; VIRTBENCH_UML names one of User Mode Linux";

/// What is to execute a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WantedAccelerator {
    /// KVM if a guest really boots under it, else User Mode Linux where it can have what is measured, else TCG.
    #[default]
    Auto,
    /// Hardware virtualization.
    Kvm,
    /// Software emulation.
    Tcg,
    /// Nothing: guests of User Mode Linux, whose kernel is a process.
    Uml,
}

impl WantedAccelerator {
    /// QEMU's accelerator that is named, if one is.
    ///
    /// # Errors
    /// What is named is none of QEMU's.
    pub fn of_qemu(self) -> Result<Option<Accelerator>, GuestsError> {
        match self {
            Self::Auto => Ok(None),
            Self::Kvm => Ok(Some(Accelerator::Kvm(KvmCpu::Host))),
            Self::Tcg => Ok(Some(Accelerator::Tcg)),
            Self::Uml => Err(GuestsError::no_uml("these are VMs of QEMU's")),
        }
    }

    /// The one of this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        [Self::Auto, Self::Kvm, Self::Tcg, Self::Uml]
            .into_iter()
            .find(|one| one.name().eq_ignore_ascii_case(name))
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Uml => "uml",
        }
    }
}

/// What guests are to be made of.
#[derive(Debug, Clone)]
pub struct GuestOptions {
    /// Virtual processors of each.
    pub vcpus: u32,
    /// Memory of each, in bytes.
    pub memory_bytes: u64,
    /// Their kernel, with its modules in `../lib/modules`; the one that doctor finds where there is none.
    pub kernel: Option<PathBuf>,
    /// What executes their instructions.
    pub accelerator: WantedAccelerator,
}

impl Default for GuestOptions {
    /// One processor, 256 MiB.
    fn default() -> Self {
        Self { vcpus: 1, memory_bytes: 256 << 20, kernel: None, accelerator: WantedAccelerator::Auto }
    }
}

/// Why there can be no guests.
#[derive(Debug, Error)]
pub enum GuestsError {
    /// Something is missing.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// KVM was asked for.
    #[error("--accelerator kvm: {0}; --accelerator tcg emulates")]
    NoKvm(String),
    /// A guest of User Mode Linux was asked for where only QEMU's do.
    #[error("--accelerator uml: {0}")]
    NoUml(Cow<'static, str>),
    /// Guests of User Mode Linux that clients are to reach need a network namespace.
    #[error("--accelerator uml: {0}")]
    NoNetwork(ApplianceError),
    /// A guest has an adapter that was not asked for: a defect.
    #[error("no image was made for {0}: a defect of virtbench")]
    NoImage(&'static str),
}

impl GuestsError {
    /// Guests of User Mode Linux were asked for where there are none, for this reason.
    pub(crate) fn no_uml(why: &'static str) -> Self {
        Self::NoUml(why.into())
    }

    /// # Errors
    /// Guests of User Mode Linux are to have more processors than they have.
    pub(super) fn check_uml_processors(vcpus: u32) -> Result<(), Self> {
        match vcpus {
            0 | 1 => Ok(()),
            _ => Err(Self::NoUml(format!("its guests have one processor, not {vcpus}: --vcpus 1").into())),
        }
    }
}
