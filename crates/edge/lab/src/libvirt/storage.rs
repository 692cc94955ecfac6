//! What a guest needs in a storage pool: made, filled, and removed again.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use quick_xml::escape::escape;
use virtbench_libvirt::{ErrorKind, Hypervisor, LibvirtError, OnUpload, Pool, Volume};
use virtbench_mark::RunId;
use virtbench_units::{Random, format_bytes};

use super::address::LibvirtAddress;
use super::made::path_in;
use super::sign::Label;
use super::sweep::{Keeper, SweepOf, remove_made};

/// How often a pool is asked once more, and how long lies between.
const REFRESHES: u32 = 20;
const REFRESH_PAUSE: Duration = Duration::from_millis(100);

/// How long the hypervisor may take to copy a volume.
const COPY_LIMIT: Duration = Duration::from_secs(600);

/// How long removing what a run has made may take.
const REMOVE_LIMIT: Duration = Duration::from_secs(120);

/// What goes into a volume.
pub(super) struct Contents {
    pub(super) purpose: String,
    pub(super) length: u64,
    pub(super) source: Box<dyn Read + Send>,
}

impl Contents {
    /// The bytes of a file.
    pub(super) fn of_file(purpose: &str, path: &Path) -> io::Result<Self> {
        let file =
            File::open(path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        Ok(Self { purpose: purpose.to_owned(), length: file.metadata()?.len(), source: Box::new(file) })
    }
}

/// Bytes that no storage can make smaller, and never the same.
#[derive(Debug)]
pub struct Noise {
    random: Random,
}

impl Noise {
    /// Of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }
}

impl Read for Noise {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for bytes in buffer.chunks_mut(8) {
            let number = self.random.next_u64().to_le_bytes();
            bytes.copy_from_slice(&number[..bytes.len()]);
        }
        Ok(buffer.len())
    }
}

/// The pool that an address names, once it was found usable.
///
/// # Errors
/// Says in words why it is not, and what to do.
pub(super) fn find_pool(hypervisor: &Hypervisor, address: &LibvirtAddress) -> Result<Pool, String> {
    let (name, virsh) = (address.pool(), address.virsh());
    let pool = match hypervisor.pool(name) {
        Ok(pool) => pool,
        Err(error) => {
            let there = hypervisor.pool_names().unwrap_or_default();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            return Err(format!(
                "{address}: no storage pool {name} ({error}); pools there: {there}. Name one by pool=NAME, or make one: \
                 `{virsh} pool-create-as {name} dir --target FOLDER`"
            ));
        }
    };
    let info = pool.info().map_err(|error| format!("{address}: {error}"))?;
    if !info.active {
        return Err(format!("{address}: the storage pool {name} is not active: `{virsh} pool-start {name}`"));
    }
    // Room and volumes as they are, not as they were when the hypervisor looked last.
    match refresh(&pool) {
        Ok(()) => {}
        // Others fill it at this moment. What it had a moment ago will do.
        Err(error) if error.to_string().contains("asynchronous jobs") => {
            tracing::info!(%error, "the pool is taken as it was");
        }
        Err(error) => {
            return Err(format!(
                "{address}: the storage pool {name} cannot be read: {error}; mend it or name another by pool=NAME"
            ));
        }
    }
    Ok(pool)
}

/// Asks again for a while: a pool that others are filling is not refreshed, and their volumes may be small.
fn refresh(pool: &Pool) -> Result<(), LibvirtError> {
    let mut tries = REFRESHES;
    loop {
        match pool.refresh() {
            Err(_) if tries > 0 => tries -= 1,
            done => return done,
        }
        thread::sleep(REFRESH_PAUSE);
    }
}

/// Whether the pool has room for so much.
///
/// # Errors
/// Says in words that it has not.
pub(super) fn check_room(pool: &Pool, address: &LibvirtAddress, needed_bytes: u64) -> Result<(), String> {
    let info = pool.info().map_err(|error| format!("{address}: {error}"))?;
    if info.available_bytes >= needed_bytes {
        return Ok(());
    }
    Err(format!(
        "{address}: the storage pool {} has {} free and {} are needed: choose a smaller --size, or another pool",
        address.pool(),
        format_bytes(info.available_bytes),
        format_bytes(needed_bytes)
    ))
}

/// A kernel is read by all who run guests there, a disk by its guest alone.
fn described(name: &str, length: u64) -> String {
    format!(
        "<volume><name>{}</name><capacity unit='bytes'>{length}</capacity><allocation unit='bytes'>0</allocation>\
         <target><format type='raw'/><permissions><mode>0600</mode></permissions></target></volume>",
        escape(name)
    )
}

/// The folder of a pool's volumes on the hypervisor's machine, as its description says.
#[must_use]
pub fn folder_of(pool_xml: &str) -> String {
    path_in(pool_xml, "target").unwrap_or_default().trim_end_matches('/').to_owned()
}

