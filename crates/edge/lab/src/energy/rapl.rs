//! The energy counters of processors: RAPL, by the kernel's powercap (Documentation/power/powercap/powercap.rst).

use std::fs;
use std::path::{Path, PathBuf};

use virtbench_record::PowerSample;

use super::source::{EnergySource, NoEnergy, since};

/// One counter: a package, or a platform as a whole.
#[derive(Debug)]
struct Zone {
    path: PathBuf,
    /// The counter begins anew beyond it, in microjoules.
    range_uj: u64,
    last_uj: u64,
}

/// All packages of this host. Their parts (cores, memory) are in them, and are not counted again.
#[derive(Debug)]
pub(super) struct Rapl {
    zones: Vec<Zone>,
    last_unix_ns: Option<u64>,
    /// Begin and end of an interval in nanoseconds since 1970, and mean power in it, in watts.
    intervals: Vec<(u64, u64, f64)>,
}

impl Rapl {
    /// Looks in this folder, which is the kernel's.
    pub(super) fn find(folder: &Path) -> Result<Self, NoEnergy> {
        let none = |why: &str| NoEnergy(format!("no RAPL in {}: {why}", folder.display()));
        let entries = fs::read_dir(folder).map_err(|error| none(&error.to_string()))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let is_package = |path: &PathBuf| {
            // intel-rapl:0 is a package, intel-rapl:0:1 a part of one; intel-rapl-mmio counts the same again.
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.strip_prefix("intel-rapl:").is_some_and(|rest| !rest.contains(':')) && !is_platform(path)
        };
        let zones = paths.into_iter().filter(is_package).map(|path| {
            let range_uj = number(&path.join("max_energy_range_uj"))?;
            let last_uj = number(&path.join("energy_uj"))?;
            Ok(Zone { path, range_uj, last_uj })
        });
        let zones: Vec<Zone> =
            zones.collect::<Result<_, std::io::Error>>().map_err(|error| none(&error.to_string()))?;
        if zones.is_empty() {
            return Err(none("no package"));
        }
        Ok(Self { zones, last_unix_ns: None, intervals: Vec::new() })
    }
}

/// The whole platform (`psys`) has the packages in it.
fn is_platform(path: &Path) -> bool {
    fs::read_to_string(path.join("name")).is_ok_and(|name| name.trim() == "psys")
}

fn number(path: &Path) -> Result<u64, std::io::Error> {
    fs::read_to_string(path)?.trim().parse().map_err(std::io::Error::other)
}

impl EnergySource for Rapl {
    fn name(&self) -> String {
        "rapl".into()
    }

    fn ask(&mut self, unix_ns: u64) -> Result<(), NoEnergy> {
        let mut used_uj = 0u64;
        for zone in &mut self.zones {
            let now_uj = number(&zone.path.join("energy_uj"))
                .map_err(|error| NoEnergy(format!("{}: {error}", zone.path.display())))?;
            let beyond = zone.range_uj.saturating_sub(zone.last_uj).saturating_add(now_uj);
            used_uj = used_uj.saturating_add(now_uj.checked_sub(zone.last_uj).unwrap_or(beyond));
            zone.last_uj = now_uj;
        }
        if let Some(last_unix_ns) = self.last_unix_ns
            && unix_ns > last_unix_ns
        {
            let seconds = (unix_ns - last_unix_ns) as f64 / 1e9;
            self.intervals.push((last_unix_ns, unix_ns, used_uj as f64 / 1e6 / seconds));
        }
        self.last_unix_ns = Some(unix_ns);
        Ok(())
    }

    /// Two samples of the same power for each interval, so that the integral over it is what was counted.
    fn samples(&mut self, begin_unix_ns: u64) -> Result<Vec<PowerSample>, NoEnergy> {
        if self.intervals.is_empty() {
            return Err(NoEnergy("RAPL was asked less than twice".into()));
        }
        let ends = |(from, to, watts): &(u64, u64, f64)| {
            let sample = |unix_ns| PowerSample { at_ns: since(unix_ns, begin_unix_ns), watts: *watts };
            [sample(*from), sample(to - 1)]
        };
        Ok(self.intervals.iter().flat_map(ends).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(folder: &Path, name: &str, is: &str, uj: u64) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("name"), format!("{is}\n")).unwrap();
        fs::write(path.join("max_energy_range_uj"), "1000000000\n").unwrap();
        fs::write(path.join("energy_uj"), format!("{uj}\n")).unwrap();
        path
    }

    /// Two packages, one of which begins anew in between: 50 J and 30 J in two seconds are 40 W. Neither their parts nor the
    /// platform are counted.
    #[test]
    fn packages_are_added_up_and_a_counter_may_begin_anew() {
        let temp = tempfile::tempdir().unwrap();
        let first = zone(temp.path(), "intel-rapl:0", "package-0", 100_000_000);
        zone(temp.path(), "intel-rapl:0:0", "core", 5);
        let second = zone(temp.path(), "intel-rapl:1", "package-1", 990_000_000);
        zone(temp.path(), "intel-rapl:2", "psys", 7);
        let mut rapl = Rapl::find(temp.path()).unwrap();
        rapl.ask(10_000_000_000).unwrap();
        fs::write(first.join("energy_uj"), "150000000").unwrap();
        fs::write(second.join("energy_uj"), "20000000").unwrap();
        rapl.ask(12_000_000_000).unwrap();
        let samples = rapl.samples(10_000_000_000).unwrap();
        assert_eq!(samples.len(), 2);
        assert!(samples.iter().all(|sample| (sample.watts - 40.0).abs() < 1e-9), "{samples:?}");
        assert_eq!((samples[0].at_ns, samples[1].at_ns), (0, 1_999_999_999));
    }

    #[test]
    fn a_host_without_counters_says_so() {
        let temp = tempfile::tempdir().unwrap();
        assert!(Rapl::find(temp.path()).unwrap_err().to_string().contains("no package"));
        assert!(Rapl::find(&temp.path().join("x")).unwrap_err().to_string().starts_with("no RAPL in "));
    }
}
