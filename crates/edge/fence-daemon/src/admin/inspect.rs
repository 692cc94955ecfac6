//! `fence inspect`: what is on the devices of a configuration, and whether it can be believed. Nothing is written.

use std::fs::File;

use serde::Serialize;
use virtbench_fence::cache::{BLOCK_BYTES, Inspection, PartitionState};

use super::held;
use crate::attach_error::AttachError;
use crate::cache_metadata::{image, inspected, unreadable};
use crate::config::{Built, Config, DeviceTable};
use crate::device::{open_read_only, read_at};
use crate::label::{Cached, Label, LabelError, Partition};
use crate::serve_error::ServeError;

/// Blocks of data that are read at once.
const WINDOW_BLOCKS: u32 = 256;
/// Bytes of a block, in memory.
#[allow(clippy::cast_possible_truncation)] // 4096
const BLOCK: usize = BLOCK_BYTES as usize;
/// Damaged blocks that are told one by one; more are counted.
const MOST_DAMAGED: usize = 100;

/// What was found on the devices.
#[derive(Debug, Serialize)]
pub struct Inspected {
    /// The device that virtual disks live on; none if it is `null:`.
    pub home: Option<HomeFacts>,
    /// The cache, if the configuration has one.
    pub cache: Option<CacheFacts>,
    /// What is not as configured: `serve` would refuse it.
    pub changed: Vec<String>,
    /// What no power failure leaves: something is lost or mixed up.
    pub faults: Vec<String>,
    /// Faults beyond those.
    pub more_faults: u64,
}

/// The device that virtual disks live on.
#[derive(Debug, Serialize)]
pub struct HomeFacts {
    /// Its path.
    pub device: String,
    /// Its identity, in hexadecimal; empty if it was never formatted.
    pub uuid: String,
    /// Its virtual disks, by place.
    pub disks: Vec<Partition>,
}

/// The cache.
#[derive(Debug, Serialize)]
pub struct CacheFacts {
    /// The device it is on.
    pub device: String,
    /// Its identity, in hexadecimal.
    pub uuid: String,
    /// Number of the superblock that counts: it rises with every start.
    pub sequence: u64,
    /// Which of the two superblocks are whole.
    pub superblocks: [bool; 2],
    /// Its partitions.
    pub partitions: Vec<PartitionFacts>,
}

/// One partition of the cache, in blocks of 4 KiB.
#[derive(Debug, Serialize)]
pub struct PartitionFacts {
    /// The disks that it caches.
    pub disks: Vec<String>,
    /// All blocks.
    pub blocks: u32,
    /// Those that hold data.
    pub used: u32,
    /// Those of them that the slow device has not yet.
    pub dirty: u32,
    /// Those that hold nothing.
    pub free: u32,
    /// Those that are being given up.
    pub retiring: u32,
    /// Dirty blocks of each of `disks`.
    pub dirty_by_disk: Vec<u32>,
    /// Number that the next version of a block gets.
    pub generation: u64,
    /// The last commit that was written whole.
    pub commit: u64,
    /// The last commit of which anything was found; a higher one was cut off.
    pub last_commit: u64,
    /// Blocks of the log.
    pub log_blocks: u32,
    /// Data blocks whose checksum was compared; none without `data`.
    pub checked: u32,
}

