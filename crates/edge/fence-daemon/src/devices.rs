//! The devices of a configuration, open and locked.

use std::fs::File;

use virtbench_fence::{Config as FenceConfig, ConfigError, Device, DiskConfig};

use crate::config::{Built, Config, DeviceSpec, DeviceTable};
use crate::device::{Backend, DeviceError, Facts, FaultyBackend, Opened, open};
use crate::serve_error::ServeError;

/// What carries out I/O, by [`Device::index`].
pub(crate) type Backends = [Option<Box<dyn Backend>>; 2];

/// Devices of a configuration, open and locked, by [`Device::index`].
pub(crate) struct Devices {
    pub(crate) home: Built,
    pub(crate) facts: [Option<Facts>; 2],
    files: [Option<File>; 2],
    names: [String; 2],
}

impl Devices {
    /// The files, and what carries out I/O on them.
    pub(crate) fn open(config: &Config) -> Result<(Self, Backends), ServeError> {
        let home = config.home().unwrap_or(Built::Slow);
        let (slow, fast) = match home {
            Built::Slow => (config.slow.as_ref(), None),
            Built::Fast => (None, config.fast.as_ref()),
            Built::Cached { .. } => (config.slow.as_ref(), config.fast.as_ref()),
        };
        let one = |device, table: Option<&DeviceTable>| {
            let Some(table) = table else { return Ok(None) };
            let Opened { backend, file } = open(device, &table.device)?;
            let backend = FaultyBackend::before(backend, device, table.fault.as_ref(), &config.disks);
            Ok::<_, DeviceError>(Some(Opened { backend, file }))
        };
        let mut opened = [one(Device::Slow, slow)?, one(Device::Fast, fast)?];
        let name = |table: Option<&DeviceTable>| {
            table.map_or_else(String::new, |table| match &table.device {
                DeviceSpec::Null { .. } => table.device.to_string(),
                spec => spec.path().map_or_else(String::new, |path| path.display().to_string()),
            })
        };
        let facts = [0, 1].map(|index: usize| opened[index].as_ref().map(|opened| opened.backend.facts()));
        let files = opened.each_mut().map(|opened| opened.as_mut()?.file.take());
        let backends = opened.map(|opened| opened.map(|opened| opened.backend));
        Ok((Self { home, facts, files, names: [name(slow), name(fast)] }, backends))
    }

    /// The device that virtual disks live on.
    pub(crate) const fn home_index(&self) -> usize {
        match self.home {
            Built::Slow | Built::Cached { .. } => 0,
            Built::Fast => 1,
        }
    }

    pub(crate) fn file(&self, index: usize) -> Option<(&File, &str)> {
        let file = self.files[index].as_ref()?;
        Some((file, &self.names[index]))
    }

    pub(crate) fn fence(
        &self,
        config: &Config,
        disks: Vec<DiskConfig>,
        cache: [u8; 16],
    ) -> Result<FenceConfig, ConfigError> {
        config.fence_of(self.home, self.sizes(), disks, cache)
    }

    /// In bytes; zero for one that is not there.
    pub(crate) fn sizes(&self) -> [u64; 2] {
        self.facts.map(|facts| facts.map_or(0, |facts| facts.size_bytes))
    }
}
