//! What guests cost on this host: boot times, round trips, and how well their clocks keep time.
//! `cargo run --release -p virtbench-lab --example guest_figures [GUESTS AT ONCE] [VCPUS]`

use std::thread;
use std::time::Duration;

use virtbench_lab::{Guest, GuestConfig, GuestImage, KVM_LIMIT, Qemu, choose_accelerator, find_kernel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let number = |place| std::env::args().nth(place).map_or(Ok(1), |text| text.parse::<u32>());
    let (guests, vcpus) = (number(1)?, number(2)?);
    let (qemu, kernel) = (Qemu::find()?, find_kernel(None)?);
    let choice = choose_accelerator(&qemu, &kernel, KVM_LIMIT)?;
    let image = GuestImage::new(&kernel, &[])?;
    let config = GuestConfig { vcpus, ..GuestConfig::new(choice.accelerator) };
    println!("{}: {}; initramfs {} KiB", choice.accelerator.name(), choice.why, image.initramfs_bytes >> 10);

    let watch = || -> Result<String, String> {
        let mut guest = Guest::boot(&qemu, &image, &config).map_err(|error| error.to_string())?;
        let first = guest.connection().synchronise(50).map_err(|error| error.to_string())?;
        thread::sleep(Duration::from_secs(10));
        let later = guest.connection().synchronise(50).map_err(|error| error.to_string())?;
        let drift = first.drift_until(&later).ok_or("no time has passed")?;
        let figures = format!(
            "boot {:.2} s, clock {}, quickest round trip {} us, drift over 10 s {:+.1} +-{:.1} ppm",
            guest.boot_time().as_secs_f64(),
            guest.greeting().clock_source,
            later.uncertainty_ns * 2 / 1000,
            drift.drift_ppm,
            drift.uncertainty_ppm,
        );
        guest.shut_down();
        Ok(figures)
    };
    thread::scope(|scope| {
        let watchers: Vec<_> = (0..guests).map(|_| scope.spawn(watch)).collect();
        for watcher in watchers {
            match watcher.join() {
                Ok(Ok(line) | Err(line)) => println!("{line}"),
                Err(_) => println!("a watcher panicked"),
            }
        }
    });
    Ok(())
}
