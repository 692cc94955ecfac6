//! The metadata of a cache, read from its device and written to it.

use std::fs::File;
use std::io;
use std::path::Path;

use virtbench_fence::cache::{Image, Inspection, MemoryLog, PartitionLayout, Write, inspect, layout};

use crate::device::{read_at, write_at};
use crate::label::LabelError;
use crate::memory::Buffer;
use crate::memory_log;
use crate::serve_error::ServeError;

pub(crate) const SUPERBLOCKS_BYTES: usize = 8192;

pub(crate) fn superblocks(file: &File, name: &str) -> Result<Vec<u8>, ServeError> {
    read_at(file, 0, SUPERBLOCKS_BYTES)
        .map(|buffer| buffer.to_vec())
        .map_err(|source| unreadable(name, source).into())
}

pub(crate) fn unreadable(name: &str, source: io::Error) -> LabelError {
    LabelError::Io { device: name.to_owned(), action: "reading the cache's metadata", source }
}

pub(crate) fn image(file: &File, name: &str) -> Result<(Vec<u8>, Vec<Buffer>), ServeError> {
    let superblocks = superblocks(file, name)?;
    let logs = logs(name, &superblocks, |offset, len| {
        read_at(file, offset, len).map_err(|source| unreadable(name, source).into())
    })?;
    Ok((superblocks, logs))
}

/// The logs of a cache with these superblocks, as `read` gives them by their offset and length.
pub(crate) fn logs(
    name: &str,
    superblocks: &[u8],
    mut read: impl FnMut(u64, usize) -> Result<Buffer, ServeError>,
) -> Result<Vec<Buffer>, ServeError> {
    let layout =
        layout(superblocks).map_err(|source| ServeError::Cache { device: name.to_owned(), source })?;
    let log =
        |partition: &PartitionLayout| read(partition.log_offset_bytes, partition.log_blocks as usize * 4096);
    layout.partitions.iter().map(log).collect()
}

/// What a cache holds, with what is in memory.
pub(crate) fn inspected(
    name: &str,
    superblocks: &[u8],
    logs: &[Buffer],
    folder: &Path,
) -> Result<Inspection, ServeError> {
    let memory = memory_log::left(folder, superblocks)?;
    inspected_with(name, superblocks, logs, memory.as_ref())
}

/// What a cache holds, with this memory.
pub(crate) fn inspected_with(
    name: &str,
    superblocks: &[u8],
    logs: &[Buffer],
    memory: Option<&MemoryLog>,
) -> Result<Inspection, ServeError> {
    inspect(&Image { superblocks, logs, memory })
        .map_err(|source| ServeError::Cache { device: name.to_owned(), source })
}

pub(crate) fn carry_out(file: &File, name: &str, write: &Write) -> Result<(), ServeError> {
    let failed =
        |source| LabelError::Io { device: name.to_owned(), action: "writing the cache's metadata", source };
    write_at(file, write.offset_bytes, &write.bytes).map_err(failed)?;
    file.sync_data().map_err(failed)?;
    Ok(())
}
