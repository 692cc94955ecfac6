//! What an environment is, in one word.

use std::fmt;
use std::path::PathBuf;

use fluent_uri::UriRef;
use thiserror::Error;
use virtbench_lab::{
    AddressError, DEFAULT_ADAPTER, LibvirtAddress, LibvirtAddressError, NotByLibvirt, SshAddress,
    UmlDiskKind, check_disk,
};
use virtbench_units::{format_bytes, parse_bytes};

use super::cluster::{self, ClusterGuest};
use crate::disks::backing::Backing;
use crate::guests::{GuestOptions, WantedAccelerator};
use crate::setup::{Setup, SetupError};

/// The longest name, in characters: it stands in tables.
const NAME_LIMIT: usize = 40;

/// What is no environment.
#[derive(Debug, Error)]
pub enum UriError {
    /// It begins with none of the schemes.
    #[error(
        "{0:?} is no environment: native:[FOLDER], qemu:[FOLDER]?disk=SETUP&vcpus=N&memory=SIZE, uml:[FOLDER]?disk=KIND&memory=SIZE, ssh://[USER@]HOST[:PORT]/FOLDER, libvirt+URI?pool=NAME&disk=SETUP..., proxmox:HOST?template=NAME..., openstack:CLOUD?flavor=NAME&image=NAME..., or a name from virtbench.toml"
    )]
    Scheme(String),
    /// It is no address.
    #[error("{uri}: {why}")]
    Syntax {
        /// The environment.
        uri: String,
        /// What is wrong.
        why: String,
    },
    /// A machine's address is wrong.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A hypervisor's address is wrong.
    #[error(transparent)]
    Hypervisor(#[from] LibvirtAddressError),
    /// A hypervisor's guest cannot have this disk.
    #[error("{uri}: {source}")]
    NotByLibvirt {
        /// The environment.
        uri: String,
        /// What it cannot have.
        source: NotByLibvirt,
    },
    /// A VM's disk is impossible.
    #[error("{uri}: {source}")]
    Setup {
        /// The environment.
        uri: String,
        /// What is impossible about it.
        source: SetupError,
    },
    /// A name that cannot be one.
    #[error("{0:?} is no name of an environment: up to 40 letters, digits, dots, hyphens and underscores")]
    Name(String),
    /// Two have one name.
    #[error("two environments are called {0}: give them names, as in metal=ssh://...")]
    Twice(String),
    /// A number of machines that cannot be one.
    #[error("{0}: *1 to *64 after an environment says how many machines in a row live in it")]
    Machines(String),
    /// An environment would be empty.
    #[error(
        "there is room for {places} machines in the environments, and {machines} run together: name as many or fewer; \
         with fewer they are taken in turn, with more some would stay empty"
    )]
    Room {
        /// Machines that the environments are named for.
        places: usize,
        /// Machines that there are.
        machines: usize,
    },
    /// There is nothing to compare.
    #[error("{0} environments cannot be compared: give two to eight")]
    Count(usize),
}

/// Where a load is applied.
#[derive(Debug, Clone, PartialEq)]
pub enum EnvironmentUri {
    /// This host.
    Native {
        /// Folder for the test file; the run's own where none is named.
        folder: Option<PathBuf>,
    },
    /// A guest that is booted for it.
    Qemu(Box<QemuUri>),
    /// A guest of User Mode Linux that is booted for it.
    Uml(UmlUri),
    /// A machine that exists.
    Ssh(SshAddress),
    /// A guest on a hypervisor that exists.
    Libvirt(Box<LibvirtUri>),
    /// A VM that is made on a cluster or in a cloud.
    Cluster(Box<ClusterGuest>),
}

/// A guest of User Mode Linux.
#[derive(Debug, Clone, PartialEq)]
pub struct UmlUri {
    /// Folder for its disk; the run's own where none is named.
    pub folder: Option<PathBuf>,
    /// What it sees its disk through.
    pub disk: UmlDiskKind,
    /// Its memory in bytes, where it says.
    pub memory_bytes: Option<u64>,
    /// The processor of this host that it is held to, where it says.
    pub processor: Option<usize>,
}

