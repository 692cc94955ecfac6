//! `fence drain`: what the cache alone has comes to the disks, and the cache is empty: the device that disks live on can then
//! be served without it, or with another.
//!
//! Everything is stable on the disks before the cache becomes [another, empty one](crate::attach::successor), and that
//! before the label says that the device has everything itself; the same command completes what a crash has cut off.

use std::fs::File;

use virtbench_fence::Backing;
use virtbench_fence::cache::{CacheConfig, origin, resized};

use super::format::{check_empty, empty_cache};
use super::held::{self, GivenUp, Held, Moved, read_what_can_be};
use super::resize::home_of;
use super::resize_error::ResizeError;
use crate::attach;
use crate::attach_error::AttachError;
use crate::cache_metadata::{SUPERBLOCKS_BYTES, carry_out, superblocks, unreadable as unreadable_metadata};
use crate::config::Config;
use crate::devices::Devices;
use crate::label::{Cached, Label, LabelError};
use crate::memory_log;
use crate::serve_error::ServeError;

/// What became of a cache.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drained {
    /// Blocks that were written to the disks.
    pub written: u64,
    /// What only the cache had and does not give: the disks go on with what they had before.
    pub given_up: Vec<GivenUp>,
    /// Where something may be missing that nobody can name.
    pub doubts: Vec<String>,
    /// Why there was nothing to be had, and the cache was given up as a whole: it is another one or an older copy, or none
    /// is there.
    pub anew: Option<String>,
}

/// Writes what the cache alone has to the disks and leaves it empty. With `give_up`, blocks that are damaged or cannot be
/// read are given up, by name; as a whole, only a cache that is another one, an older copy or not there.
///
/// # Errors
/// Something would be given up; or the devices cannot be used or are being served. A device that fails at a write or is
/// full makes nothing be given up: the same command completes it once the device works.
pub fn drain(config: &Config, give_up: bool) -> Result<Drained, ResizeError> {
    let (devices, _backends) = Devices::open(config)?;
    let (file, device) = home_of(&devices)?;
    let label = Label::read(file, device)?.ok_or_else(|| LabelError::None { device: device.to_owned() })?;
    label.check(config, device)?;
    let fence = devices.fence(config, label.place(config), crate::identity::random_uuid()?);
    let fence = fence.map_err(ServeError::from)?;
    let home = (file, device);
    match (&fence.backing, devices.file(1)) {
        (Backing::Cached(cache), Some(fast)) => {
            Drain { config, fence: &fence, cache, label, home, fast }.carry_out(give_up)
        }
        _ => without(&label, home, give_up),
    }
}

/// No cache is there.
fn without(label: &Label, (file, device): (&File, &str), give_up: bool) -> Result<Drained, ResizeError> {
    match attach::alone(label, file, device) {
        Err(error @ ServeError::Attach(AttachError::LeftOut { .. })) if give_up => {
            label.followed_by(Cached::Nothing, file, device)?;
            Ok(Drained { anew: Some(error.to_string()), ..Drained::default() })
        }
        done => Ok(done.map(|()| Drained::default())?),
    }
}

/// Whether a cache has nothing that belongs to these disks as they are.
const fn is_another(error: &ResizeError) -> bool {
    matches!(error, ResizeError::Serve(ServeError::Attach(_)) | ResizeError::OfOtherDisks { .. })
}

struct Drain<'a> {
    config: &'a Config,
    fence: &'a virtbench_fence::Config,
    cache: &'a CacheConfig,
    label: Label,
    home: (&'a File, &'a str),
    fast: (&'a File, &'a str),
}

impl Drain<'_> {
    fn carry_out(self, give_up: bool) -> Result<Drained, ResizeError> {
        let (fast, name) = self.fast;
        let nothing = matches!(self.label.cached, Cached::Nothing | Cached::Unknown);
        let (superblocks, unreadable) = read_what_can_be(fast, 0, SUPERBLOCKS_BYTES);
        let known = origin(&superblocks).is_ok();
        if let (false, Some(_)) = (known, unreadable) {
            let source = std::io::Error::from_raw_os_error(libc::EIO);
            return Err(unreadable_metadata(name, source).into());
        }
        if nothing && !known {
            // A device that was never a cache becomes one.
            let empty = check_empty(self.config, fast, name);
            empty.or_else(|error| if give_up { Ok(()) } else { Err(error) })?;
            self.begin_anew()?;
            return Ok(Drained::default());
        }
        match self.write_back(give_up, &superblocks) {
            Ok((Moved { written, given_up }, doubts)) => {
                self.let_go()?;
                Ok(Drained { written, given_up, doubts, anew: None })
            }
            Err(error) if give_up && is_another(&error) => {
                self.begin_anew()?;
                Ok(Drained { anew: Some(error.to_string()), ..Drained::default() })
            }
            Err(error) => Err(error),
        }
    }

    fn write_back(&self, give_up: bool, superblocks: &[u8]) -> Result<(Moved, Vec<String>), ResizeError> {
        let ((file, device), (fast, name)) = (self.home, self.fast);
        let held = Held { file, fast, name, label: &self.label, config: self.config, memory: None };
        if !give_up {
            held::check(&self.label, device, self.fast, &self.config.cache.memory)?;
            return Ok((held.write_back(&held.inspect()?, false)?, Vec::new()));
        }
        let found = attach::find(Some((&self.label, device)), name, superblocks)?;
        memory_log::check_place(self.label.memory.as_ref(), &self.config.cache.memory, superblocks)
            .map_err(ServeError::from)?;
        attach::check(&self.label, [device, name], &found, || {
            Ok(held.salvage(superblocks).is_ok_and(|(found, _)| attach::is_empty(&found)))
        })?;
        let (found, doubts) = held.salvage(superblocks)?;
        Ok((held.write_back(&found, true)?, doubts))
    }

    /// Everything is on the disks.
    fn let_go(&self) -> Result<(), ResizeError> {
        let (fast, name) = self.fast;
        let blocks = superblocks(fast, name)?;
        let failed = |source| ServeError::Cache { device: name.to_owned(), source };
        let before = origin(&blocks).map_err(failed)?;
        let cache = CacheConfig { uuid: attach::successor(&before), ..self.cache.clone() };
        let write = resized(self.fence, &cache, &blocks).map_err(failed)?;
        let then = Label { cached: Cached::Nothing, ..self.label.clone() };
        attach::advance(&self.label, then, self.home, &before, || {
            carry_out(fast, name, &write)?;
            memory_log::forget(&self.config.cache.memory, &blocks);
            Ok(())
        })
    }

    /// What was there is given up, or nothing was.
    fn begin_anew(&self) -> Result<(), ResizeError> {
        let (file, device) = self.home;
        self.label.followed_by(Cached::Nothing, file, device)?;
        Ok(empty_cache(self.config, self.fence, self.cache, self.fast)?)
    }
}