/// Whether a name is free in a pool: a volume that is there already is not a run's to fill or to remove.
///
/// # Errors
/// It is taken, or the connection failed.
pub fn check_free(pool: &Pool, name: &str) -> Result<(), LibvirtError> {
    let is_there = || match pool.volume(name) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NoVolume => Ok(false),
        Err(error) => Err(error),
    };
    if !is_there()? {
        return Ok(());
    }
    // What another hypervisor has removed from a folder that both have as a pool is there until this one looks again.
    refresh(pool)?;
    if !is_there()? {
        return Ok(());
    }
    Err(LibvirtError::Local(format!(
        "there is a volume {name} already, which this run has not made: it stays as it is; begin again, and another name is taken"
    )))
}

/// What a run has made on a hypervisor, of which its keeper keeps account. Dropping it removes all of it.
#[derive(Debug)]
pub(super) struct Account {
    address: LibvirtAddress,
    hypervisor: Hypervisor,
    pub(super) run: RunId,
    folder: String,
    keeper: Keeper,
}

impl Account {
    /// Begins with nothing.
    pub(super) fn begin(
        address: &LibvirtAddress,
        hypervisor: &Hypervisor,
        pool: &Pool,
        label: &Label,
    ) -> Result<Self, LibvirtError> {
        let (run, folder) = (RunId::new_random(), folder_of(&pool.xml()?));
        let keeper = Keeper::define(hypervisor, label, &run, Vec::new())?;
        Ok(Self { address: address.clone(), hypervisor: hypervisor.clone(), run, folder, keeper })
    }

    /// Lists a volume that is made next, of a name that is free.
    fn list(&self, pool: &Pool, name: &str) -> Result<(), LibvirtError> {
        check_free(pool, name)?;
        self.keeper.list(format!("{}/{name}", self.folder))
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let remove = |hypervisor: &Hypervisor| {
            remove_made(hypervisor, SweepOf::Run(&self.run), Instant::now() + REMOVE_LIMIT)
        };
        let Err(error) = remove(&self.hypervisor) else { return };
        // A connection that broke may be had again: a signal to all processes of a terminal ends libvirt's ssh as well.
        match Hypervisor::open(self.address.connection()).and_then(|hypervisor| remove(&hypervisor)) {
            Ok(_) => tracing::info!(run = %self.run, %error, "all is removed over another connection"),
            Err(error) => {
                tracing::warn!(run = %self.run, %error, "volumes are left for the next run to remove");
            }
        }
    }
}

/// Volumes that are removed when this value goes.
#[derive(Debug)]
pub(super) struct Volumes {
    pool: Pool,
    label: Label,
    made: Vec<Volume>,
    account: Arc<Account>,
}

impl Volumes {
    pub(super) fn new(account: Arc<Account>, pool: Pool, label: Label) -> Self {
        Self { pool, label, made: Vec::new(), account }
    }

    /// The run that they are of.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Makes a volume and fills it; returns where it is on the hypervisor's machine.
    pub(super) fn add(
        &mut self,
        contents: Contents,
        on_progress: &mut OnUpload<'_>,
    ) -> Result<String, LibvirtError> {
        let Contents { purpose, length, source } = contents;
        let name = self.label.volume(&purpose);
        self.account.list(&self.pool, &name)?;
        let volume = self.pool.create(&described(&name, length))?;
        self.made.push(volume.clone());
        volume.upload(source, length, on_progress)?;
        tracing::info!(name, bytes = length, "a volume is filled");
        volume.path()
    }

    /// Makes a volume with the bytes of another one's, which are `length`.
    pub(super) fn copy(&mut self, purpose: &str, from: &str, length: u64) -> Result<(), LibvirtError> {
        let (name, from) = (self.name(purpose), self.pool.volume(from)?);
        self.account.list(&self.pool, &name)?;
        let volume = self.pool.copy(&described(&name, length), &from, false, COPY_LIMIT)?;
        self.made.push(volume);
        tracing::info!(name, bytes = length, "a volume is copied");
        Ok(())
    }

    /// The name of the volume for this purpose.
    pub(super) fn name(&self, purpose: &str) -> String {
        self.label.volume(purpose)
    }
}

impl Drop for Volumes {
    fn drop(&mut self) {
        // Those that cannot be deleted now go with the account, which lists them.
        let path = |volume: Volume| {
            let name = volume.name().ok()?;
            volume.delete().ok().map(|()| format!("{}/{name}", self.account.folder))
        };
        let gone: Vec<String> = self.made.drain(..).filter_map(path).collect();
        if !gone.is_empty() {
            self.account.keeper.forget(&gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_fills_what_it_is_given() {
        let mut bytes = [0; 1001];
        Noise::new(7).read_exact(&mut bytes).unwrap();
        let zeros = bytes.iter().filter(|byte| **byte == 0).count();
        assert!(zeros < 50 && bytes[1000..] != [0], "{zeros}");
    }
}