/// Reads the metadata on the devices of a configuration, and with `data` every block that the cache holds. `progress` then hears how
/// many blocks were compared and how many there are.
///
/// # Errors
/// A device cannot be read, is being served, or holds no cache where there should be one.
pub fn inspect(
    config: &Config,
    data: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Inspected, ServeError> {
    let home = config.home().unwrap_or(Built::Slow);
    let (living, cache) = match home {
        Built::Slow => (&config.slow, None),
        Built::Fast => (&config.fast, None),
        Built::Cached { .. } => (&config.slow, config.fast.as_ref()),
    };
    let mut found =
        Inspected { home: None, cache: None, changed: Vec::new(), faults: Vec::new(), more_faults: 0 };
    let mut label = None;
    if let Some((file, device)) = opened(living.as_ref())? {
        label = Label::read(&file, &device)?;
        match &label {
            None => found.changed.push(LabelError::None { device: device.clone() }.to_string()),
            Some(label) => {
                found.changed.extend(label.check(config, &device).err().map(|error| error.to_string()));
                if let (None, Cached::Cache { .. }) = (cache, label.cached) {
                    found.changed.push(AttachError::LeftOut { device: device.clone() }.to_string());
                }
            }
        }
        let text = label.as_ref().map_or_else(String::new, |label| hex(&label.uuid));
        let disks = label.as_ref().map_or_else(Vec::new, |label| label.disks.clone());
        found.home = Some(HomeFacts { device, uuid: text, disks });
    }
    if let Some((file, device)) = opened(cache)? {
        if let (Some(label), Some(home)) = (&label, &found.home) {
            let is_newest = held::check(label, &home.device, (&file, &device), &config.cache.memory);
            if let Err(error @ ServeError::Attach(_)) = is_newest {
                found.changed.push(error.to_string());
            }
        }
        let names = names(config, &label.map_or([0; 16], |label| label.uuid));
        let progress = data.then_some(progress);
        cache_facts(&mut found, (&file, device), &names, config, progress)?;
        if let Some(facts) = &found.cache {
            found.changed.extend(compare(config, home, facts));
        }
    }
    Ok(found)
}

/// The file behind a device, locked against daemons; none for a device without one.
fn opened(table: Option<&DeviceTable>) -> Result<Option<(File, String)>, ServeError> {
    let Some(path) = table.and_then(|table| table.device.path()) else { return Ok(None) };
    Ok(Some((open_read_only(path)?, path.display().to_string())))
}

/// Disks as the configuration would have them, by identity.
fn names(config: &Config, uuid: &[u8; 16]) -> Vec<([u8; 16], String)> {
    let placed = config.place(uuid).into_iter().map(|disk| disk.uuid);
    placed.zip(config.disks.iter().map(|disk| disk.name.clone())).collect()
}

fn cache_facts(
    found: &mut Inspected,
    (file, device): (&File, String),
    names: &[([u8; 16], String)],
    config: &Config,
    mut progress: Option<&mut dyn FnMut(u64, u64)>,
) -> Result<(), ServeError> {
    let (superblocks, logs) = image(file, &device)?;
    let inspection = inspected(&device, &superblocks, &logs, &config.cache.memory)?;
    drop(logs);
    found.faults.extend(inspection.faults.iter().map(ToString::to_string));
    found.more_faults += inspection.more_faults;
    let shared = inspection.partitions.len() == 1;
    let of = |disk: &[u8; 16]| {
        let known = names.iter().find(|(uuid, _)| uuid == disk).map(|(_, name)| name.clone());
        known.unwrap_or_else(|| format!("unknown disk {}", hex(disk)))
    };
    let all: Vec<String> = inspection.disks.iter().map(|(uuid, _)| of(uuid)).collect();
    let used = |state: &PartitionState| u64::from(state.clean) + u64::from(state.dirty);
    let blocks: u64 = inspection.partitions.iter().map(used).sum();
    let mut before = 0;
    let mut partitions = Vec::new();
    for (place, state) in inspection.partitions.iter().enumerate() {
        let checked = match progress.as_deref_mut() {
            Some(progress) => {
                let mut told = |checked: u32| progress(before + u64::from(checked), blocks);
                check_data(found, (file, &device), &inspection, place, &mut told)?
            }
            None => 0,
        };
        before += u64::from(checked);
        let mine = |disk: &usize| shared || *disk == place;
        let disks: Vec<usize> = (0..all.len()).filter(mine).collect();
        partitions.push(partition_facts(state, &all, &disks, checked));
    }
    found.cache = Some(CacheFacts {
        uuid: hex(&inspection.uuid),
        sequence: inspection.sequence,
        superblocks: inspection.superblocks,
        partitions,
        device,
    });
    Ok(())
}

fn partition_facts(state: &PartitionState, all: &[String], disks: &[usize], checked: u32) -> PartitionFacts {
    PartitionFacts {
        disks: disks.iter().map(|&disk| all[disk].clone()).collect(),
        blocks: state.blocks,
        used: state.clean + state.dirty,
        dirty: state.dirty,
        free: state.free,
        retiring: state.retiring,
        dirty_by_disk: disks.iter().map(|&disk| state.dirty_by_disk[disk]).collect(),
        generation: state.next_generation,
        commit: state.commit[0],
        last_commit: state.commit[1],
        log_blocks: state.log_blocks,
        checked,
    }
}

/// Holds the data of a partition against its entries. Gives how many blocks there were.
fn check_data(
    found: &mut Inspected,
    (file, device): (&File, &str),
    inspection: &Inspection,
    partition: usize,
    progress: &mut dyn FnMut(u32),
) -> Result<u32, ServeError> {
    let mut live = inspection.live(partition).peekable();
    let mut checked = 0;
    let mut damaged = 0;
    while let Some(first) = live.peek().copied() {
        progress(checked);
        let blocks = (inspection.partitions[partition].blocks - first.block).min(WINDOW_BLOCKS);
        let window = read_at(file, first.fast_offset_bytes, blocks as usize * BLOCK)
            .map_err(|source| unreadable(device, source))?;
        while let Some(one) = live.next_if(|one| one.block - first.block < blocks) {
            checked += 1;
            let at = (one.block - first.block) as usize * BLOCK;
            if crc32c::crc32c(&window[at..at + BLOCK]) == one.data_crc {
                continue;
            }
            damaged += 1;
            let (block, byte) = (one.block, one.disk_offset_bytes);
            let what = if one.dirty { "lost" } else { "read from the slow device in its place" };
            if damaged <= MOST_DAMAGED {
                found.faults.push(format!(
                    "partition {partition}: block {block} is damaged: byte {byte} of disk {} is {what}",
                    one.disk
                ));
            } else {
                found.more_faults += 1;
            }
        }
    }
    Ok(checked)
}

/// What of the cache is not as configured.
fn compare(config: &Config, home: Built, facts: &CacheFacts) -> Vec<String> {
    let wanted: Vec<Vec<String>> = match home {
        Built::Cached { shared: true } => vec![config.disks.iter().map(|disk| disk.name.clone()).collect()],
        _ => config.disks.iter().map(|disk| vec![disk.name.clone()]).collect(),
    };
    let is: Vec<Vec<String>> = facts.partitions.iter().map(|partition| partition.disks.clone()).collect();
    let blocks: Vec<u32> = facts.partitions.iter().map(|partition| partition.blocks).collect();
    let configured = config.cache_blocks(home);
    let mut changed = Vec::new();
    if wanted != is {
        changed.push(format!("{}: the cache is of disks {is:?}, configured are {wanted:?}", facts.device));
    }
    if blocks != configured {
        let device = &facts.device;
        changed.push(format!(
            "{device}: the cache's partitions have {blocks:?} blocks, configured are {configured:?}"
        ));
    }
    changed
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
