//! Several fences in one file: each pool has a slow and a fast device, a scheduler, a cache and disks of its own, and shares
//! nothing with another but the file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use serde::de::DeserializeOwned;

use super::key_error::{KeyError, PathPart};
use super::{Config, DiskTable, Listen, LoadError, PoolTable};

/// Letters of a pool's name at most: it is part of file names.
const MOST_NAME_BYTES: usize = 32;

/// Pools of a file at most: each has a process.
const MOST_POOLS: usize = 64;

/// The fences of a file: one, or one for each pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Pools {
    file: Config,
    fences: Vec<Config>,
}

impl Pools {
    /// Reads a file.
    ///
    /// # Errors
    /// It is unreadable, no TOML, has unknown keys, or values that cannot be.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        Self::read(path, true)
    }

    /// The same for a daemon that is begun by one who has loaded the file: no device is looked at, since one that does not
    /// answer would hold up the daemons of other pools.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn load_again(path: &Path) -> Result<Self, LoadError> {
        Self::read(path, false)
    }

    fn read(path: &Path, looks_at_devices: bool) -> Result<Self, LoadError> {
        let text = fs::read_to_string(path)
            .map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
        let syntax = |source| LoadError::Syntax { path: path.to_owned(), source: Box::new(source) };
        let mut file: Config = toml::from_str(&text).map_err(syntax)?;
        file.inherit(&text).map_err(syntax)?;
        let wrong = |message| LoadError::Value { path: path.to_owned(), message };
        file.within_bounds().map_err(|key| wrong(key.in_text(&text)))?;
        file.check_pools().map_err(|key| wrong(key.in_text(&text)))?;
        file.check().map_err(wrong)?;
        if looks_at_devices {
            file.devices_are_told_apart().map_err(|key| wrong(key.in_text(&text)))?;
        }
        let schedulers = file.pools.values_mut().filter_map(|pool| pool.scheduler.as_mut());
        for scheduler in schedulers.chain([&mut file.scheduler]) {
            if let (Some(file), Some(folder)) = (&mut scheduler.predict.file, path.parent()) {
                *file = folder.join(&file);
            }
        }
        Ok(Self { fences: file.fences(), file })
    }

    /// Each of them, in the order of their names.
    #[must_use]
    pub fn all(&self) -> &[Config] {
        &self.fences
    }

    /// Whether the file gives them names.
    #[must_use]
    pub fn are_named(&self) -> bool {
        !self.file.pools.is_empty()
    }

    /// The fence that is this pool.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Config> {
        self.fences.iter().find(|fence| fence.pool.as_deref() == Some(name))
    }

    /// The fence that has this disk.
    #[must_use]
    pub fn of_disk(&self, disk: &str) -> Option<&Config> {
        self.fences.iter().find(|fence| fence.disks.iter().any(|known| known.name == disk))
    }

    /// What to say to somebody who has to name one.
    #[must_use]
    pub fn which(&self) -> String {
        match &self.file.pool_names()[..] {
            "" => "the file has no pools".to_owned(),
            names => format!("give --pool with one of {names}"),
        }
    }

    /// The file itself.
    #[must_use]
    pub fn into_file(self) -> Config {
        self.file
    }

    /// Whether the file could have this disk too. One that it has already is judged by its fence.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_with(&self, disk: &DiskTable) -> Result<(), String> {
        let mut file = self.file.clone();
        if file.disks.iter().all(|known| known.name != disk.name) {
            file.disks.push(disk.clone());
        }
        file.check()
    }
}

