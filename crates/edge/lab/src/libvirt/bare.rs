//! A hypervisor on which the caller makes domains of its own: its pool, and what a guest boots on it.

use std::io::Read;

use virtbench_libvirt::{Hypervisor, Pool};

use super::address::LibvirtAddress;
use super::prepared::{boot_files, capabilities, choose, connect};
use super::storage::find_pool;
use crate::guest::{Accelerator, kernel_arguments};
use crate::image::GuestImage;
use crate::kernel::GuestKernel;
use crate::tsc::host_tsc_khz;

/// What a guest boots on a hypervisor.
pub struct BootFiles {
    /// What executes it.
    pub accelerator: Accelerator,
    /// How that was chosen.
    pub why: String,
    /// What its kernel is told.
    pub arguments: String,
    /// Its kernel and its initramfs: lengths in bytes, and contents.
    pub files: [(u64, Box<dyn Read + Send>); 2],
}

/// Connects, whichever pools there are.
///
/// # Errors
/// Says in words why it cannot be reached, and what to do.
pub fn connect_to(address: &LibvirtAddress) -> Result<Hypervisor, String> {
    connect(address)
}

/// Connects, and finds the pool.
///
/// # Errors
/// Says in words why it cannot be used, and what to do.
pub fn connect_with_pool(address: &LibvirtAddress) -> Result<(Hypervisor, Pool), String> {
    let hypervisor = connect(address)?;
    let pool = find_pool(&hypervisor, address)?;
    Ok((hypervisor, pool))
}

/// What a guest of this image boots there.
///
/// # Errors
/// Says in words that no such guest can run there.
pub fn boot_files_for(
    hypervisor: &Hypervisor,
    address: &LibvirtAddress,
    kernel: &GuestKernel,
    image: &GuestImage,
    wanted: Option<Accelerator>,
) -> Result<BootFiles, String> {
    let found = capabilities(hypervisor, address)?;
    let (accelerator, why) = choose(&found, wanted, address)?;
    let tsc_khz = found.tsc_khz.or_else(|| address.host().is_none().then(host_tsc_khz).flatten());
    let files = boot_files(kernel, image, accelerator).map_err(|error| error.to_string())?;
    let files = files.map(|contents| (contents.length, contents.source));
    Ok(BootFiles { accelerator, why, arguments: kernel_arguments(accelerator, tsc_khz), files })
}
