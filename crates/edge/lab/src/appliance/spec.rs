//! What runs where.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use virtbench_recipe::{Init, Recipe, ServicePlace};
use virtbench_units::format_bytes;

use super::error::ApplianceError;
use super::network::Network;
use super::parts::ApplianceParts;
use super::tiers::TierLinks;
use crate::accelerator::{KVM_LIMIT, choose_accelerator};
use crate::adapters::{Adapter, DEFAULT_ADAPTER, DiskSettings};
use crate::guest::Accelerator;
use crate::image::GuestImage;
use crate::kernel::find_kernel;
use crate::libvirt::LibvirtAppliances;
use crate::machine::LabError;
use crate::qemu::Qemu;
use crate::remote::SshAppliances;
use crate::uml::{UmlDiskKind, UmlImage, UmlKernel};

/// Where ext4 has its magic number (Linux, Documentation/filesystems/ext4/super.rst).
const MAGIC_AT: u64 = 1024 + 0x38;
const MAGIC: [u8; 2] = [0x53, 0xef];

/// Where an appliance runs.
#[derive(Debug, Clone)]
pub enum Place {
    /// On this host, in namespaces of its own, with as much memory and as many processors as a guest would have.
    Native,
    /// In a guest of QEMU.
    Guest(Box<GuestPlace>),
    /// In a guest of User Mode Linux.
    Uml(Box<UmlPlace>),
    /// In a domain of a hypervisor that the user runs, which has its root and its data already.
    Domain(Arc<LibvirtAppliances>),
    /// Natively on a machine that the user has, which has its root and its data already.
    Ssh(Arc<SshAppliances>),
}

/// What a guest is made of.
#[derive(Debug, Clone)]
pub struct GuestPlace {
    /// What emulates it.
    pub qemu: Qemu,
    /// What it boots, made by [`GuestImage::for_appliances`].
    pub image: GuestImage,
    /// What executes it.
    pub accelerator: Accelerator,
    /// What it sees its data through. Its root is always on a virtio disk.
    pub adapter: &'static Adapter,
    /// What is set about the disk of its data.
    pub settings: DiskSettings,
    /// How long it may take to boot.
    pub boot_limit: Duration,
}

/// What a guest of User Mode Linux is made of.
#[derive(Debug, Clone)]
pub struct UmlPlace {
    /// What it boots, made by [`UmlImage::for_appliances`].
    pub image: UmlImage,
    /// What it sees its root and its data through.
    pub disk: UmlDiskKind,
    /// How long it may take to boot.
    pub boot_limit: Duration,
}

impl UmlPlace {
    /// One of this host's kernel, which sees its disks as a guest of QEMU does: past the host's page cache.
    ///
    /// # Errors
    /// There is no kernel, or it lacks a driver.
    pub fn on_this_host(boot_limit: Duration) -> Result<Self, LabError> {
        let disk = UmlDiskKind::VirtioBlk;
        let image = UmlImage::for_appliances(&UmlKernel::find()?, disk)?;
        Ok(Self { image, disk, boot_limit })
    }
}

impl GuestPlace {
    /// One of this host's QEMU and kernel, by KVM where that works, which sees its data through the usual adapter.
    ///
    /// # Errors
    /// Something of that is missing, or no guest boots.
    pub fn on_this_host(boot_limit: Duration) -> Result<Self, LabError> {
        let (qemu, kernel) = (Qemu::find()?, find_kernel(None)?);
        let accelerator = choose_accelerator(&qemu, &kernel, KVM_LIMIT)?.accelerator;
        let image = GuestImage::for_appliances(&kernel, &[DEFAULT_ADAPTER], false)?;
        let settings = DiskSettings::default();
        Ok(Self { qemu, image, accelerator, adapter: DEFAULT_ADAPTER, settings, boot_limit })
    }
}

