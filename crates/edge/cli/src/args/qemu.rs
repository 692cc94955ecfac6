//! What runs VMs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use virtbench_study::{ApplianceGuests, GuestChoice, GuestsError, WantedAccelerator};

/// What runs VMs: their kernel, and what executes their instructions.
#[derive(Debug, Clone, Args)]
pub struct QemuArgs {
    /// What executes the VMs' instructions
    #[arg(long, value_enum, default_value = "auto")]
    pub accelerator: AcceleratorArg,
    /// Kernel of the VMs, with its modules in ../lib/modules [default: found by doctor]
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
}

impl QemuArgs {
    /// Whether guests of User Mode Linux are named.
    pub fn is_uml(&self) -> bool {
        self.accelerator == AcceleratorArg::Uml
    }

    /// The same as a study takes it.
    pub fn choice(&self) -> GuestChoice {
        GuestChoice { accelerator: self.accelerator.wanted(), kernel: self.kernel.clone() }
    }

    /// What executes their instructions, as a plan names it.
    pub fn accelerator_name(&self) -> String {
        self.accelerator.wanted().name().to_owned()
    }

    /// What VMs with appliances need, with `screen` a screen too. `remark` is told what takes long.
    ///
    /// # Errors
    /// Something is missing, or no accelerator works.
    pub fn appliance_guests(
        &self,
        screen: bool,
        remark: &mut dyn FnMut(&str),
    ) -> Result<ApplianceGuests, GuestsError> {
        ApplianceGuests::find(self.accelerator.wanted(), self.kernel.as_deref(), screen, remark)
    }
}

/// What executes a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AcceleratorArg {
    /// KVM if a guest really boots under it, else User Mode Linux where it can have what is measured, else TCG
    Auto,
    /// Hardware virtualization
    Kvm,
    /// Software emulation
    Tcg,
    /// No QEMU: User Mode Linux, a kernel as a process
    Uml,
}

impl AcceleratorArg {
    /// The same as a study takes it.
    pub fn wanted(self) -> WantedAccelerator {
        match self {
            Self::Auto => WantedAccelerator::Auto,
            Self::Kvm => WantedAccelerator::Kvm,
            Self::Tcg => WantedAccelerator::Tcg,
            Self::Uml => WantedAccelerator::Uml,
        }
    }
}
