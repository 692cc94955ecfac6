//! What the way through a block device of the host adds: the same daemon and file, asked over NBD and through the device.
//! `cargo run --release -p virtbench-study --example host_device -- FOLDER`; in a tmpfs the file itself takes next to nothing.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use virtbench_engine::{Control, Target, TargetRequest};
use virtbench_study::{Backing, Contents, FenceDisks, FenceRequest, Setup};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

const SIZE_BYTES: u64 = 16 << 20;

fn main() -> anyhow::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "/dev/shm".into());
    println!("{:>12} {:>6} {:>10} {:>9} {:>9} {:>9}", "way", "depth", "IOPS", "mean us", "p50 us", "p99 us");
    for (way, attach) in [("NBD", "daemon"), ("block device", "host")] {
        let setup =
            Setup::parse(&format!("virtio-blk@fence,scheduler=pass-through,slow=file,attach={attach}"))?;
        let Backing::Fence(options) = setup.backing else { continue };
        let names = ["vm1".to_owned()];
        let request = FenceRequest {
            folder: Path::new(&folder),
            run_name: "host-device",
            adapter: setup.adapter,
            settings: &setup.settings,
            options: &options,
            names: &names,
            size_bytes: SIZE_BYTES,
            contents: Contents::Written,
            images: &[],
            warm: None,
            configuration: None,
        };
        let disks = FenceDisks::prepare(&request, &AtomicBool::new(false), &mut |_, _, _| {})?;
        for disk in disks.disks() {
            let path = match (&disk.server, &disk.export) {
                (Some(socket), Some(export)) => {
                    format!("nbd+unix:///{export}?socket={}", socket.display()).into()
                }
                _ => disk.path.clone(),
            };
            let target = TargetRequest {
                path,
                size_bytes: None,
                direct: true,
                reads: true,
                writes: false,
                allow_overwrite: false,
            };
            let target = Target::open(&target, |_, _| true)?;
            for outstanding in [1, 8, 32] {
                let spec = LoadSpec {
                    outstanding,
                    ramp_ns: 300_000_000,
                    time_ns: 3_000_000_000,
                    interval_ns: 3_000_000_000,
                    ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), SIZE_BYTES)
                };
                let total = virtbench_engine::run(&spec, &target, &Control::new(1), 0, |_| ())?.total;
                let Some(latency) = total.latency_ns else { continue };
                println!(
                    "{way:>12} {outstanding:>6} {:>10.0} {:>9.1} {:>9.1} {:>9.1}",
                    total.iops,
                    latency.mean / 1e3,
                    latency.p50 as f64 / 1e3,
                    latency.p99 as f64 / 1e3
                );
            }
        }
    }
    Ok(())
}