/// An appliance, and where it is to run.
#[derive(Debug, Clone)]
pub struct ApplianceSpec {
    /// Its name in errors and records, such as `native` or `vm`.
    pub name: String,
    /// What it is.
    pub recipe: Recipe,
    /// Its root: a file with an ext4 file system. It is only read; many appliances can have the same.
    pub root: PathBuf,
    /// Its data: a file with an ext4 file system that nobody else has; who runs elsewhere gets a copy of its own.
    pub data: Option<PathBuf>,
    /// Processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// How clients reach it.
    pub network: Network,
    /// Other tiers of the same application.
    pub tiers: TierLinks,
    /// Processors of the host that it is held to; natively the first ones if there are none here, for a guest every one.
    pub processors: Vec<usize>,
    /// Where it runs.
    pub place: Place,
}

impl ApplianceSpec {
    /// The same with what of the recipe runs where it is to run.
    pub(crate) fn placed(&self) -> Self {
        let recipe = match self.place {
            Place::Native | Place::Ssh(_) => self.recipe.at(ServicePlace::Native),
            Place::Guest(_) | Place::Domain(_) => self.recipe.at(ServicePlace::Vm),
            Place::Uml(_) => self.recipe.in_vm_without_screen(),
        };
        Self { recipe, ..self.clone() }
    }

    pub(crate) fn parts(&self) -> ApplianceParts<'_> {
        ApplianceParts {
            name: &self.name,
            root: &self.root,
            data: self.data.as_deref(),
            vcpus: self.vcpus,
            memory_bytes: self.memory_bytes,
            has_init: self.recipe.init == Init::Full,
        }
    }

    /// Whether it is valid, as far as that shows without starting it.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self) -> Result<(), ApplianceError> {
        let no = |why: String| Err(ApplianceError::Spec { name: self.name.clone(), why });
        let recipe = &self.recipe;
        if self.vcpus == 0 {
            return no("it needs at least one processor".into());
        }
        if self.memory_bytes < recipe.memory {
            let (has, least) = (format_bytes(self.memory_bytes), format_bytes(recipe.memory));
            return no(format!("{has} of memory: the recipe {} needs at least {least}", recipe.name));
        }
        if matches!(self.place, Place::Uml(_)) && self.vcpus > 1 {
            let why = "a guest of User Mode Linux has one here";
            return no(format!(
                "{} processors: {why}, or each crossing into its kernel costs several times more",
                self.vcpus
            ));
        }
        let has_no_screen = match &self.place {
            Place::Native | Place::Ssh(_) | Place::Uml(_) => false,
            Place::Guest(place) => !place.image.has_screen,
            Place::Domain(_) => true,
        };
        if recipe.screen && has_no_screen {
            return no(format!(
                "the recipe {} needs a screen, which VMs have in a study of desktops alone",
                recipe.name
            ));
        }
        if recipe.services.is_empty() {
            return no(format!("the recipe {} has no service that runs there", recipe.name));
        }
        is_ext4(&self.root).or_else(|why| {
            no(format!("the root {why}; build it with `virtbench appliance build {}`", recipe.name))
        })?;
        match (&self.data, &recipe.data) {
            (Some(data), Some(_)) => {
                is_ext4(data).or_else(|why| no(format!("the image of its data {why}; prepare it anew")))
            }
            (None, Some(_)) => {
                no(format!("the recipe {} has data, of which no image was given", recipe.name))
            }
            (Some(_), None) => {
                no(format!("the recipe {} has no data, but an image of them was given", recipe.name))
            }
            (None, None) => Ok(()),
        }
    }
}

/// Whether a file begins as ext4 does; if not, what is wrong with it.
fn is_ext4(path: &Path) -> Result<(), String> {
    let mut magic = [0; 2];
    let read = File::open(path).and_then(|file| match file.read_exact_at(&mut magic, MAGIC_AT) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(()),
        other => other,
    });
    match read {
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        Ok(()) if magic != MAGIC => Err(format!("{} is no ext4 file system", path.display())),
        Ok(()) => Ok(()),
    }
}
