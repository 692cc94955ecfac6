//! Storage pools and their volumes.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::binding::{Binding, Listed, Object};
use crate::connection::{ANSWER_LIMIT, Handle, STORAGE_LIMIT};
use crate::error::LibvirtError;

/// How long an upload may stall.
const STALL_LIMIT: Duration = Duration::from_secs(60);
/// How often an upload's progress is told.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes sent at once; libvirt's protocol cuts them into messages of its own.
const CHUNK_BYTES: usize = 256 << 10;
/// `VIR_STORAGE_POOL_RUNNING`
const RUNNING: i32 = 2;
/// `VIR_STORAGE_VOL_CREATE_REFLINK`
const REFLINK: u32 = 2;

/// Is told bytes sent of bytes in all, and answers whether to go on.
pub type OnUpload<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// How a storage pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolInfo {
    /// Whether it is active.
    pub active: bool,
    /// Free, in bytes.
    pub available_bytes: u64,
}

/// A storage pool.
#[derive(Debug, Clone)]
pub struct Pool {
    handle: Handle,
}

impl Pool {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// Whether it is active, and its room.
    ///
    /// # Errors
    /// The connection failed.
    pub fn info(&self) -> Result<PoolInfo, LibvirtError> {
        let info = self.handle.call(STORAGE_LIMIT, "look at the pool", Binding::pool_info)?;
        Ok(PoolInfo { active: info.state == RUNNING, available_bytes: info.available })
    }

    /// What it is made of, as XML.
    ///
    /// # Errors
    /// The connection failed.
    pub fn xml(&self) -> Result<String, LibvirtError> {
        self.handle.call(STORAGE_LIMIT, "describe the pool", Binding::pool_xml)
    }

    /// Has the hypervisor look for what is in it.
    ///
    /// # Errors
    /// It is not active, or cannot be read.
    pub fn refresh(&self) -> Result<(), LibvirtError> {
        self.handle.call(STORAGE_LIMIT, "refresh the pool", Binding::refresh_pool)
    }

    /// All its volumes.
    ///
    /// # Errors
    /// It is not active, or the connection failed.
    pub fn volumes(&self) -> Result<Vec<Volume>, LibvirtError> {
        let objects = self
            .handle
            .call(STORAGE_LIMIT, "list volumes", |binding, pool| binding.list(pool, Listed::Volumes))?;
        Ok(objects.into_iter().map(|object| Volume::new(&self.handle, object)).collect())
    }

    /// Makes a volume.
    ///
    /// # Errors
    /// There is one of its name, or no room.
    pub fn create(&self, xml: &str) -> Result<Volume, LibvirtError> {
        let xml = xml.to_owned();
        let object = self
            .handle
            .call(STORAGE_LIMIT, "make a volume", move |binding, pool| binding.create_volume(pool, &xml))?;
        Ok(Volume::new(&self.handle, object))
    }

    /// Makes a volume with another one's bytes: copied, or shared with it by the file system.
    ///
    /// # Errors
    /// There is one of its name, no room, or the file system cannot share.
    pub fn copy(
        &self,
        xml: &str,
        from: &Volume,
        shared: bool,
        limit: Duration,
    ) -> Result<Volume, LibvirtError> {
        let (xml, from) = (xml.to_owned(), Arc::clone(&from.handle.object));
        let flags = if shared { REFLINK } else { 0 };
        let object = self.handle.call(limit, "copy a volume", move |binding, pool| {
            binding.copy_volume(pool, &xml, &from, flags)
        })?;
        Ok(Volume::new(&self.handle, object))
    }

    /// The volume of this name.
    ///
    /// # Errors
    /// There is none, or the connection failed.
    pub fn volume(&self, name: &str) -> Result<Volume, LibvirtError> {
        let name = name.to_owned();
        let object = self
            .handle
            .call(ANSWER_LIMIT, "find a volume", move |binding, pool| binding.find_volume(pool, &name))?;
        Ok(Volume::new(&self.handle, object))
    }
}

