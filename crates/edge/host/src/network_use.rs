//! What the network interfaces of a machine have carried, against their speed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where the kernel lists its interfaces.
const INTERFACES: &str = "/sys/class/net";

/// What interfaces had carried at a moment. Only those with a speed are looked at: the loopback, bridges and tap devices have none
/// that is anybody's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSample(BTreeMap<String, Carried>);

/// Bytes that were received and sent, and megabits a second at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Carried {
    bytes: [u64; 2],
    megabits: u64,
}

impl NetworkSample {
    /// As it is now.
    #[must_use]
    pub fn take() -> Self {
        Self::under(Path::new(INTERFACES))
    }

    fn under(interfaces: &Path) -> Self {
        let entries = fs::read_dir(interfaces).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let folder = entry.path();
            // What is made of software has no device below.
            folder.join("device").exists().then_some(())?;
            let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
            let megabits = number("speed").filter(|megabits| *megabits > 0)?;
            let bytes = [number("statistics/rx_bytes")?, number("statistics/tx_bytes")?];
            Some((entry.file_name().to_string_lossy().into_owned(), Carried { bytes, megabits }))
        });
        Self(found.collect())
    }

    /// The interface that was nearest to its speed until a later sample, in percent of that, in its busier direction.
    #[must_use]
    pub fn busiest_percent(&self, later: &Self, length_ns: u64) -> Option<f64> {
        let percent = |(name, after): (&String, &Carried)| {
            let before = self.0.get(name)?;
            let carried = |way: usize| after.bytes[way].checked_sub(before.bytes[way]);
            let bytes = carried(0)?.max(carried(1)?);
            let most = after.megabits as f64 * 1e6 / 8.0 * length_ns.max(1) as f64 / 1e9;
            Some(100.0 * bytes as f64 / most)
        };
        later.0.iter().filter_map(percent).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 125 MB a second are what 1 Gbit/s carries; the other interface has no speed, the third no device.
    #[test]
    fn an_interface_is_held_against_its_speed() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let interface = |name: &str, speed: &str, [rx, tx]: [u64; 2]| {
            write(&format!("{name}/speed"), speed);
            write(&format!("{name}/statistics/rx_bytes"), &format!("{rx}\n"));
            write(&format!("{name}/statistics/tx_bytes"), &format!("{tx}\n"));
        };
        for (name, speed) in [("eth0", "1000\n"), ("eth1", "-1\n")] {
            interface(name, speed, [1_000, 1_000]);
            write(&format!("{name}/device/vendor"), "");
        }
        interface("tap0", "10\n", [0, 0]);
        let before = NetworkSample::under(temp.path());
        assert_eq!(before.0.len(), 1, "{before:?}");
        interface("eth0", "1000\n", [1_000 + 25_000_000, 1_000 + 225_000_000]);
        let after = NetworkSample::under(temp.path());
        let percent = before.busiest_percent(&after, 2_000_000_000).unwrap();
        assert!((percent - 90.0).abs() < 1e-9, "{percent}");
        assert_eq!(NetworkSample::under(&temp.path().join("nothing")).busiest_percent(&after, 1), None);
    }
}
