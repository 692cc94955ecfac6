//! Platforms whose control planes are measured, behind one seam.
//!
//! A [`Platform`] makes VMs that carry its run's label, does one operation at a time for its caller, says where the
//! time went, and removes what carries the label. It never touches a VM that does not. Its calls wait; several threads
//! call it at once, each for another VM.

mod keeper;
mod left;
mod libvirt;
mod openstack;
mod platform;
mod proxmox;
mod removal;
mod ssh_machine;
mod vsphere;

pub use left::LeftPlace;
pub use libvirt::{LibvirtOptions, LibvirtPlatform, OnUpload};
pub use openstack::{OnOpenStack, OpenStackGuest};
pub use platform::{Action, Failure, JobTold, Performed, Platform, Stopwatch};
pub use proxmox::{OnProxmox, ProxmoxGuest, ProxmoxOptions};
pub use ssh_machine::{MadeVm, TemplateVm, VmTemplate};
pub use virtbench_operations::VmState;
pub use vsphere::{OnVsphere, VsphereOptions};
