//! Which accelerator guests run under: found out by booting one, never by what is installed.
//!
//! A nested KVM can accept every call and then spin for ever on a stock kernel, so the existence of
//! `/dev/kvm` proves nothing.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use virtbench_record::AcceleratorFacts;

use crate::cache::{cache_directory, write_atomically};
use crate::error::LabError;
use crate::guest::{Accelerator, Guest, GuestConfig};
use crate::image::GuestImage;
use crate::kernel::GuestKernel;
use crate::process::MachineError;
use crate::qemu::Qemu;

/// How long a guest may take to boot under KVM before KVM counts as broken: it takes one second
/// where it works.
pub const KVM_LIMIT: Duration = Duration::from_secs(15);

/// The largest cached choice that is read, in bytes.
const MAX_CHOICE_BYTES: u64 = 64 << 10;

/// The accelerator for this host's guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceleratorChoice {
    /// The accelerator.
    pub accelerator: Accelerator,
    /// How that was found out, in words.
    pub why: String,
    /// What it depends on: with any of it changed, the probe is made again.
    key: Key,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Key {
    virtbench: String,
    host_boot: String,
    kernel: PathBuf,
    release: String,
    qemu: String,
    kvm_device: String,
}

impl AcceleratorChoice {
    /// What a run records of it.
    #[must_use]
    pub fn facts(&self) -> AcceleratorFacts {
        AcceleratorFacts { name: self.accelerator.name().to_owned(), why: self.why.clone() }
    }
}

/// Chooses by booting a guest under KVM within `kvm_limit`, else under software emulation. The
/// choice is cached until the host restarts or QEMU, the kernel or access to `/dev/kvm` change.
///
/// # Errors
/// No guest boots at all.
pub fn choose_accelerator(
    qemu: &Qemu,
    kernel: &GuestKernel,
    kvm_limit: Duration,
) -> Result<AcceleratorChoice, LabError> {
    let key = current_key(qemu, kernel);
    if let Some(known) = cached().filter(|known| known.key == key) {
        return Ok(known);
    }
    let image = GuestImage::new(kernel, &[])?;
    let boots = |accelerator, limit| {
        let config = GuestConfig { boot_limit: limit, ..GuestConfig::new(accelerator) };
        Guest::boot(qemu, &image, &config).map(|guest| guest.boot_time().as_secs_f64())
    };
    let refusal = match open_kvm() {
        Ok(()) => match boots(Accelerator::Kvm, kvm_limit) {
            Ok(seconds) => {
                let why = format!("a guest booted under KVM in {seconds:.1} s");
                return Ok(remember(AcceleratorChoice { accelerator: Accelerator::Kvm, why, key }));
            }
            Err(error) => format!("/dev/kvm is there, but under KVM {}", brief(&error)),
        },
        Err(why) => why,
    };
    let limit = crate::guest::BOOT_LIMIT;
    let seconds = boots(Accelerator::Tcg, limit).map_err(|source| LabError::NoAccelerator { source })?;
    let why = format!("{refusal}; under software emulation (TCG) one booted in {seconds:.1} s");
    Ok(remember(AcceleratorChoice { accelerator: Accelerator::Tcg, why, key }))
}

/// The choice that [`choose_accelerator`] would return without a probe.
#[must_use]
pub fn known_accelerator(qemu: &Qemu, kernel: &GuestKernel) -> Option<AcceleratorChoice> {
    let key = current_key(qemu, kernel);
    cached().filter(|known| known.key == key)
}

/// Why guests will not boot under KVM here, as far as it is known without trying: its device cannot be
/// opened, or an earlier probe found it broken.
#[must_use]
pub fn kvm_refusal(qemu: &Qemu, kernel: &GuestKernel) -> Option<String> {
    refusal(open_kvm(), known_accelerator(qemu, kernel).as_ref())
}

fn refusal(device: Result<(), String>, known: Option<&AcceleratorChoice>) -> Option<String> {
    let broken =
        known.filter(|choice| choice.accelerator == Accelerator::Tcg).map(|choice| choice.why.clone());
    device.err().or(broken)
}

/// Whether KVM's device can be opened; if not, why, with what mends it.
pub(crate) fn open_kvm() -> Result<(), String> {
    match File::options().read(true).write(true).open("/dev/kvm") {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("there is no /dev/kvm".into()),
        Err(error) => Err(format!("/dev/kvm cannot be opened ({error}; joining the group kvm may help)")),
    }
}

/// One line of a guest's failure; the console is for errors, not for reasons.
fn brief(error: &MachineError) -> String {
    match error {
        MachineError::Conversation { source, .. } => format!("{source}"),
        MachineError::Ended { what, how, console } => console.last().map_or_else(
            || format!("{what} {how}"),
            |last| format!("{what} {how}: {}", last.trim_end_matches('.')),
        ),
        MachineError::Panicked { .. } => "the guest's kernel panicked".into(),
        other => other.to_string(),
    }
}

fn current_key(qemu: &Qemu, kernel: &GuestKernel) -> Key {
    Key {
        virtbench: env!("CARGO_PKG_VERSION").to_owned(),
        host_boot: fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into(),
        kernel: kernel.image.clone(),
        release: kernel.release.clone(),
        qemu: format!("{} {}", qemu.path.display(), qemu.version),
        kvm_device: open_kvm().err().unwrap_or_default(),
    }
}

fn choice_file() -> PathBuf {
    cache_directory().join("accelerator.json")
}

/// What is damaged or from another version is as good as absent.
fn cached() -> Option<AcceleratorChoice> {
    let path = choice_file();
    if fs::metadata(&path).ok()?.len() > MAX_CHOICE_BYTES {
        return None;
    }
    serde_json::from_slice(&fs::read(&path).ok()?).ok()
}

/// A choice that cannot be kept is made again next time.
fn remember(choice: AcceleratorChoice) -> AcceleratorChoice {
    if let Ok(text) = serde_json::to_vec_pretty(&choice) {
        let _ = write_atomically(&choice_file(), |file| file.write_all(&text));
    }
    choice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kvm_is_refused_by_what_is_known_and_nothing_else() {
        let choice = |accelerator, why: &str| AcceleratorChoice {
            accelerator,
            why: why.into(),
            key: Key {
                virtbench: String::new(),
                host_boot: String::new(),
                kernel: PathBuf::new(),
                release: String::new(),
                qemu: String::new(),
                kvm_device: String::new(),
            },
        };
        let (broken, works) = (choice(Accelerator::Tcg, "it spins"), choice(Accelerator::Kvm, "it booted"));
        assert_eq!(
            refusal(Err("there is no /dev/kvm".into()), None).as_deref(),
            Some("there is no /dev/kvm")
        );
        assert_eq!(refusal(Ok(()), Some(&broken)).as_deref(), Some("it spins"));
        assert_eq!((refusal(Ok(()), Some(&works)), refusal(Ok(()), None)), (None, None));
    }
}
