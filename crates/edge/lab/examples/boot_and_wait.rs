//! Boots a guest of QEMU, or with the word `uml` one of User Mode Linux with a disk, prints the ids of its processes, and waits to be
//! killed: the tests do, with signal 9.

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use virtbench_lab::{
    Accelerator, Guest, GuestConfig, GuestImage, Qemu, UmlConfig, UmlDisk, UmlDiskKind, UmlGuest, UmlImage,
    UmlKernel, find_kernel, usable_processors,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some("uml") {
        let disk = words.next().ok_or("the path of a disk is missing")?;
        return uml(disk);
    }
    let image = GuestImage::new(&find_kernel(None)?, &[])?;
    let guest = Guest::boot(&Qemu::find()?, &image, &GuestConfig::new(Accelerator::Tcg))?;
    println!("{}", guest.process_id());
    sleep(Duration::from_secs(120));
    Ok(())
}

fn uml(disk: String) -> Result<(), Box<dyn Error>> {
    let kind = UmlDiskKind::VirtioBlk;
    let image = UmlImage::new(&UmlKernel::find()?, kind.modules())?;
    let processor = usable_processors()?.first().copied().unwrap_or_default();
    let disks = vec![UmlDisk::new(kind, disk.into())];
    let guest = UmlGuest::boot(&image, &UmlConfig { disks, ..UmlConfig::new(processor) })?;
    let ids: Vec<String> =
        guest.process_ids().into_iter().chain(guest.server_ids()).map(|id| id.to_string()).collect();
    println!("{}", ids.join(" "));
    sleep(Duration::from_secs(120));
    Ok(())
}