impl Config {
    /// Reads a file that describes one fence.
    ///
    /// # Errors
    /// As for [`Pools::load`]; or it describes several.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let pools = Pools::load(path)?;
        match pools.all() {
            [one] => Ok(one.clone()),
            _ => Err(LoadError::Value {
                path: path.to_owned(),
                message: format!("it has several pools: {}", pools.which()),
            }),
        }
    }

    /// The fences that this file describes: itself, or its pools.
    pub(super) fn fences(&self) -> Vec<Self> {
        if self.pools.is_empty() {
            return vec![self.clone()];
        }
        let fence = |(name, pool): (&String, &PoolTable)| {
            let disks = self.disks.iter().filter(|disk| disk.pool.as_ref() == Some(name));
            let PoolTable { slow, fast, cache, scheduler, nbd, metrics, control } = pool.clone();
            Self {
                slow,
                fast,
                cache: cache.unwrap_or_else(|| self.cache.clone()),
                scheduler: scheduler.unwrap_or_else(|| self.scheduler.clone()),
                limits: self.limits,
                nbd,
                metrics,
                control,
                disks: disks.cloned().collect(),
                pools: BTreeMap::new(),
                pool: Some(name.clone()),
            }
        };
        self.pools.iter().map(fence).collect()
    }

    fn pool_names(&self) -> String {
        self.pools.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Gives a pool's `[cache]` and `[scheduler]` the keys of the file's that it does not have.
    fn inherit(&mut self, text: &str) -> Result<(), toml::de::Error> {
        if self.pools.is_empty() {
            return Ok(());
        }
        let whole: toml::Table = toml::from_str(text)?;
        for (name, pool) in &mut self.pools {
            let own = |key: &str| whole.get("pool")?.get(name)?.get(key);
            pool.cache = own("cache").map(|table| over(whole.get("cache"), table)).transpose()?;
            pool.scheduler = own("scheduler").map(|table| over(whole.get("scheduler"), table)).transpose()?;
        }
        Ok(())
    }

    /// Checks what pools are to each other.
    pub(super) fn check_pools(&self) -> Result<(), KeyError> {
        for (place, disk) in self.disks.iter().enumerate() {
            let at = |more: &[PathPart]| [&[PathPart::Disk(place, disk.name.clone())], more].concat();
            let key = || at(&[PathPart::Table("pool")]);
            let names = self.pool_names();
            match &disk.pool {
                None if self.pools.is_empty() => {}
                None => {
                    let says =
                        format!("no pool: say in which it is, such as pool = {:?}: {names}", self.first());
                    return Err(KeyError { path: at(&[]), says });
                }
                Some(pool) if self.pools.contains_key(pool) || self.pool.as_ref() == Some(pool) => {}
                Some(pool) if self.pools.is_empty() => {
                    let says =
                        format!("{pool:?}: the file has no pools: leave it out, or give [pool.NAME.slow]");
                    return Err(KeyError { path: key(), says });
                }
                Some(pool) => {
                    let says = format!("{pool:?}: there is no such pool: use one of {names}");
                    return Err(KeyError { path: key(), says });
                }
            }
        }
        if self.pools.is_empty() {
            return Ok(());
        }
        if self.pools.len() > MOST_POOLS {
            let says = format!("{} pools: use {MOST_POOLS} at most, and another file", self.pools.len());
            return Err(KeyError { path: vec![PathPart::Table("pool")], says });
        }
        self.nothing_is_of_no_pool()?;
        for name in self.pools.keys() {
            self.check_pool(name)?;
        }
        self.disks_are_told_apart()?;
        self.addresses_are_told_apart()?;
        self.predictions_are_told_apart()
    }

    fn first(&self) -> &str {
        self.pools.keys().next().map_or("", String::as_str)
    }

    /// Keys of a fence at the beginning of a file that has several.
    fn nothing_is_of_no_pool(&self) -> Result<(), KeyError> {
        let given = [
            ("slow", self.slow.is_some()),
            ("fast", self.fast.is_some()),
            ("nbd", self.nbd.is_some()),
            ("metrics", self.metrics.is_some()),
            ("control", self.control.is_some()),
        ];
        let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        let pool = self.first();
        let place = if ["metrics", "control"].contains(&key) {
            format!("[pool.{pool}]")
        } else {
            format!("[pool.{pool}.{key}]")
        };
        let says = format!("cannot be beside pools, each of which has its own: write it in {place}");
        Err(KeyError { path: vec![PathPart::Table(key)], says })
    }

    fn check_pool(&self, name: &str) -> Result<(), KeyError> {
        let wrong = |says: String| Err(KeyError { path: vec![PathPart::Pool(name.to_owned())], says });
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins_well || name.len() > MOST_NAME_BYTES || !name.chars().all(plain) {
            return wrong(format!(
                "name {name:?}: use 1 to {MOST_NAME_BYTES} letters, digits, '-' or '_', beginning with a letter or digit"
            ));
        }
        if self.disks.iter().all(|disk| disk.pool.as_deref() != Some(name)) {
            return wrong(format!("has no disk: write pool = {name:?} in a [[disk]], or leave the pool out"));
        }
        Ok(())
    }

    /// Where clients of all pools arrive, each with the key that says so.
    fn addresses(&self) -> Vec<(Vec<PathPart>, Listen)> {
        let disks = self.disks.iter().enumerate().filter_map(|(place, disk)| {
            let path = vec![PathPart::Disk(place, disk.name.clone()), PathPart::Table("socket")];
            Some((path, Listen::Unix(disk.socket.clone()?)))
        });
        let of_pools = self.fences().into_iter().flat_map(|fence| {
            let pool = PathPart::Pool(fence.pool.clone().unwrap_or_default());
            let key = |keys: &[&'static str]| {
                std::iter::once(pool.clone())
                    .chain(keys.iter().copied().map(PathPart::Table))
                    .collect::<Vec<_>>()
            };
            let control = fence.control_socket().map(|path| (key(&["control"]), Listen::Unix(path)));
            let metrics = fence.metrics.map(|address| (key(&["metrics"]), Listen::Tcp(address)));
            let nbd = fence.nbd.iter().flat_map(|nbd| &nbd.listen);
            let nbd: Vec<_> = nbd.map(|listen| (key(&["nbd", "listen"]), listen.clone())).collect();
            control.into_iter().chain(metrics).chain(nbd).collect::<Vec<_>>()
        });
        disks.chain(of_pools).collect()
    }

    fn addresses_are_told_apart(&self) -> Result<(), KeyError> {
        let all = self.addresses();
        for (place, (path, address)) in all.iter().enumerate() {
            if let Some((other, _)) = all[..place].iter().find(|(_, other)| collide(other, address)) {
                let other = KeyError { path: other.clone(), says: String::new() };
                let says =
                    format!("{address}: {} is there too: give each its own", other.to_string().trim_end());
                return Err(KeyError { path: path.clone(), says });
            }
        }
        Ok(())
    }

    /// What was measured of devices is not true of others.
    fn predictions_are_told_apart(&self) -> Result<(), KeyError> {
        let fences = self.fences();
        let file = |fence: &Self| fence.scheduler.predict.file.clone();
        for (place, fence) in fences.iter().enumerate() {
            let Some(of) = file(fence) else { continue };
            if fences[..place].iter().any(|other| file(other).as_ref() == Some(&of)) {
                let pool = fence.pool.clone().unwrap_or_default();
                let says = format!(
                    "{}: another pool has it too, and devices of its own: write file in {}",
                    of.display(),
                    fence.table("scheduler.predict")
                );
                let keys = ["scheduler", "predict", "file"].map(PathPart::Table);
                return Err(KeyError { path: [&[PathPart::Pool(pool)][..], &keys].concat(), says });
            }
        }
        Ok(())
    }

    /// No two pools, and no two devices of one, are one file or block device, by whatever name.
    fn devices_are_told_apart(&self) -> Result<(), KeyError> {
        let devices: Vec<_> = self
            .pools
            .iter()
            .flat_map(|(name, pool)| [(name, "slow", &pool.slow), (name, "fast", &pool.fast)])
            .filter_map(|(name, key, table)| Some((name, key, table.as_ref()?.device.path()?)))
            .collect();
        for (place, (name, key, path)) in devices.iter().enumerate() {
            let same = |(_, _, other): &&(_, _, &PathBuf)| {
                other == path || identity(path).is_some_and(|own| identity(other) == Some(own))
            };
            if let Some((other, of, _)) = devices[..place].iter().find(same) {
                let says = format!(
                    "{}: it is the device of pool.{other}.{of} too: give each its own",
                    path.display()
                );
                let path = [PathPart::Pool((*name).clone()), PathPart::Table(key), PathPart::Table("device")];
                return Err(KeyError { path: path.to_vec(), says });
            }
        }
        Ok(())
    }
}

