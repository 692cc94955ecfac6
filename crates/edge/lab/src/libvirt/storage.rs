//! What a guest needs in a storage pool: made, filled, and removed again.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use quick_xml::escape::escape;
use virtbench_libvirt::{Hypervisor, LibvirtError, OnUpload, Pool, Volume};
use virtbench_units::{Random, format_bytes};

use super::address::LibvirtAddress;
use super::label::Label;

/// How often a pool is asked once more, and how long lies between.
const REFRESHES: u32 = 20;
const REFRESH_PAUSE: Duration = Duration::from_millis(100);

/// How long the hypervisor may take to copy a volume.
const COPY_LIMIT: Duration = Duration::from_secs(600);

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

/// A kernel is read by whoever runs guests there, a disk by its guest alone.
fn described(name: &str, length: u64) -> String {
    format!(
        "<volume><name>{}</name><capacity unit='bytes'>{length}</capacity><allocation unit='bytes'>0</allocation>\
         <target><format type='raw'/><permissions><mode>0600</mode></permissions></target></volume>",
        escape(name)
    )
}

/// Volumes that are removed when this value goes.
#[derive(Debug)]
pub(super) struct Volumes {
    address: LibvirtAddress,
    pool: Pool,
    label: Label,
    made: Vec<Volume>,
}

impl Volumes {
    pub(super) fn new(address: LibvirtAddress, pool: Pool, label: Label) -> Self {
        Self { address, pool, label, made: Vec::new() }
    }

    /// Makes a volume and fills it; returns where it is on the hypervisor's machine.
    pub(super) fn add(
        &mut self,
        contents: Contents,
        on_progress: &mut OnUpload<'_>,
    ) -> Result<String, LibvirtError> {
        let Contents { purpose, length, source } = contents;
        let name = self.label.volume(&purpose);
        let volume = self.pool.create(&described(&name, length))?;
        self.made.push(volume.clone());
        volume.upload(source, length, on_progress)?;
        tracing::info!(name, bytes = length, "a volume is filled");
        volume.path()
    }

    /// Makes a volume with the bytes of another one's, which are `length`.
    pub(super) fn copy(&mut self, purpose: &str, from: &str, length: u64) -> Result<(), LibvirtError> {
        let (name, from) = (self.name(purpose), self.pool.volume(from)?);
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
        let left = self.made.drain(..).filter(|volume| volume.delete().is_err()).count();
        if left == 0 {
            return;
        }
        // A connection that broke may be had again: a signal to all processes of a terminal ends libvirt's ssh as well.
        let again = Hypervisor::open(self.address.connection()).map_err(|error| error.to_string());
        let removed = again.and_then(|hypervisor| {
            let pool = find_pool(&hypervisor, &self.address)?;
            remove(&pool, &self.label).map_err(|error| error.to_string())
        });
        match removed {
            Ok(()) => tracing::info!(label = %self.label, "volumes are removed over another connection"),
            Err(why) => {
                tracing::warn!(label = %self.label, left, why, "volumes are left for the next run to remove")
            }
        }
    }
}

/// Removes all volumes with this label.
pub(super) fn remove(pool: &Pool, label: &Label) -> Result<(), LibvirtError> {
    for volume in pool.volumes()? {
        if Label::of_volume(&volume.name()?).as_ref() == Some(label) {
            volume.delete()?;
        }
    }
    Ok(())
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
