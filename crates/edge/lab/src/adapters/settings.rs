//! What can be set about a guest's disk, and which combinations make no sense.

use std::collections::BTreeMap;

use thiserror::Error;

use super::table::Adapter;

/// How QEMU hands a guest's I/O to the host's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aio {
    /// io_uring.
    IoUring,
    /// Linux's older asynchronous I/O.
    Native,
    /// A pool of threads.
    Threads,
}

impl Aio {
    /// QEMU's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Native => "native",
            Self::Threads => "threads",
        }
    }
}

/// What lies between a guest's write and the storage, in QEMU's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Past the host's page cache; the guest flushes.
    None,
    /// Through the host's page cache; the guest flushes.
    Writeback,
    /// Through the host's page cache; each write is on the storage before it completes.
    Writethrough,
    /// Past the host's page cache; each write is on the storage before it completes.
    Directsync,
}

impl Cache {
    const ALL: [Self; 4] = [Self::None, Self::Writeback, Self::Writethrough, Self::Directsync];

    /// QEMU's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Writeback => "writeback",
            Self::Writethrough => "writethrough",
            Self::Directsync => "directsync",
        }
    }

    /// Whether the host's page cache is passed by (O_DIRECT).
    #[must_use]
    pub fn is_direct(self) -> bool {
        matches!(self, Self::None | Self::Directsync)
    }

    /// Whether a write may complete before it is on the storage: the guest sees a write-back cache.
    #[must_use]
    pub fn acknowledges_early(self) -> bool {
        matches!(self, Self::None | Self::Writeback)
    }
}

/// A setting that cannot be had.
#[derive(Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum SettingError {
    /// No setting of this name.
    #[error(
        "there is no setting {name:?}: choose from queues=N, depth=N, iothread=on|off, \
         cache=none|writeback|writethrough|directsync, aio=io_uring|native|threads, packed=on|off"
    )]
    Unknown {
        /// What was written.
        name: String,
    },
    /// A value that is none of those possible.
    #[error("{name}={value} makes no sense: {expected}")]
    Value {
        /// The setting.
        name: &'static str,
        /// What was written.
        value: String,
        /// What is possible.
        expected: String,
    },
    /// A setting given twice.
    #[error("{name} is set twice: leave one out")]
    Twice {
        /// The setting.
        name: String,
    },
    /// The adapter does not have it.
    #[error("{adapter} takes no {name}: leave it out; {adapter} takes {}", takes.join(", "))]
    NotAccepted {
        adapter: &'static str,
        /// The setting.
        name: &'static str,
        /// What it takes.
        takes: Vec<&'static str>,
    },
    /// Two settings that exclude each other.
    #[error("{adapter}: {what}; {mend}")]
    Combination {
        adapter: &'static str,
        /// What does not go together, and why.
        what: String,
        /// What would.
        mend: String,
    },
}

/// What is set about a guest's disk; the rest is as it comes: the adapter's own defaults, `cache=none`
/// and `aio=io_uring`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskSettings {
    /// Queues of the adapter.
    pub queues: Option<u32>,
    /// Requests that a queue, or the device, takes at once.
    pub depth: Option<u32>,
    /// Whether a thread of its own does the I/O.
    pub iothread: Option<bool>,
    /// The cache mode.
    pub cache: Option<Cache>,
    /// How I/O reaches the host's kernel.
    pub aio: Option<Aio>,
    /// Whether virtio's rings are packed.
    pub packed: Option<bool>,
}

