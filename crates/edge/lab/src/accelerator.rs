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
use crate::guest::{Accelerator, Guest, GuestConfig};
use crate::image::GuestImage;
use crate::kernel::GuestKernel;
use crate::machine::LabError;
use crate::process::{MachineError, last_words};
use crate::qemu::{KvmCpu, Qemu};

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
    let refusal = match open_kvm() {
        Ok(()) => match probe_kvm(qemu, &image, kvm_limit) {
            Ok((accelerator, why)) => return Ok(remember(AcceleratorChoice { accelerator, why, key })),
            Err(why) => format!("/dev/kvm is there, but under KVM {why}"),
        },
        Err(why) => why,
    };
    let seconds = boots(qemu, &image, Accelerator::Tcg, crate::guest::BOOT_LIMIT)
        .map_err(|source| LabError::NoAccelerator { source })?;
    let why = format!("{refusal}; under software emulation (TCG) one booted in {seconds:.1} s");
    Ok(remember(AcceleratorChoice { accelerator: Accelerator::Tcg, why, key }))
}

/// KVM, whatever an earlier probe found: a guest is booted under it unless one is known to. That may take as long as under emulation,
/// since a user who asks for a slow KVM wants to measure that.
///
/// # Errors
/// Why no guest boots under it, in words.
pub fn force_kvm(
    qemu: &Qemu,
    kernel: &GuestKernel,
    limit: Duration,
) -> Result<Result<AcceleratorChoice, String>, LabError> {
    if let Some(known) = known_accelerator(qemu, kernel).filter(|known| known.accelerator.is_kvm()) {
        return Ok(Ok(known));
    }
    if let Err(why) = open_kvm() {
        return Ok(Err(why));
    }
    let image = GuestImage::new(kernel, &[])?;
    let probed = probe_kvm(qemu, &image, limit);
    Ok(probed.map(|(accelerator, why)| AcceleratorChoice {
        accelerator,
        why,
        key: current_key(qemu, kernel),
    }))
}

/// Boots a guest; how long that took, in seconds.
fn boots(
    qemu: &Qemu,
    image: &GuestImage,
    accelerator: Accelerator,
    limit: Duration,
) -> Result<f64, MachineError> {
    let config = GuestConfig { boot_limit: limit, ..GuestConfig::new(accelerator) };
    Guest::boot(qemu, image, &config).map(|guest| guest.boot_time().as_secs_f64())
}

/// Boots a guest under KVM, with another processor where KVM refuses one; returns what works, and in words how that was found out.
///
/// # Errors
/// Why none boots, in words.
pub fn probe_kvm(qemu: &Qemu, image: &GuestImage, limit: Duration) -> Result<(Accelerator, String), String> {
    let mut refusals: Vec<String> = Vec::new();
    for cpu in KvmCpu::ALL {
        let accelerator = Accelerator::Kvm(cpu);
        match boots(qemu, image, accelerator, limit) {
            Ok(seconds) => {
                let why = format!("a guest booted under KVM in {seconds:.1} s");
                let other = format!("{why} with -cpu {}; {}", cpu.model(), refusals.join("; "));
                return Ok((accelerator, if refusals.is_empty() { why } else { other }));
            }
            Err(error) => {
                refusals.push(format!("with -cpu {} {}", cpu.model(), brief(&error)));
                // A guest that says nothing in time does so with any processor.
                if matches!(error, MachineError::Conversation { .. }) {
                    break;
                }
            }
        }
    }
    Err(refusals.join("; "))
}

/// The choice that [`choose_accelerator`] would return without a probe.
#[must_use]
pub fn known_accelerator(qemu: &Qemu, kernel: &GuestKernel) -> Option<AcceleratorChoice> {
    let key = current_key(qemu, kernel);
    cached().filter(|known| known.key == key)
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
        MachineError::Ended { what, how, console } => last_words(console)
            .map_or_else(|| format!("{what} {how}"), |last| format!("{what} {how}: {last}")),
        MachineError::Paused { state, words, .. } => {
            let words = words.as_deref().map_or_else(String::new, |words| format!(": {words}"));
            format!("{state}{words}")
        }
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
    fn a_refusal_says_what_explains_it() {
        let ended = |console: &[&str]| {
            let console = console.iter().map(|line| (*line).to_owned()).collect();
            brief(&MachineError::Ended { what: "QEMU", how: "was killed by signal 6".into(), console })
        };
        let why = "qemu-system-x86_64: error: failed to set MSR 0x10a to 0x1";
        let said = ended(&["booting", why, "kvm.c:2893: kvm_buf_set_msrs: Assertion `ret == n' failed."]);
        assert!(said.contains("failed to set MSR 0x10a") && said.contains("Assertion"), "{said}");
        assert_eq!(
            ended(&["one", "Could not access KVM."]),
            "QEMU was killed by signal 6: Could not access KVM"
        );
        assert_eq!(ended(&[]), "QEMU was killed by signal 6");
    }
}