/// A hypervisor, and what its guest is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct LibvirtUri {
    /// Which hypervisor, and which of its pools.
    pub address: LibvirtAddress,
    /// The guest; its folder is none of this host's.
    pub guest: QemuUri,
}

/// A guest and its disk.
#[derive(Debug, Clone, PartialEq)]
pub struct QemuUri {
    /// Folder for its disk; the run's own where none is named.
    pub folder: Option<PathBuf>,
    /// Its disk.
    pub setup: Setup,
    /// Its virtual processors, where it says.
    pub vcpus: Option<u32>,
    /// Its memory in bytes, where it says.
    pub memory_bytes: Option<u64>,
    /// What executes its instructions, where it says.
    pub accelerator: Option<WantedAccelerator>,
    /// Its kernel, where it says.
    pub kernel: Option<PathBuf>,
}

impl QemuUri {
    /// What the guest is made of, where it does not say so itself like `others`.
    #[must_use]
    pub fn guest(&self, others: &GuestOptions) -> GuestOptions {
        GuestOptions {
            vcpus: self.vcpus.unwrap_or(others.vcpus),
            memory_bytes: self.memory_bytes.unwrap_or(others.memory_bytes),
            kernel: self.kernel.clone().or_else(|| others.kernel.clone()),
            accelerator: self.accelerator.unwrap_or(others.accelerator),
        }
    }
}

impl EnvironmentUri {
    /// Reads `native:[FOLDER]`, `qemu:[FOLDER]?SETTINGS` or `ssh://...`. The settings of a guest are `disk` (as `study
    /// adapters --setup` has it), `vcpus`, `memory`, `accelerator` and `kernel`, joined by `&`.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(UriError::Scheme(text.to_owned()));
        };
        match scheme {
            "native" => {
                let (folder, settings) = parts(text, rest)?;
                match settings.first() {
                    Some((name, _)) => Err(wrong(text, format!("native: takes no {name}"))),
                    None => Ok(Self::Native { folder }),
                }
            }
            "qemu" => qemu(text, rest),
            "uml" => uml(text, rest),
            _ if text.starts_with(LibvirtAddress::PREFIX) => libvirt(text),
            scheme if cluster::SCHEMES.contains(&scheme) => {
                // A password that stands in the address is not repeated.
                let wrong = |why| UriError::Syntax { uri: format!("{scheme}:"), why };
                cluster::parse(text).map(|guest| Self::Cluster(Box::new(guest))).map_err(wrong)
            }
            SshAddress::SCHEME => Ok(Self::Ssh(SshAddress::parse(text)?)),
            _ => Err(UriError::Scheme(text.to_owned())),
        }
    }

    /// What it is called where it was given no name.
    fn own_name(&self) -> String {
        match self {
            Self::Native { .. } => "native".into(),
            Self::Qemu(qemu) => qemu.setup.to_string(),
            Self::Uml(_) => "uml".into(),
            Self::Ssh(address) => address.host().to_owned(),
            Self::Libvirt(libvirt) => libvirt.address.host().unwrap_or("libvirt").to_owned(),
            Self::Cluster(guest) => guest.host().to_owned(),
        }
    }
}

fn wrong(uri: &str, why: impl Into<String>) -> UriError {
    UriError::Syntax { uri: uri.to_owned(), why: why.into() }
}

/// Names and values, in their order.
type Settings = Vec<(String, String)>;

