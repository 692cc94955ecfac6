//! `fence drain`: what the cache alone has comes to the disks, and the cache is empty: the device that disks live on can then
//! be served without it, or with another.
//!
//! Everything is stable on the disks before the cache becomes [another, empty one](crate::attach::successor), and that
//! before the label says that the device has everything itself; the same command completes what a crash has cut off.

use std::fs::File;

use virtbench_fence::Backing;
use virtbench_fence::cache::{CacheConfig, origin, resized};

use super::format::{check_empty, empty_cache};
use super::held::{self, Held, Moved};
use super::resize::home_of;
use super::resize_error::ResizeError;
use crate::attach;
use crate::attach_error::AttachError;
use crate::cache_metadata::{carry_out, superblocks};
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
    /// Blocks that only the cache had and that are damaged: the disks go on with what they had before.
    pub damaged: u64,
    /// Why nothing of the cache was believed, and all of it given up.
    pub given_up: Option<String>,
}

/// Writes what the cache alone has to the disks and leaves it empty. What cannot be believed is given up with `give_up`; so
/// is a cache that is not configured.
///
/// # Errors
/// Something would be given up; or the devices cannot be used or are being served.
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
            Ok(Drained { given_up: Some(error.to_string()), ..Drained::default() })
        }
        done => Ok(done.map(|()| Drained::default())?),
    }
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
        if nothing && origin(&superblocks(fast, name)?).is_err() {
            // A device that was never a cache becomes one.
            let empty = check_empty(self.config, fast, name);
            empty.or_else(|error| if give_up { Ok(()) } else { Err(error) })?;
            self.begin_anew()?;
            return Ok(Drained::default());
        }
        match self.write_back(give_up) {
            Ok(Moved { written, damaged }) => {
                self.let_go()?;
                Ok(Drained { written, damaged, given_up: None })
            }
            Err(error) if give_up => {
                self.begin_anew()?;
                Ok(Drained { given_up: Some(error.to_string()), ..Drained::default() })
            }
            Err(error) => Err(error),
        }
    }

    fn write_back(&self, give_up: bool) -> Result<Moved, ResizeError> {
        let ((file, device), (fast, name)) = (self.home, self.fast);
        held::check(&self.label, device, self.fast, &self.config.cache.memory)?;
        let held = Held { file, fast, name, label: &self.label, config: self.config };
        held.write_back(&held.inspect()?, give_up)
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
