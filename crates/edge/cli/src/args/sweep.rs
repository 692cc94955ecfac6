//! `virtbench sweep`

use clap::Args;

/// `virtbench sweep`
#[derive(Debug, Args)]
#[command(after_help = "\
Everything that a study makes on a hypervisor or a vCenter says which run made it: domains and VMs in their configuration, volumes \
by the domain that lists them. A run removes its own in the end, and what runs have left that were killed on this machine is removed \
by the next one. This command also finds what runs have left that were killed on another machine, in a container, or before this \
machine was started anew. A run whose process cannot be looked for lives as long as it gives a sign every minute; after ten minutes \
without one it is thought dead. What has no mark of virtbench's is never touched, whatever its name, nor what a live run has.

Exit codes: 0 nothing is left there, or it was removed; 12 something is left and was not removed.

Examples:
  virtbench sweep --platform libvirt+qemu:///system
  virtbench sweep --platform libvirt+qemu+ssh://root@hv/system --yes
  virtbench sweep --platform 'vsphere+https://user%40vsphere.local@vcenter/sdk?ca=vcenter.pem' --json
  virtbench sweep --platform openstack:mycloud")]
pub struct SweepArgs {
    /// Where to look: libvirt+URI, vsphere+https://USER@HOST/sdk, proxmox:HOST or openstack:CLOUD
    #[arg(long, value_name = "ADDRESS")]
    pub platform: String,
    /// Only what belongs to this run: its id, or how the names of its VMs begin
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Remove what is left without asking
    #[arg(long)]
    pub yes: bool,
    /// Print JSON; nothing is removed without --yes
    #[arg(long)]
    pub json: bool,
}