/// The folder, if one is named, and the settings of what follows a scheme.
fn parts(text: &str, rest: &str) -> Result<(Option<PathBuf>, Settings), UriError> {
    let reference = UriRef::parse(rest).map_err(|error| wrong(text, error.to_string()))?;
    let not_utf8 = || wrong(text, "it is not UTF-8");
    let folder = reference.path().decode().to_string().map_err(|_| not_utf8())?;
    let folder = Some(PathBuf::from(&*folder)).filter(|folder| !folder.as_os_str().is_empty());
    let settings = reference.query().into_iter().flat_map(|query| query.split('&')).map(|setting| {
        let setting = setting.decode().to_string().map_err(|_| not_utf8())?;
        let (name, value) =
            setting.split_once('=').ok_or_else(|| wrong(text, format!("{setting} has no value")))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    Ok((folder, settings.collect::<Result<_, UriError>>()?))
}

fn qemu(text: &str, rest: &str) -> Result<EnvironmentUri, UriError> {
    let (folder, settings) = parts(text, rest)?;
    Ok(EnvironmentUri::Qemu(Box::new(guest(text, folder, settings, "qemu: takes no")?)))
}

fn uml(text: &str, rest: &str) -> Result<EnvironmentUri, UriError> {
    let (folder, settings) = parts(text, rest)?;
    let mut uml = UmlUri { folder, disk: UmlDiskKind::VirtioBlk, memory_bytes: None, processor: None };
    for (name, value) in settings {
        match name.as_str() {
            "disk" => {
                let kinds = UmlDiskKind::ALL.map(|(name, _)| name).join(", ");
                uml.disk = UmlDiskKind::find(&value).ok_or_else(|| {
                    wrong(text, format!("disk={value}: QEMU's adapters do not exist there: {kinds}"))
                })?;
            }
            "memory" => uml.memory_bytes = Some(memory(text, &value)?),
            "processor" => {
                let why =
                    || wrong(text, format!("processor={value}: the number of a processor of this host"));
                uml.processor = Some(value.parse().map_err(|_| why())?);
            }
            "vcpus" if value == "1" => {}
            "vcpus" => {
                let why = "a guest of User Mode Linux has one processor, since each crossing into its kernel costs several times \
                           more on two";
                return Err(wrong(text, format!("vcpus={value}: {why}")));
            }
            _ => return Err(wrong(text, format!("uml: takes no {name}: disk, memory, processor"))),
        }
    }
    Ok(EnvironmentUri::Uml(uml))
}

fn memory(text: &str, value: &str) -> Result<u64, UriError> {
    parse_bytes(value).map_err(|error| wrong(text, format!("memory: {error}")))
}

fn libvirt(text: &str) -> Result<EnvironmentUri, UriError> {
    let (address, settings) = LibvirtAddress::parse(text)?;
    let guest = guest(text, None, settings, "libvirt+ and libvirt itself take no")?;
    check_disk(guest.setup.adapter, &guest.setup.settings)
        .map_err(|source| UriError::NotByLibvirt { uri: text.to_owned(), source })?;
    if guest.setup.backing != Backing::Raw {
        let why = format!("{}: a disk in a pool is a raw volume; leave out what follows @", guest.setup);
        return Err(wrong(text, why));
    }
    Ok(EnvironmentUri::Libvirt(Box::new(LibvirtUri { address, guest })))
}

/// A guest with these settings; `takes_no` begins the complaint about an unknown one.
fn guest(
    text: &str,
    folder: Option<PathBuf>,
    settings: Settings,
    takes_no: &str,
) -> Result<QemuUri, UriError> {
    let parsed =
        |setup: &str| Setup::parse(setup).map_err(|source| UriError::Setup { uri: text.to_owned(), source });
    let mut qemu = QemuUri {
        folder,
        setup: parsed(DEFAULT_ADAPTER.name)?,
        vcpus: None,
        memory_bytes: None,
        accelerator: None,
        kernel: None,
    };
    for (name, value) in settings {
        match name.as_str() {
            "disk" => qemu.setup = parsed(&value)?,
            "vcpus" => {
                let vcpus = value.parse().ok().filter(|vcpus| (1..=1024).contains(vcpus));
                qemu.vcpus = Some(
                    vcpus.ok_or_else(|| wrong(text, format!("vcpus={value}: a number from 1 to 1024")))?,
                );
            }
            "memory" => {
                qemu.memory_bytes = Some(memory(text, &value)?);
            }
            "accelerator" => {
                let all = [WantedAccelerator::Auto, WantedAccelerator::Kvm, WantedAccelerator::Tcg];
                let found = all.into_iter().find(|one| one.name() == value);
                let found =
                    found.ok_or_else(|| wrong(text, format!("accelerator={value}: auto, kvm or tcg")))?;
                qemu.accelerator = Some(found);
            }
            "kernel" => qemu.kernel = Some(PathBuf::from(value)),
            _ => {
                let why = format!("{takes_no} {name}: disk, vcpus, memory, accelerator, kernel");
                return Err(wrong(text, why));
            }
        }
    }
    Ok(qemu)
}

/// What a guest says of itself.
fn write_guest(f: &mut fmt::Formatter<'_>, guest: &QemuUri) -> fmt::Result {
    write!(f, "disk={}", guest.setup)?;
    guest.vcpus.map_or(Ok(()), |vcpus| write!(f, "&vcpus={vcpus}"))?;
    guest
        .memory_bytes
        .map_or(Ok(()), |bytes| write!(f, "&memory={}", format_bytes(bytes).replace(' ', "")))?;
    guest.accelerator.map_or(Ok(()), |wanted| write!(f, "&accelerator={}", wanted.name()))?;
    guest.kernel.as_ref().map_or(Ok(()), |kernel| write!(f, "&kernel={}", kernel.display()))
}

impl fmt::Display for EnvironmentUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = |folder: &Option<PathBuf>| {
            folder.as_ref().map_or_else(String::new, |folder| folder.display().to_string())
        };
        match self {
            Self::Native { folder: own } => write!(f, "native:{}", folder(own)),
            Self::Ssh(address) => address.fmt(f),
            Self::Qemu(qemu) => {
                write!(f, "qemu:{}?", folder(&qemu.folder))?;
                write_guest(f, qemu)
            }
            Self::Uml(uml) => {
                write!(f, "uml:{}?disk={}", folder(&uml.folder), uml.disk.name())?;
                uml.memory_bytes
                    .map_or(Ok(()), |bytes| write!(f, "&memory={}", format_bytes(bytes).replace(' ', "")))?;
                uml.processor.map_or(Ok(()), |processor| write!(f, "&processor={processor}"))
            }
            Self::Cluster(guest) => guest.fmt(f),
            Self::Libvirt(libvirt) => {
                write!(f, "{}&", libvirt.address)?;
                write_guest(f, &libvirt.guest)
            }
        }
    }
}

