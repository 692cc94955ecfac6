//! Boots a guest, prints QEMU's process id, and waits to be killed: the tests do, with signal 9.

use std::thread::sleep;
use std::time::Duration;

use virtbench_lab::{Accelerator, Guest, GuestConfig, GuestImage, Qemu, find_kernel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let image = GuestImage::new(&find_kernel(None)?, &[])?;
    let guest = Guest::boot(&Qemu::find()?, &image, &GuestConfig::new(Accelerator::Tcg))?;
    println!("{}", guest.process_id());
    sleep(Duration::from_secs(120));
    Ok(())
}
