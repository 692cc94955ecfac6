//! What guests are to be made of, why there can be none, and the platform that they get where none is named.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_lab::{
    Accelerator, ApplianceError, BOOT_LIMIT, Filesystem, GuestKernel, KVM_LIMIT, KvmCpu, LabError, Qemu,
    UmlDiskKind, UmlKernel, choose_accelerator, find_kernel, force_kvm, known_accelerator, probe_uml,
};
use virtbench_record::AcceleratorFacts;

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

/// The kernel of User Mode Linux, with the reason, where its guests are the better choice: there is no KVM, they boot, and so
/// many processors and no kernel of QEMU's are asked for. `remark` is told what takes long, and why they do not boot.
pub(super) fn uml_in_place_of_emulation(
    kernel: Option<&Path>,
    vcpus: u32,
    filesystems: &[Filesystem],
    remark: &mut dyn FnMut(&str),
) -> Option<(UmlKernel, String)> {
    let uml = candidate(kernel, vcpus, filesystems)?;
    let why = no_kvm(remark)?;
    match probe_uml(&uml) {
        Ok(()) => Some((uml, format!("{why}; guests of User Mode Linux boot"))),
        Err(trouble) => {
            remark(&format!("no guest of User Mode Linux, so VMs are emulated: {trouble}"));
            None
        }
    }
}

/// Whether [`uml_in_place_of_emulation`] will find its kernel, as far as can be said without booting anything.
pub(super) fn may_take_uml(kernel: Option<&Path>, vcpus: u32) -> bool {
    let has_kvm = || {
        let known = known_accelerator(&Qemu::find().ok()?, &find_kernel(None).ok()?)?;
        Some(known.accelerator.is_kvm())
    };
    candidate(kernel, vcpus, &[]).is_some() && has_kvm() != Some(true)
}

/// The kernel of User Mode Linux that is here, for guests that are to have so many processors and no kernel of QEMU's.
fn candidate(kernel: Option<&Path>, vcpus: u32, filesystems: &[Filesystem]) -> Option<UmlKernel> {
    (kernel.is_none() && vcpus == 1).then(|| UmlKernel::find_for(filesystems))?.ok()
}

/// Why there is no KVM; nothing where there is.
fn no_kvm(remark: &mut dyn FnMut(&str)) -> Option<String> {
    let qemu = match Qemu::find() {
        Ok(qemu) => qemu,
        Err(error) => return Some(error.to_string()),
    };
    let kernel = match find_kernel(None) {
        Ok(kernel) => kernel,
        Err(error) => return Some(error.to_string()),
    };
    match accelerator(WantedAccelerator::Auto, &qemu, &kernel, remark) {
        Ok((accelerator, _)) if accelerator.is_kvm() => None,
        Ok((_, AcceleratorFacts { why, .. })) => Some(why),
        Err(error) => Some(error.to_string()),
    }
}

/// The accelerator of QEMU's that was asked for, or the one that works.
pub(super) fn accelerator(
    wanted: WantedAccelerator,
    qemu: &Qemu,
    kernel: &GuestKernel,
    remark: &mut dyn FnMut(&str),
) -> Result<(Accelerator, AcceleratorFacts), GuestsError> {
    let named = |accelerator: Accelerator, found: &str| {
        let why = format!("named on the command line{found}");
        (accelerator, AcceleratorFacts { name: accelerator.name().to_owned(), why })
    };
    match wanted {
        WantedAccelerator::Kvm => {
            if !known_accelerator(qemu, kernel).is_some_and(|known| known.accelerator.is_kvm()) {
                let limit = BOOT_LIMIT.as_secs();
                remark(&format!("booting a guest under KVM, which was asked for (up to {limit} s)"));
            }
            let choice = force_kvm(qemu, kernel, BOOT_LIMIT)?.map_err(GuestsError::NoKvm)?;
            Ok(named(choice.accelerator, &format!("; {}", choice.why)))
        }
        WantedAccelerator::Tcg => Ok(named(Accelerator::Tcg, "")),
        WantedAccelerator::Uml => Err(GuestsError::no_uml("these are VMs of QEMU's")),
        WantedAccelerator::Auto => {
            let known = known_accelerator(qemu, kernel).map_or_else(
                || {
                    remark("finding out which accelerator works here (up to a minute, once)");
                    choose_accelerator(qemu, kernel, KVM_LIMIT)
                },
                Ok,
            );
            let choice = known?;
            Ok((choice.accelerator, choice.facts()))
        }
    }
}
