//! What happens to domains, as the hypervisor says it itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::binding::Lifecycle;
use crate::connection::{ANSWER_LIMIT, Handle};
use crate::error::LibvirtError;
use crate::hypervisor::Hypervisor;

/// How long a hypervisor may take to hear that nobody listens any more.
const END_LIMIT: Duration = Duration::from_secs(5);

/// What happened to a domain; the numbers are those of `virDomainEventType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainChange {
    /// It was started, or waits for another hypervisor to hand it over.
    Started = 2,
    /// It stands still.
    Suspended = 3,
    /// It runs on, here or where it was moved to.
    Resumed = 4,
    /// It has ended.
    Stopped = 5,
}

/// Listens to a hypervisor until it is dropped.
#[derive(Debug)]
pub struct DomainEvents {
    handle: Handle,
    lifecycle: Arc<Lifecycle>,
    number: i32,
}

impl Hypervisor {
    /// Listens to what happens to its domains.
    ///
    /// # Errors
    /// It has no events, or the connection failed.
    pub fn events(&self) -> Result<DomainEvents, LibvirtError> {
        let heard =
            self.handle.call(ANSWER_LIMIT, "tell of its domains", |binding, on| binding.listen(on))?;
        let (lifecycle, number) = heard;
        Ok(DomainEvents { handle: self.handle.clone(), lifecycle, number })
    }
}

impl DomainEvents {
    /// Notes from now on what happens to this domain.
    #[must_use]
    pub fn watch(&self, domain: &str) -> WatchedDomain<'_> {
        self.lifecycle.begin(domain);
        WatchedDomain { events: self, domain: domain.to_owned() }
    }
}

impl Drop for DomainEvents {
    fn drop(&mut self) {
        // libvirt keeps a connection open for as long as somebody listens to it. A hypervisor that does not answer loses it anyway.
        let number = self.number;
        let _ = self
            .handle
            .call(END_LIMIT, "end its events", move |binding, on| binding.end_listening(on, number));
    }
}

/// A domain of which it is noted what happens to it.
#[derive(Debug)]
pub struct WatchedDomain<'a> {
    events: &'a DomainEvents,
    domain: String,
}

impl WatchedDomain<'_> {
    /// When this was heard first; nothing if it has not been heard yet.
    #[must_use]
    pub fn first(&self, change: DomainChange) -> Option<Instant> {
        let heard = self.events.lifecycle.heard(&self.domain);
        heard.iter().find(|(event, _)| *event == change as i32).map(|(_, at)| *at)
    }
}

impl Drop for WatchedDomain<'_> {
    fn drop(&mut self) {
        self.events.lifecycle.end(&self.domain);
    }
}
