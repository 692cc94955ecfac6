//! Whether guests of User Mode Linux boot here, found out as of an accelerator: by booting one.

use std::sync::OnceLock;

use super::guest::{UmlConfig, UmlGuest};
use super::kernel::{UmlImage, UmlKernel};
use super::processor::uml_processor;
use crate::guest::BOOT_LIMIT;
use crate::process::MachineError;

/// The answer, which holds as long as this process.
static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();

/// Boots a guest without a disk on the first call; it takes about as long as booting one.
///
/// # Errors
/// Why it does not boot, in words: the system forbids what the kernel needs, or there is no memory for it.
pub fn probe_uml(kernel: &UmlKernel) -> Result<(), String> {
    ANSWER.get_or_init(|| boot(kernel)).clone()
}

fn boot(kernel: &UmlKernel) -> Result<(), String> {
    let image = UmlImage::new(kernel, &[]).map_err(|error| error.to_string())?;
    let config = UmlConfig { boot_limit: BOOT_LIMIT, ..UmlConfig::new(uml_processor(&[])) };
    let first_line = |error: MachineError| error.to_string().lines().next().unwrap_or_default().to_owned();
    UmlGuest::boot(&image, &config).map(UmlGuest::shut_down).map_err(first_line)
}
