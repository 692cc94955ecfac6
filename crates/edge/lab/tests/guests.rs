//! Guests that really boot.

use std::time::Duration;

use virtbench_lab::{Accelerator, DEFAULT_ADAPTER, Guest, GuestConfig, GuestImage, Qemu, find_kernel};

fn image() -> (Qemu, GuestImage) {
    let kernel = find_kernel(None).unwrap_or_else(|error| panic!("{error}"));
    let image = GuestImage::new(&kernel, &[DEFAULT_ADAPTER]).unwrap_or_else(|error| panic!("{error}"));
    (Qemu::find().unwrap_or_else(|error| panic!("{error}")), image)
}

#[test]
fn a_guest_boots_and_answers() {
    let (qemu, image) = image();
    let mut guest =
        Guest::boot(&qemu, &image, &GuestConfig::new(Accelerator::Tcg)).unwrap_or_else(|e| panic!("{e}"));
    assert!(guest.greeting().processors == 1);
    let offset = guest.connection().synchronise(20).unwrap();
    println!("boot {:?}, {:?}, initramfs {} bytes", guest.boot_time(), offset, image.initramfs_bytes);
    assert!(offset.uncertainty_ns < Duration::from_millis(100).as_nanos().try_into().unwrap());
    let process = format!("/proc/{}", guest.process_id());
    guest.shut_down();
    assert!(!std::path::Path::new(&process).exists());
}
