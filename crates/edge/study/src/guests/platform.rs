//! The platform that guests get where none is named: KVM where they boot under it, else User Mode Linux, else emulation.

use std::path::Path;

use virtbench_lab::{
    Accelerator, BOOT_LIMIT, GuestKernel, KVM_LIMIT, Qemu, UmlKernel, choose_accelerator, find_kernel,
    force_kvm, known_accelerator, probe_uml,
};
use virtbench_record::AcceleratorFacts;

use super::options::{GuestsError, WantedAccelerator};

/// The kernel of User Mode Linux, with the reason, where its guests are the better choice: there is no KVM, they boot, and so
/// many processors and no kernel of QEMU's are asked for. `remark` is told what takes long, and why they do not boot.
pub(super) fn uml_in_place_of_emulation(
    kernel: Option<&Path>,
    vcpus: u32,
    remark: &mut dyn FnMut(&str),
) -> Option<(UmlKernel, String)> {
    let uml = candidate(kernel, vcpus)?;
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
    candidate(kernel, vcpus).is_some() && has_kvm() != Some(true)
}

/// The kernel of User Mode Linux that is here, for guests that are to have so many processors and no kernel of QEMU's.
fn candidate(kernel: Option<&Path>, vcpus: u32) -> Option<UmlKernel> {
    (kernel.is_none() && vcpus == 1).then(UmlKernel::find)?.ok()
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