/// A volume. Dropping this value does nothing to it.
#[derive(Debug, Clone)]
pub struct Volume {
    handle: Handle,
}

impl Volume {
    fn new(pool: &Handle, object: Object) -> Self {
        Self { handle: Handle::new(&pool.connection, object) }
    }

    /// Its name in its pool.
    ///
    /// # Errors
    /// libvirt does not say.
    pub fn name(&self) -> Result<String, LibvirtError> {
        self.handle.connection.binding.volume_name(&self.handle.object)
    }

    /// Where it is on the hypervisor's machine.
    ///
    /// # Errors
    /// The connection failed.
    pub fn path(&self) -> Result<String, LibvirtError> {
        self.handle.call(ANSWER_LIMIT, "say where the volume is", Binding::volume_path)
    }

    /// What it is, as XML.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn xml(&self) -> Result<String, LibvirtError> {
        self.handle.call(ANSWER_LIMIT, "describe the volume", Binding::volume_xml)
    }

    /// Removes it.
    ///
    /// # Errors
    /// It is gone or in use, or the connection failed.
    pub fn delete(&self) -> Result<(), LibvirtError> {
        self.handle.call(STORAGE_LIMIT, "delete a volume", Binding::delete_volume)
    }

    /// Fills it with `length` bytes from `source`. It is on the disk of the hypervisor's machine when this returns.
    ///
    /// # Errors
    /// The source ends too early, the volume is too small or full, nothing moves for a minute, the connection failed, or
    /// `on_progress` said no.
    pub fn upload(
        &self,
        source: impl Read + Send + 'static,
        length: u64,
        on_progress: &mut OnUpload<'_>,
    ) -> Result<(), LibvirtError> {
        let (done, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (sender, receiver) = mpsc::channel();
        thread::Builder::new().name("libvirt-upload".into()).spawn({
            let (volume, done, stop) = (self.clone(), Arc::clone(&done), Arc::clone(&stop));
            move || drop(sender.send(volume.send(source, length, &done, &stop)))
        })?;
        let (mut sent, mut moved) = (0, Instant::now());
        loop {
            match receiver.recv_timeout(PROGRESS_INTERVAL) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(LibvirtError::Local("the upload's thread failed".into()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = done.load(Ordering::Relaxed);
            if now != sent {
                (sent, moved) = (now, Instant::now());
            }
            if !on_progress(sent, length) {
                stop.store(true, Ordering::Relaxed);
            }
            if moved.elapsed() > STALL_LIMIT {
                stop.store(true, Ordering::Relaxed);
                return Err(LibvirtError::Late { what: "take more of an upload", limit: STALL_LIMIT });
            }
        }
    }

    fn send(
        &self,
        mut source: impl Read,
        length: u64,
        done: &AtomicU64,
        stop: &AtomicBool,
    ) -> Result<(), LibvirtError> {
        let Handle { connection, object } = &self.handle;
        let binding = connection.binding;
        let stream = binding.stream(&connection.object, true)?;
        binding.upload(object, &stream, length)?;
        let sent = (|| {
            let mut buffer = vec![0; CHUNK_BYTES];
            let mut left = length;
            while left > 0 {
                if stop.load(Ordering::Relaxed) {
                    return Err(LibvirtError::Stopped);
                }
                let count = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
                source.read_exact(&mut buffer[..count])?;
                let mut rest = &buffer[..count];
                while !rest.is_empty() {
                    let taken = binding.send(&stream, rest)?.unwrap_or(0);
                    rest = &rest[taken..];
                }
                left -= count as u64;
                done.store(length - left, Ordering::Relaxed);
            }
            Ok(())
        })();
        match sent {
            Ok(()) => binding.finish(&stream),
            Err(error) => {
                binding.abort(&stream);
                Err(error)
            }
        }
    }
}
