//! A hypervisor that runs members: what is uploaded there, once for a run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use virtbench_lab::{
    Accelerator, DomainNetwork, GuestImage, GuestKernel, LabError, LibvirtAddress, LibvirtAppliances,
    connect_with_pool, find_kernel,
};
use virtbench_record::TilesHypervisor;

use crate::applications::Progress;
use crate::event::Event;
use crate::guests::WantedAccelerator;
use crate::study_error::StudyError;

/// Where a hypervisor is, and what its VMs are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HypervisorAddress {
    address: LibvirtAddress,
    network: DomainNetwork,
}

impl HypervisorAddress {
    /// Reads `libvirt+URI[?pool=NAME][&network=NAME|&bridge=NAME]`.
    ///
    /// # Errors
    /// It is no such address, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (address, settings) = LibvirtAddress::parse(text).map_err(|error| error.to_string())?;
        Ok(Self { address, network: DomainNetwork::parse(&settings)? })
    }

    /// As a plan has it.
    #[must_use]
    pub fn record(&self) -> TilesHypervisor {
        TilesHypervisor {
            address: self.address.to_string(),
            network: self.network.to_string(),
            elsewhere: self.address.host().is_some(),
        }
    }
}

/// A hypervisor that runs members.
#[derive(Debug)]
pub struct Hypervisor {
    at: HypervisorAddress,
    kernel: GuestKernel,
    image: GuestImage,
    accelerator: Option<Accelerator>,
    prepared: OnceLock<Arc<LibvirtAppliances>>,
}

impl Hypervisor {
    /// Looks for what guests boot, and whether the hypervisor can be used, before anything else takes its time.
    ///
    /// # Errors
    /// Something is missing.
    pub fn find(
        at: HypervisorAddress,
        wanted: WantedAccelerator,
        kernel: Option<&Path>,
    ) -> Result<Self, StudyError> {
        connect_with_pool(&at.address).map_err(|why| StudyError::Environment(why.into()))?;
        let kernel = find_kernel(kernel).map_err(LabError::from)?;
        let image = GuestImage::for_appliances(&kernel, &[], false).map_err(LabError::from)?;
        let accelerator = match wanted {
            WantedAccelerator::Auto => None,
            WantedAccelerator::Kvm => Some(Accelerator::Kvm),
            WantedAccelerator::Tcg => Some(Accelerator::Tcg),
        };
        Ok(Self { at, kernel, image, accelerator, prepared: OnceLock::new() })
    }

    /// The hypervisor with these files on it, which are uploaded by the first who asks.
    pub(super) fn with(
        &self,
        files: &[PathBuf],
        progress: &mut Progress<'_>,
    ) -> Result<Arc<LibvirtAppliances>, StudyError> {
        if let Some(prepared) = self.prepared.get() {
            return Ok(Arc::clone(prepared));
        }
        let observer = &mut *progress.observer;
        let prepared = LibvirtAppliances::prepare(
            (&self.at.address, &self.at.network),
            (&self.kernel, &self.image),
            self.accelerator,
            files,
            progress.stop,
            &mut |what, done, total| observer.event(Event::Making { what, done, total }),
        );
        let prepared = prepared.map_err(|error| match error {
            LabError::Stopped => StudyError::Stopped,
            error => error.into(),
        })?;
        Ok(Arc::clone(self.prepared.get_or_init(|| Arc::new(prepared))))
    }

    /// The hypervisor once it has what members are made of.
    pub(super) fn prepared(&self) -> Option<&LibvirtAppliances> {
        self.prepared.get().map(|prepared| &**prepared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_network_of_its_vms_too() {
        let record = HypervisorAddress::parse("libvirt+qemu+ssh://root@hv/system?pool=fast&bridge=br0")
            .unwrap()
            .record();
        assert!(record.elsewhere && record.address.ends_with("pool=fast"), "{record:?}");
        assert_eq!(record.network, "bridge br0");
        let here = HypervisorAddress::parse("libvirt+qemu:///system").unwrap().record();
        assert_eq!((here.elsewhere, here.network.as_str()), (false, "network default"));
        let wrong = HypervisorAddress::parse("libvirt+qemu:///system?memory=1GiB").unwrap_err();
        assert!(wrong.contains("memory=1GiB: pool, and network or bridge"), "{wrong}");
    }
}
