//! The library, loaded once, and what all objects of a hypervisor share.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crate::binding::{Binding, Object};
use crate::error::{LibvirtError, within};

/// How long a question may take.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// How long a domain may take to start or to end.
pub(crate) const DOMAIN_LIMIT: Duration = Duration::from_secs(90);

/// How long a pool or a volume may take to be looked through, made or deleted.
pub(crate) const STORAGE_LIMIT: Duration = Duration::from_secs(120);

/// A connection. It is closed when everything that came of it is gone.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) binding: &'static Binding,
    pub(crate) object: Arc<Object>,
}

/// An object of a connection's, or the connection itself as one.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    pub(crate) connection: Connection,
    pub(crate) object: Arc<Object>,
}

impl Handle {
    pub(crate) fn new(connection: &Connection, object: Object) -> Self {
        Self { connection: connection.clone(), object: Arc::new(object) }
    }

    /// Makes a call within a time limit.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        limit: Duration,
        what: &'static str,
        call: impl FnOnce(&Binding, &Object) -> Result<T, LibvirtError> + Send + 'static,
    ) -> Result<T, LibvirtError> {
        let (binding, object) = (self.connection.binding, Arc::clone(&self.object));
        within(limit, what, move || call(binding, &object))
    }
}

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
