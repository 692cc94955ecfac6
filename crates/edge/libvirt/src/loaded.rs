//! The library, loaded once, with the thread that runs its event loop for as long as the program runs.

use std::sync::OnceLock;
use std::thread;

use crate::binding::Binding;
use crate::error::LibvirtError;

/// The library, loaded by the first who asks.
pub(crate) fn binding() -> Result<&'static Binding, LibvirtError> {
    static BINDING: OnceLock<Result<Binding, LibvirtError>> = OnceLock::new();
    static EVENTS: OnceLock<Result<(), LibvirtError>> = OnceLock::new();
    let binding = BINDING.get_or_init(Binding::load).as_ref().map_err(Clone::clone)?;
    EVENTS.get_or_init(|| run_events(binding)).clone()?;
    Ok(binding)
}

/// Without its events libvirt neither tells of streams nor notices a network that was cut.
fn run_events(binding: &'static Binding) -> Result<(), LibvirtError> {
    let run = move || while binding.run_events().is_ok() {};
    thread::Builder::new().name("libvirt-events".into()).spawn(run)?;
    Ok(())
}