/// An environment under the name that stands in records and tables.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedEnvironment {
    /// Its name.
    pub name: String,
    /// What it is.
    pub uri: EnvironmentUri,
}

impl NamedEnvironment {
    /// Reads `[NAME=]URI`.
    ///
    /// # Errors
    /// The name or the environment is none.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        match text.split_once('=') {
            Some((name, uri)) if !name.contains(':') => Self::new(name, uri),
            _ => {
                let uri = EnvironmentUri::parse(text)?;
                Ok(Self { name: uri.own_name(), uri })
            }
        }
    }

    /// The environment `uri`, called `name`.
    ///
    /// # Errors
    /// The name or the environment is none.
    pub fn new(name: &str, uri: &str) -> Result<Self, UriError> {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        if name.is_empty() || name.len() > NAME_LIMIT || !name.chars().all(letter) {
            return Err(UriError::Name(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), uri: EnvironmentUri::parse(uri)? })
    }

    /// The guest that is booted for it, if there is one.
    #[must_use]
    pub fn guest(&self) -> Option<&QemuUri> {
        match &self.uri {
            EnvironmentUri::Qemu(qemu) => Some(qemu),
            EnvironmentUri::Native { .. }
            | EnvironmentUri::Uml(_)
            | EnvironmentUri::Ssh(_)
            | EnvironmentUri::Libvirt(_)
            | EnvironmentUri::Cluster(_) => None,
        }
    }

    /// Checks that these can be told apart and compared.
    ///
    /// # Errors
    /// There are too few or too many, or two have one name.
    pub fn check(all: &[Self]) -> Result<(), UriError> {
        if !(2..=8).contains(&all.len()) {
            return Err(UriError::Count(all.len()));
        }
        for (index, one) in all.iter().enumerate() {
            if all[..index].iter().any(|other| other.name == one.name) {
                return Err(UriError::Twice(one.name.clone()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn environments_are_read_named_and_shown() {
        for (text, name, shown) in [
            ("native:", "native", "native:"),
            ("here=native:/srv/a%20b", "here", "native:/srv/a b"),
            ("qemu:", "virtio-blk", "qemu:?disk=virtio-blk"),
            (
                "qemu:/srv?disk=nvme,queues=2@qcow2&vcpus=2&memory=512MiB&accelerator=tcg",
                "nvme,queues=2@qcow2",
                "qemu:/srv?disk=nvme,queues=2@qcow2&vcpus=2&memory=512MiB&accelerator=tcg",
            ),
            ("ssh://root@metal/srv?config=x", "metal", "ssh://root@metal/srv"),
            ("a=ssh://metal/srv", "a", "ssh://metal/srv"),
            (
                "libvirt+qemu+ssh://root@hv/system?pool=fast&vcpus=2&memory=192MiB&socket=/x",
                "hv",
                "libvirt+qemu+ssh://root@hv/system?socket=/x&no_tty=1&pool=fast&disk=virtio-blk&vcpus=2&memory=192MiB",
            ),
            ("libvirt+qemu:///system", "libvirt", "libvirt+qemu:///system?pool=default&disk=virtio-blk"),
        ] {
            let named = NamedEnvironment::parse(text).unwrap();
            assert_eq!((named.name.as_str(), named.uri.to_string().as_str()), (name, shown));
        }
    }

    #[test]
    fn what_is_no_environment_is_said() {
        for (text, word) in [
            ("metal", "is no environment"),
            ("docker:x", "is no environment"),
            ("native:?speed=1", "native: takes no speed"),
            ("qemu:?speed=1", "qemu: takes no speed"),
            ("qemu:?vcpus", "vcpus has no value"),
            ("qemu:?vcpus=0", "1 to 1024"),
            ("qemu:?memory=much", "memory"),
            ("qemu:?accelerator=warp", "auto, kvm or tcg"),
            ("qemu:?disk=floppy", "floppy"),
            ("ssh://metal", "names no folder"),
            ("libvirt+qemu", "is no environment"),
            ("libvirt+qemu:system", "no //"),
            ("libvirt+qemu:///system?scoket=/x", "libvirt itself take no scoket"),
            ("libvirt+qemu:///system?disk=nvme", "nvme: libvirt gives"),
            ("libvirt+qemu:///system?disk=virtio-blk@qcow2", "raw volume"),
            ("a b=native:", "is no name"),
        ] {
            let error = NamedEnvironment::parse(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn environments_that_are_compared_have_names_of_their_own() {
        let all = |texts: &[&str]| {
            texts.iter().map(|text| NamedEnvironment::parse(text).unwrap()).collect::<Vec<_>>()
        };
        assert!(NamedEnvironment::check(&all(&["native:", "qemu:"])).is_ok());
        assert!(matches!(NamedEnvironment::check(&all(&["native:"])), Err(UriError::Count(1))));
        assert!(matches!(
            NamedEnvironment::check(&all(&["qemu:", "qemu:?vcpus=2"])),
            Err(UriError::Twice(_))
        ));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(native|qemu|ssh|a=qemu|libvirt.qemu):[-a-z0-9@:/?=&%~,]{0,30}") {
            if let Ok(named) = NamedEnvironment::parse(&text) {
                let _ = named.uri.to_string();
            }
        }
    }
}
