//! Environments that can be started, with all that they need on this host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use virtbench_lab::{
    BOOT_LIMIT, Environment, Filesystem, GuestImage, LabError, Libvirt, LibvirtGuest, Native, Ssh, Uml,
    UmlConfig, UmlDisk, UmlImage, UmlKernel, find_kernel, require_descriptors, uml_processor,
    usable_processors,
};

use super::cluster;
use super::uri::{EnvironmentUri, LibvirtUri, NamedEnvironment, QemuUri, UmlUri};
use crate::disks::disk::{Contents, StudyFolder};
use crate::disks::images::Images;
use crate::guests::{Extras, GuestOptions, Guests};
use crate::runner::prerequisites::check_tools;
use crate::setup::Setup;
use crate::study_error::StudyError;

/// Environments whose programs, kernels and images were found, before anything is made.
pub struct FoundEnvironments<'e> {
    named: &'e [NamedEnvironment],
    /// What their disks have at first.
    contents: Contents,
    /// Of each guest, in order.
    guests: Vec<Guests>,
    /// Of each guest of a hypervisor, in order.
    far_guests: Vec<LibvirtGuest>,
    /// Of each guest of User Mode Linux, in order: what it boots, and what it is made of but for its disk.
    uml_guests: Vec<(UmlImage, UmlConfig)>,
}