/// A table, with the keys of another that it does not have.
fn over<T: DeserializeOwned>(below: Option<&toml::Value>, table: &toml::Value) -> Result<T, toml::de::Error> {
    below.map_or_else(|| table.clone(), |below| merged(below, table)).try_into()
}

fn merged(below: &toml::Value, above: &toml::Value) -> toml::Value {
    let (toml::Value::Table(below), toml::Value::Table(above)) = (below, above) else { return above.clone() };
    let mut all = below.clone();
    for (key, value) in above {
        let value = below.get(key).map_or_else(|| value.clone(), |below| merged(below, value));
        all.insert(key.clone(), value);
    }
    toml::Value::Table(all)
}

/// Whether both cannot be listened at.
fn collide(a: &Listen, b: &Listen) -> bool {
    match (a, b) {
        (Listen::Unix(a), Listen::Unix(b)) => real(a) == real(b),
        (Listen::Tcp(a), Listen::Tcp(b)) => {
            let either = a.ip().is_unspecified() || b.ip().is_unspecified();
            a.port() != 0 && a.port() == b.port() && (either || a.ip() == b.ip())
        }
        _ => false,
    }
}

/// The name of what may not be there yet, in the folder that its own folder is.
fn real(path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    folder.zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

/// Which file or block device is there: whether it is a block device, and numbers that no other has. The kernel says what it
/// knows, without asking a server that may not answer.
fn identity(path: &Path) -> Option<(bool, [u64; 3])> {
    let facts = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::INO).ok()?;
    let is_block = FileType::from_raw_mode(facts.stx_mode.into()) == FileType::BlockDevice;
    let numbers = if is_block {
        [facts.stx_rdev_major.into(), facts.stx_rdev_minor.into(), 0]
    } else {
        [facts.stx_dev_major.into(), facts.stx_dev_minor.into(), facts.stx_ino]
    };
    Some((is_block, numbers))
}

#[cfg(test)]
#[path = "pools_tests.rs"]
mod tests;
