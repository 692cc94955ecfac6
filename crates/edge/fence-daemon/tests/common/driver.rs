//! A driver of a virtio disk, by way of vhost-user.

#![allow(dead_code, clippy::unwrap_used, missing_docs)]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use vhost::vhost_user::message::VhostUserInflight;
use vhost::vhost_user::{Frontend, VhostUserFrontend, VhostUserProtocolFeatures};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap, MmapRegion};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

const LIMIT: Duration = Duration::from_secs(60);
pub const MEMORY_BYTES: usize = 1 << 20;
pub const SIZE: u16 = 8;
pub const AVAILABLE: u64 = 0x1000;
pub const USED: u64 = 0x2000;
pub const HEADER: u64 = 0x3000;
pub const DATA: u64 = 0x4000;
pub const STATUS: u64 = 0x8000;
pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;

/// A driver with one ring in a memory of its own.
pub struct Client {
    pub frontend: Frontend,
    pub map: GuestMemoryMmap<()>,
    /// What the memory is in.
    pub file: File,
    pub kick: EventFd,
    pub err: EventFd,
    pub available: u16,
    /// What the server keeps account of, if it was asked to.
    inflight: Option<File>,
}

fn memfd() -> File {
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    file.set_len(MEMORY_BYTES as u64).unwrap();
    file
}

impl Client {
    pub fn connect(socket: &Path) -> Self {
        Self::listening(socket, None)
    }

    /// One that keeps account of what is in flight.
    pub fn counting(socket: &Path) -> Self {
        Self::retrying(socket, None, VhostUserProtocolFeatures::INFLIGHT_SHMFD)
    }

    /// One that hears of changes by the other end of `news`.
    pub fn listening(socket: &Path, news: Option<&UnixStream>) -> Self {
        let hears = VhostUserProtocolFeatures::BACKEND_REQ;
        Self::retrying(socket, news, if news.is_some() { hears } else { VhostUserProtocolFeatures::empty() })
    }

    fn retrying(socket: &Path, news: Option<&UnixStream>, wants: VhostUserProtocolFeatures) -> Self {
        let begun = Instant::now();
        loop {
            match Self::attempt(socket, news, wants) {
                Ok(client) => return client,
                // The one before has not been seen off yet.
                Err(error) => assert!(begun.elapsed() < LIMIT, "{error}"),
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn attempt(
        socket: &Path,
        news: Option<&UnixStream>,
        wants: VhostUserProtocolFeatures,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let mut frontend = Frontend::connect(socket, 1)?;
        frontend.set_owner()?;
        frontend.set_features(frontend.get_features()?)?;
        let protocol = frontend.get_protocol_features()?;
        frontend.set_protocol_features(protocol & (VhostUserProtocolFeatures::CONFIG | wants))?;
        let mut account = None;
        if wants.contains(VhostUserProtocolFeatures::INFLIGHT_SHMFD) {
            let (inflight, file) = frontend.get_inflight_fd(&VhostUserInflight::new(0, 0, 1, SIZE))?;
            frontend.set_inflight_fd(&inflight, file.as_raw_fd())?;
            account = Some(file);
        }
        if let Some(news) = news {
            frontend.set_backend_request_fd(news)?;
        }
        let file = memfd();
        let region = MmapRegion::<()>::from_file(FileOffset::new(file.try_clone()?, 0), MEMORY_BYTES)?;
        let base = region.as_ptr() as u64;
        let region = vm_memory::GuestRegionMmap::new(region, GuestAddress(0)).unwrap();
        let map = GuestMemoryMmap::from_regions(vec![region])?;
        frontend.set_mem_table(&[VhostUserMemoryRegionInfo {
            guest_phys_addr: 0,
            memory_size: MEMORY_BYTES as u64,
            userspace_addr: base,
            mmap_offset: 0,
            mmap_handle: file.as_raw_fd(),
        }])?;
        let (kick, call, err) =
            (EventFd::new(EFD_NONBLOCK)?, EventFd::new(EFD_NONBLOCK)?, EventFd::new(EFD_NONBLOCK)?);
        frontend.set_vring_num(0, SIZE)?;
        frontend.set_vring_base(0, 0)?;
        frontend.set_vring_addr(
            0,
            &VringConfigData {
                queue_max_size: SIZE,
                queue_size: SIZE,
                flags: 0,
                desc_table_addr: base,
                used_ring_addr: base + USED,
                avail_ring_addr: base + AVAILABLE,
                log_addr: None,
            },
        )?;
        frontend.set_vring_err(0, &err)?;
        frontend.set_vring_call(0, &call)?;
        frontend.set_vring_kick(0, &kick)?;
        frontend.set_vring_enable(0, true)?;
        Ok(Self { frontend, map, file, kick, err, available: 0, inflight: account })
    }

    pub fn describe(&self, at: u64, table: &[(u64, u32, u16, u16)]) {
        for (place, (address, len, flags, next)) in table.iter().enumerate() {
            let descriptor = Descriptor::new(*address, *len, *flags, *next);
            self.map.write_obj(descriptor, GuestAddress(at + place as u64 * 16)).unwrap();
        }
    }

    /// Makes a head available, and `more` that are not there.
    pub fn offer(&mut self, head: u16, more: u16) {
        let place = u64::from(self.available % SIZE);
        self.map.write_obj(head, GuestAddress(AVAILABLE + 4 + place * 2)).unwrap();
        self.available = self.available.wrapping_add(1 + more);
        self.map.store(self.available, GuestAddress(AVAILABLE + 2), Ordering::Release).unwrap();
        self.kick.write(1).unwrap();
    }

    pub fn used(&self) -> u16 {
        self.map.load(GuestAddress(USED + 2), Ordering::Acquire).unwrap()
    }

    /// Makes a request of this type available.
    pub fn begin(&mut self, kind: u32, sector: u64) {
        self.map.write_obj(kind, GuestAddress(HEADER)).unwrap();
        self.map.write_obj(sector, GuestAddress(HEADER + 8)).unwrap();
        self.map.write_obj(0xffu8, GuestAddress(STATUS)).unwrap();
        let data = if kind == 1 { 0 } else { WRITE };
        self.describe(0, &[(HEADER, 16, NEXT, 1), (DATA, 4096, NEXT | data, 2), (STATUS, 1, WRITE, 0)]);
        self.offer(0, 0);
    }

    /// A request of this type and its status.
    pub fn ask(&mut self, kind: u32, sector: u64) -> u8 {
        let before = self.used();
        self.begin(kind, sector);
        let begun = Instant::now();
        while self.used() == before {
            assert!(begun.elapsed() < LIMIT, "no answer");
            thread::yield_now();
        }
        self.map.read_obj(GuestAddress(STATUS)).unwrap()
    }

    /// Waits until the server has taken the first head.
    pub fn is_taken(&self) {
        let begun = Instant::now();
        let mut taken = [0];
        while taken == [0] {
            assert!(begun.elapsed() < LIMIT, "nothing is taken");
            // Behind the header of the only ring.
            self.inflight.as_ref().unwrap().read_exact_at(&mut taken, 16).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn hears_of_an_error(&self) {
        let begun = Instant::now();
        while self.err.read().is_err() {
            assert!(begun.elapsed() < LIMIT, "the ring goes on");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