impl DiskSettings {
    /// Reads `name=value,name=value`; nothing is set by an empty text.
    ///
    /// # Errors
    /// An unknown name or value, or a name given twice.
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        let mut settings = Self::default();
        let mut seen = Vec::new();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            if seen.contains(&name) {
                return Err(SettingError::Twice { name: name.to_owned() });
            }
            seen.push(name);
            settings.set(name, value)?;
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        match name {
            "queues" => self.queues = Some(number("queues", value)?),
            "depth" => self.depth = Some(number("depth", value)?),
            "iothread" => self.iothread = Some(switch("iothread", value)?),
            "packed" => self.packed = Some(switch("packed", value)?),
            "cache" => self.cache = Some(choice("cache", value, &Cache::ALL, Cache::name)?),
            "aio" => {
                let all = [Aio::IoUring, Aio::Native, Aio::Threads];
                self.aio = Some(choice("aio", value, &all, Aio::name)?);
            }
            _ => return Err(SettingError::Unknown { name: name.to_owned() }),
        }
        Ok(())
    }

    /// The cache mode in force.
    #[must_use]
    pub fn cache(&self) -> Cache {
        self.cache.unwrap_or(Cache::None)
    }

    /// The kind of I/O in force.
    #[must_use]
    pub fn aio(&self) -> Aio {
        self.aio.unwrap_or(Aio::IoUring)
    }

    /// Has another way take io_uring's place, which does not work everywhere: native I/O, or threads where the page cache is in
    /// its way. Answers which; nothing where io_uring was not to be used.
    pub(crate) fn replace_io_uring(&mut self) -> Option<Aio> {
        let other = if self.cache().is_direct() { Aio::Native } else { Aio::Threads };
        (self.aio() == Aio::IoUring).then(|| *self.aio.insert(other))
    }

    /// What is set, by name.
    #[must_use]
    pub fn named(&self) -> BTreeMap<String, String> {
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        [
            ("queues", self.queues.map(|value| value.to_string())),
            ("depth", self.depth.map(|value| value.to_string())),
            ("iothread", self.iothread.map(switch)),
            ("cache", self.cache.map(|cache| cache.name().to_owned())),
            ("aio", self.aio.map(|aio| aio.name().to_owned())),
            ("packed", self.packed.map(switch)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
    }

    /// Whether `adapter` can have these settings, as far as its table and QEMU's rules say.
    ///
    /// # Errors
    /// The first setting it cannot have.
    pub fn check(&self, adapter: &Adapter) -> Result<(), SettingError> {
        let accepts = &adapter.accepts;
        for (name, set, taken) in [
            ("queues", self.queues.is_some(), accepts.queues.is_some()),
            ("depth", self.depth.is_some(), accepts.depth.is_some()),
            ("iothread", self.iothread == Some(true), accepts.iothread),
            ("packed", self.packed == Some(true), accepts.packed),
        ] {
            if set && !taken {
                return Err(SettingError::NotAccepted {
                    adapter: adapter.name,
                    name,
                    takes: taken_by(adapter),
                });
            }
        }
        let limit = |name, value: Option<u32>, most: u32| match value {
            Some(value) if value > most => Err(SettingError::Value {
                name,
                value: value.to_string(),
                expected: format!("{} takes at most {most}", adapter.name),
            }),
            _ => Ok(()),
        };
        limit("queues", self.queues, adapter.limits.queues)?;
        limit("depth", self.depth, adapter.limits.depth)?;
        if let Some(depth) =
            self.depth.filter(|depth| accepts.depth_is_power_of_two && !depth.is_power_of_two())
        {
            let expected = format!("the depth of {} is a power of two", adapter.name);
            return Err(SettingError::Value { name: "depth", value: depth.to_string(), expected });
        }
        if self.aio == Some(Aio::Native) && !self.cache().is_direct() {
            return Err(SettingError::Combination {
                adapter: adapter.name,
                what: format!(
                    "aio=native and cache={} exclude each other, since native I/O passes by the page cache",
                    self.cache().name()
                ),
                mend: "use cache=none or cache=directsync, or aio=io_uring".into(),
            });
        }
        Ok(())
    }
}

fn taken_by(adapter: &Adapter) -> Vec<&'static str> {
    let accepts = &adapter.accepts;
    [
        ("queues", accepts.queues.is_some()),
        ("depth", accepts.depth.is_some()),
        ("iothread", accepts.iothread),
        ("packed", accepts.packed),
        ("cache", true),
        ("aio", true),
    ]
    .into_iter()
    .filter_map(|(name, taken)| taken.then_some(name))
    .collect()
}

fn number(name: &'static str, value: &str) -> Result<u32, SettingError> {
    value.parse().ok().filter(|number| *number > 0).ok_or_else(|| SettingError::Value {
        name,
        value: value.to_owned(),
        expected: "it is a number from 1".into(),
    })
}

fn switch(name: &'static str, value: &str) -> Result<bool, SettingError> {
    choice(name, value, &[true, false], |on| if on { "on" } else { "off" })
}

fn choice<T: Copy>(
    name: &'static str,
    value: &str,
    all: &[T],
    named: fn(T) -> &'static str,
) -> Result<T, SettingError> {
    all.iter().copied().find(|one| named(*one) == value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| named(*one)).collect();
        SettingError::Value {
            name,
            value: value.to_owned(),
            expected: format!("it is {}", names.join(" or ")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::find_adapter;
    use super::*;
    use proptest::prelude::*;

    fn checked(adapter: &str, text: &str) -> Result<DiskSettings, SettingError> {
        let settings = DiskSettings::parse(text)?;
        settings.check(find_adapter(adapter).unwrap())?;
        Ok(settings)
    }

    #[test]
    fn what_is_written_comes_back_by_name() {
        let settings =
            checked("virtio-blk", "queues=2,depth=64,iothread=on,cache=writeback,packed=off").unwrap();
        let named: Vec<String> =
            settings.named().iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(named, ["cache=writeback", "depth=64", "iothread=on", "packed=off", "queues=2"]);
        assert_eq!((settings.cache(), settings.aio()), (Cache::Writeback, Aio::IoUring));
    }

    #[test]
    fn impossible_ones_are_named() {
        for (adapter, text, word) in [
            ("virtio-blk", "speed=9", "no setting \"speed\""),
            ("virtio-blk", "queues=0", "queues=0"),
            ("virtio-blk", "queues=2000", "at most 1024"),
            ("virtio-blk", "depth=100", "power of two"),
            ("virtio-blk", "cache=unsafe", "none or writeback"),
            ("virtio-blk", "queues=1,queues=2", "set twice"),
            ("virtio-blk", "aio=native,cache=writeback", "exclude each other"),
            ("nvme", "packed=on", "nvme takes no packed"),
            ("nvme", "queues=65", "at most 64"),
            ("ide", "depth=2", "ide takes no depth"),
            ("mptsas1068", "iothread=on", "takes no iothread"),
        ] {
            let message = checked(adapter, text).unwrap_err().to_string();
            assert!(message.contains(word), "{adapter} {text}: {message}");
        }
    }

    #[test]
    fn io_can_be_native_past_the_page_cache() {
        checked("nvme", "aio=native,cache=directsync").unwrap();
        checked("ahci", "aio=threads,cache=writethrough").unwrap();
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z=,0-9]{0,40}") {
            let _ = DiskSettings::parse(&text);
        }
    }
}
