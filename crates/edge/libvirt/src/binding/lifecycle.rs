//! Events of domains, as libvirt's thread hears them, kept for those who wait.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::functions::{OnDomainEvent, Pointer, Text};
use super::{Binding, Object};
use crate::error::LibvirtError;

/// `VIR_DOMAIN_EVENT_ID_LIFECYCLE`
const LIFECYCLE: c_int = 0;
/// More happens to no domain in one operation.
const MOST_HEARD: usize = 16;

/// What is heard of a domain: numbers of `virDomainEventType`, and when each came.
pub(crate) type Heard = Vec<(i32, Instant)>;

/// What was heard of the domains that somebody waits for; nothing is kept of others.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    /// `virDomainGetName`
    name_of: unsafe extern "C" fn(Pointer) -> Text,
    awaited: Mutex<HashMap<String, Heard>>,
}

impl Lifecycle {
    fn awaited(&self) -> MutexGuard<'_, HashMap<String, Heard>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, domain: &str) {
        self.awaited().insert(domain.to_owned(), Heard::new());
    }

    pub(crate) fn heard(&self, domain: &str) -> Heard {
        self.awaited().get(domain).cloned().unwrap_or_default()
    }

    pub(crate) fn end(&self, domain: &str) {
        self.awaited().remove(domain);
    }
}

impl Binding {
    /// Begins to listen; with the number by which that is ended.
    pub(crate) fn listen(&self, on: &Object) -> Result<(Arc<Lifecycle>, i32), LibvirtError> {
        let name_of = self.functions.virDomainGetName;
        let lifecycle = Arc::new(Lifecycle { name_of, awaited: Mutex::default() });
        let given: *mut c_void = Arc::into_raw(Arc::clone(&lifecycle)).cast_mut().cast();
        let all = null_mut();
        let heard: OnDomainEvent = on_lifecycle;
        let number =
            call!(self.virConnectDomainEventRegisterAny(on.raw(), all, LIFECYCLE, heard, given, forget));
        let number = self.done(number).inspect_err(|_| {
            // SAFETY: libvirt did not take it.
            unsafe { forget(given) };
        })?;
        Ok((lifecycle, number))
    }

    pub(crate) fn end_listening(&self, on: &Object, number: i32) -> Result<(), LibvirtError> {
        self.done(call!(self.virConnectDomainEventDeregisterAny(on.raw(), number))).map(drop)
    }
}

/// libvirt calls it from its event loop.
unsafe extern "C" fn on_lifecycle(
    _connection: Pointer,
    domain: Pointer,
    event: c_int,
    _detail: c_int,
    opaque: *mut c_void,
) -> c_int {
    let at = Instant::now();
    // SAFETY: `opaque` is what `listen` gave away, and lives until `forget` has it.
    let lifecycle = unsafe { &*opaque.cast_const().cast::<Lifecycle>() };
    // SAFETY: the domain is the one that is being told of.
    let name = unsafe { (lifecycle.name_of)(domain) };
    if name.is_null() {
        return 0;
    }
    // SAFETY: the name belongs to the domain and ends with a zero.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    if let Some(heard) = lifecycle.awaited().get_mut(&*name)
        && heard.len() < MOST_HEARD
    {
        heard.push((event, at));
    }
    0
}

/// Takes back what libvirt was given for [`on_lifecycle`].
unsafe extern "C" fn forget(opaque: *mut c_void) {
    // SAFETY: `listen` made it from such a value, and libvirt calls this once.
    drop(unsafe { Arc::from_raw(opaque.cast_const().cast::<Lifecycle>()) });
}
