//! A client's memory: what of it is mapped here, under which addresses.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;

use vm_memory::FileOffset;
use vm_memory::mmap::MmapRegion;

use super::wire::WireError;
use crate::guard::{Guard, deaths};

/// Regions that a client may share.
pub const MOST_REGIONS: usize = 64;
/// tmpfs, on which memfds are, and hugetlbfs (`linux/magic.h`): file systems of the kernel's own, whose pages come at
/// once. A page fault on another kind could wait for ever, for a file server of the client's.
const TMPFS: u32 = 0x0102_1994;
const HUGETLBFS: u32 = 0x958_458f6;

/// Mapped memory, by guest-physical address.
#[derive(Debug, Default)]
pub struct Mapped {
    /// Sorted, and apart from each other.
    regions: Vec<Region>,
}

impl Mapped {
    /// Memory at an address: where it is mapped, and how much of `len` bytes is there in one piece. None if nothing is.
    #[inline]
    pub fn piece(&self, address: u64, len: usize) -> Option<(*mut u8, usize)> {
        let index = self.regions.partition_point(|region| region.base <= address).checked_sub(1)?;
        let region = &self.regions[index];
        let into = usize::try_from(address - region.base).ok()?;
        let there = region.mapped.size().checked_sub(into).filter(|there| *there > 0)?;
        // SAFETY: inside the region.
        Some((unsafe { region.mapped.as_ptr().add(into) }, len.min(there)))
    }

    /// `len` bytes at an address, if all of them are there in one piece.
    #[inline]
    pub fn at(&self, address: u64, len: usize) -> Option<*mut u8> {
        self.piece(address, len).filter(|piece| piece.1 == len).map(|piece| piece.0)
    }
}

#[derive(Debug, Clone)]
struct Region {
    /// What keeps accesses to it from ending the process; goes first.
    guard: Arc<Guard>,
    mapped: Arc<MmapRegion<()>>,
    base: u64,
    len: u64,
    /// Where the client itself has it.
    user: u64,
}

/// All that a client has shared.
#[derive(Debug, Clone)]
pub struct ClientMemory {
    regions: Vec<Region>,
    map: Rc<Mapped>,
    /// Deaths among all memory when ours was last found alive.
    deaths: u32,
}

/// Where a region is, as messages say it: guest-physical address, length, the client's own address, offset in the file.
#[derive(Debug, Clone, Copy)]
pub struct RegionAddresses {
    /// Guest-physical address.
    pub base: u64,
    /// Length in bytes.
    pub len: u64,
    /// The client's own address.
    pub user: u64,
    /// Offset in the file.
    pub offset: u64,
}

impl ClientMemory {
    /// None.
    pub fn new() -> Self {
        Self { regions: Vec::new(), map: Rc::default(), deaths: deaths() }
    }

    /// The mapped memory, mapped as long as this is held.
    pub const fn map(&self) -> &Rc<Mapped> {
        &self.map
    }

    /// Whether the client has taken a part of it away.
    #[inline]
    pub fn is_dead(&mut self) -> bool {
        let deaths = deaths();
        if deaths == self.deaths {
            return false;
        }
        let dead = self.regions.iter().any(|region| region.guard.is_dead());
        if !dead {
            self.deaths = deaths;
        }
        dead
    }

    /// Replaces everything.
    ///
    /// # Errors
    /// A region cannot be; nothing has changed.
    pub fn replace(&mut self, regions: Vec<(RegionAddresses, OwnedFd)>) -> Result<(), WireError> {
        let mut new = Self::new();
        for (place, fd) in regions {
            new.regions.push(Region::map(place, fd)?);
        }
        new.rebuild()?;
        *self = new;
        Ok(())
    }

    /// Adds a region.
    ///
    /// # Errors
    /// It cannot be; nothing has changed.
    pub fn add(&mut self, place: RegionAddresses, fd: OwnedFd) -> Result<(), WireError> {
        let mut new = self.clone();
        new.regions.push(Region::map(place, fd)?);
        new.rebuild()?;
        *self = new;
        Ok(())
    }

    /// Takes a region away; what is in flight in it keeps it mapped.
    ///
    /// # Errors
    /// There is no such region.
    pub fn remove(&mut self, place: RegionAddresses) -> Result<(), WireError> {
        let is =
            |region: &Region| (region.base, region.len, region.user) == (place.base, place.len, place.user);
        let at = self.regions.iter().position(is).ok_or(WireError::Malformed("no such region"))?;
        self.regions.remove(at);
        self.rebuild()
    }

    fn rebuild(&mut self) -> Result<(), WireError> {
        if self.regions.len() > MOST_REGIONS {
            return Err(WireError::Malformed("too many regions of memory"));
        }
        self.regions.sort_by_key(|region| region.base);
        if self.regions.windows(2).any(|pair| pair[0].base + pair[0].len > pair[1].base) {
            return Err(WireError::Malformed("regions of memory overlap"));
        }
        self.map = Rc::new(Mapped { regions: self.regions.clone() });
        Ok(())
    }

    /// From an address of the client's own, as rings are given, to a guest-physical one.
    pub fn translate(&self, user: u64) -> Result<u64, WireError> {
        let find = |region: &Region| {
            let into = user.checked_sub(region.user).filter(|into| *into < region.len)?;
            Some(region.base + into)
        };
        self.regions.iter().find_map(find).ok_or(WireError::Malformed("an address outside shared memory"))
    }
}

/// Memory that a client hands over must be of a kind whose pages come at once.
///
/// # Errors
/// It is not.
pub fn check_kind(fd: &OwnedFd) -> Result<(), WireError> {
    let kind = rustix::fs::fstatfs(fd.as_fd()).map_err(WireError::Socket)?.f_type;
    if u32::try_from(kind).is_ok_and(|kind| [TMPFS, HUGETLBFS].contains(&kind)) {
        return Ok(());
    }
    Err(WireError::Malformed("memory that is neither memfd, tmpfs nor hugetlbfs"))
}

impl Region {
    fn map(place: RegionAddresses, fd: OwnedFd) -> Result<Self, WireError> {
        let RegionAddresses { base, len, user, offset } = place;
        let cannot = |_| WireError::Malformed("memory that cannot be mapped");
        check_kind(&fd)?;
        let stat = rustix::fs::fstat(fd.as_fd()).map_err(WireError::Socket)?;
        let end = offset.checked_add(len);
        let inside = end.is_some_and(|end| i64::try_from(end).is_ok_and(|end| end <= stat.st_size));
        let wraps = base.checked_add(len).is_none() || user.checked_add(len).is_none();
        if len == 0 || wraps || !inside {
            return Err(WireError::Malformed("memory that is not there"));
        }
        let size = usize::try_from(len).map_err(|_| WireError::Malformed("memory that cannot be mapped"))?;
        let mapping = MmapRegion::from_file(FileOffset::new(File::from(fd), offset), size).map_err(cannot)?;
        let guard = Guard::new(mapping.as_ptr(), size)
            .map_err(|_| WireError::Malformed("more memory than can be guarded"))?;
        Ok(Self { guard: Arc::new(guard), mapped: Arc::new(mapping), base, len, user })
    }
}