impl<'e> FoundEnvironments<'e> {
    /// Looks for what the guests among them need, which are like `others` where they do not say so themselves. `remark` is
    /// told what takes long.
    ///
    /// # Errors
    /// Something is missing.
    pub fn find(
        named: &'e [NamedEnvironment],
        others: &GuestOptions,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Self, StudyError> {
        Self::find_with(named, others, Contents::Written, remark)
    }

    /// The same with other contents of their disks. With a file system, which guests get, others work in a folder.
    ///
    /// # Errors
    /// Something is missing.
    pub fn find_with(
        named: &'e [NamedEnvironment],
        others: &GuestOptions,
        contents: Contents,
        remark: &mut dyn FnMut(&str),
    ) -> Result<Self, StudyError> {
        let filesystem = if let Contents::Empty(filesystem) = contents { filesystem } else { None };
        let extras = Extras { filesystems: filesystem.as_slice(), carried: &[] };
        require_descriptors(named.len()).map_err(|error| StudyError::Environment(error.into()))?;
        let all: Vec<&QemuUri> = named.iter().filter_map(NamedEnvironment::guest).collect();
        check_tools(&all.iter().map(|qemu| qemu.setup.clone()).collect::<Vec<_>>())?;
        let guests = all
            .into_iter()
            .map(|qemu| Guests::of_qemu(&qemu.guest(others), &[qemu.setup.adapter], extras, remark));
        let guests = guests.collect::<Result<_, _>>()?;
        let far = named.iter().filter_map(|environment| match &environment.uri {
            EnvironmentUri::Libvirt(_) if filesystem.is_some() => {
                let why = format!(
                    "{}: a guest of a hypervisor has a disk without a file system: leave out workloads on files, or \
                     reach a guest of yours by ssh://",
                    environment.name
                );
                Some(Err(StudyError::input(why)))
            }
            EnvironmentUri::Libvirt(libvirt) => Some(far_guest(libvirt, others)),
            _ => None,
        });
        let far_guests = far.collect::<Result<_, _>>()?;
        let uml = named.iter().filter_map(|environment| match &environment.uri {
            EnvironmentUri::Uml(uml) => Some(uml_guest(uml, filesystem, others)),
            _ => None,
        });
        Ok(Self { named, contents, guests, far_guests, uml_guests: uml.collect::<Result<_, _>>()? })
    }

    /// Each by itself, so that none shares a disk with another.
    pub(crate) fn singly(self) -> Vec<Self> {
        let (mut guests, mut far_guests) = (self.guests.into_iter(), self.far_guests.into_iter());
        let mut uml_guests = self.uml_guests.into_iter();
        let each = self.named.chunks(1).map(|one| {
            let is_far = one.iter().any(|named| matches!(named.uri, EnvironmentUri::Libvirt(_)));
            let is_uml = one.iter().any(|named| matches!(named.uri, EnvironmentUri::Uml(_)));
            let is_guest = one.iter().any(|named| named.guest().is_some());
            Self {
                named: one,
                contents: self.contents,
                guests: guests.by_ref().take(usize::from(is_guest)).collect(),
                far_guests: far_guests.by_ref().take(usize::from(is_far)).collect(),
                uml_guests: uml_guests.by_ref().take(usize::from(is_uml)).collect(),
            }
        });
        each.collect()
    }

    /// Makes their disks of `size_bytes`: in `folder`, for those of this host that name no other, for the run `run_name`.
    /// `on_progress` is told what is made, bytes written, and bytes in all.
    ///
    /// # Errors
    /// A disk cannot be made, or `stop` was set.
    pub fn make(
        &self,
        (folder, run_name): (&Path, &str),
        size_bytes: u64,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<MadeEnvironments, StudyError> {
        let mut disks = BTreeMap::new();
        for (place, setups) in self.setups(folder) {
            let images =
                Images::prepare(&place, run_name, &setups, size_bytes, self.contents, stop, on_progress)?;
            disks.insert(place, images);
        }
        let (mut guests, mut far_guests) = (self.guests.iter(), self.far_guests.iter());
        let mut uml_guests = self.uml_guests.iter();
        // The next disk of each folder: they were made in the environments' order.
        let mut taken: BTreeMap<&Path, usize> = BTreeMap::new();
        let (mut environments, mut folders) = (Vec::<Box<dyn Environment>>::new(), Vec::new());
        for NamedEnvironment { name, uri } in self.named {
            let missing = || StudyError::NoMachine(name.clone());
            environments.push(match uri {
                EnvironmentUri::Ssh(address) if self.has_files() => {
                    Box::new(Ssh::for_files(name, address.clone()))
                }
                EnvironmentUri::Native { folder: own } if self.has_files() => {
                    let files =
                        StudyFolder::make(own.as_deref().unwrap_or(folder), &format!("{run_name}-{name}"))?;
                    let path = files.path().to_owned();
                    folders.push(files);
                    Box::new(Native::new(name, path))
                }
                EnvironmentUri::Ssh(address) => Box::new(Ssh::new(name, address.clone(), size_bytes)),
                EnvironmentUri::Cluster(guest) => {
                    cluster::environment(name, guest, (!self.has_files()).then_some(size_bytes))
                }
                EnvironmentUri::Libvirt(libvirt) => {
                    let guest = far_guests.next().ok_or_else(missing)?.clone();
                    let made = Libvirt::prepare(name, &libvirt.address, guest, size_bytes, stop, on_progress);
                    Box::new(made.map_err(|error| match error {
                        LabError::Stopped => StudyError::Stopped,
                        error => error.into(),
                    })?)
                }
                EnvironmentUri::Uml(uml) => {
                    let images = disks.get(uml.folder.as_deref().unwrap_or(folder)).ok_or_else(missing)?;
                    let (image, config) = uml_guests.next().ok_or_else(missing)?;
                    let disks = vec![UmlDisk::new(uml.disk, images.raw().to_owned())];
                    let config = UmlConfig { disks, ..config.clone() };
                    Box::new(Uml::new(name, image.clone(), "asked for", config))
                }
                EnvironmentUri::Native { folder: own } => {
                    let images = disks.get(own.as_deref().unwrap_or(folder)).ok_or_else(missing)?;
                    Box::new(Native::new(name, images.raw().to_owned()))
                }
                EnvironmentUri::Qemu(qemu) => {
                    let place = qemu.folder.as_deref().unwrap_or(folder);
                    let index = taken.entry(place).or_default();
                    let disk = disks.get(place).and_then(|images| images.disks().get(*index));
                    *index += 1;
                    let ((disk, _), guests) = disk.zip(guests.next()).ok_or_else(missing)?;
                    guests.vm(name, disk.clone(), None, Vec::new())?
                }
            });
        }
        Ok(MadeEnvironments { environments, disks, _folders: folders })
    }

    /// Whether workloads keep files in them.
    fn has_files(&self) -> bool {
        matches!(self.contents, Contents::Empty(Some(_)))
    }

    /// What the guests of each folder have, and folders of native ones: one file serves all of a folder that need none of
    /// their own.
    fn setups(&self, folder: &Path) -> BTreeMap<PathBuf, Vec<Setup>> {
        let mut setups: BTreeMap<PathBuf, Vec<Setup>> = BTreeMap::new();
        for environment in self.named {
            let (own, setup) = match &environment.uri {
                EnvironmentUri::Native { .. } if self.has_files() => continue,
                EnvironmentUri::Native { folder } => (folder, None),
                EnvironmentUri::Uml(uml) => (&uml.folder, None),
                EnvironmentUri::Qemu(qemu) => (&qemu.folder, Some(qemu.setup.clone())),
                EnvironmentUri::Ssh(_) | EnvironmentUri::Libvirt(_) | EnvironmentUri::Cluster(_) => continue,
            };
            setups.entry(own.as_deref().unwrap_or(folder).to_owned()).or_default().extend(setup);
        }
        setups
    }
}

/// What a hypervisor's guest needs of this host.
fn far_guest(libvirt: &LibvirtUri, others: &GuestOptions) -> Result<LibvirtGuest, StudyError> {
    virtbench_lab::load_libvirt().map_err(|error| StudyError::Environment(error.into()))?;
    let options = libvirt.guest.guest(others);
    let (adapter, settings) = (libvirt.guest.setup.adapter, libvirt.guest.setup.settings.clone());
    let kernel = find_kernel(options.kernel.as_deref()).map_err(LabError::from)?;
    let image = GuestImage::new(&kernel, &[adapter]).map_err(LabError::from)?;
    let accelerator = options.accelerator.of_qemu()?;
    let GuestOptions { vcpus, memory_bytes, .. } = options;
    Ok(LibvirtGuest { kernel, image, adapter, settings, vcpus, memory_bytes, accelerator })
}

/// What a guest of User Mode Linux needs of this host. It is held to a processor that may be used, where it names none: each to another one.
fn uml_guest(
    uml: &UmlUri,
    filesystem: Option<Filesystem>,
    others: &GuestOptions,
) -> Result<(UmlImage, UmlConfig), StudyError> {
    let kernel = UmlKernel::find_for(filesystem.as_slice()).map_err(LabError::from)?;
    let image = UmlImage::carrying(&kernel, uml.disk, filesystem.as_slice(), &[]);
    let image = image.map_err(LabError::from)?;
    let processors = usable_processors().unwrap_or_default();
    let processor = match uml.processor {
        Some(named) if !processors.contains(&named) => {
            return Err(StudyError::input(format!(
                "processor={named}: this host lets virtbench use {processors:?}"
            )));
        }
        Some(named) => named,
        None => uml_processor(&[]),
    };
    let memory_bytes = uml.memory_bytes.unwrap_or(others.memory_bytes);
    Ok((image, UmlConfig { memory_bytes, boot_limit: BOOT_LIMIT, ..UmlConfig::new(processor) }))
}

/// Environments with their disks, which go with this value.
pub struct MadeEnvironments {
    /// In the order in which they were named.
    pub environments: Vec<Box<dyn Environment>>,
    disks: BTreeMap<PathBuf, Images>,
    _folders: Vec<StudyFolder>,
}

impl MadeEnvironments {
    /// The folder of this host in which disks lie, the first where there are several.
    #[must_use]
    pub fn storage(&self) -> Option<&Path> {
        self.disks.keys().next().map(PathBuf::as_path)
    }

    /// What a reader of results should know about the disks.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.disks.values().flat_map(|images| images.notes().to_vec()).collect()
    }
}
