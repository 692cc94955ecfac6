//! A domain: a guest of the hypervisor.

use std::ops::BitOr;
use std::os::unix::net::UnixStream;

use crate::binding::{Binding, Object};
use crate::connection::{ANSWER_LIMIT, DOMAIN_LIMIT, Handle};
use crate::error::{LibvirtError, within};
use crate::pump;

/// `VIR_DOMAIN_SHUTOFF`
const SHUT_OFF: i32 = 5;
/// `VIR_DOMAIN_PAUSED`
const PAUSED: i32 = 3;
/// `VIR_DOMAIN_CRASHED`
const CRASHED: i32 = 6;

/// How a domain is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StartFlags(u32);

impl StartFlags {
    /// Its processors wait until it is [resumed](Domain::resume).
    pub const PAUSED: Self = Self(1);
    /// The hypervisor ends it when the connection that started it is gone.
    pub const ENDS_WITH_CONNECTION: Self = Self(2);

    pub(crate) fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for StartFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A domain. Dropping this value does nothing to it.
#[derive(Debug, Clone)]
pub struct Domain {
    pub(crate) handle: Handle,
}

impl Domain {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// Its name.
    ///
    /// # Errors
    /// libvirt does not say.
    pub fn name(&self) -> Result<String, LibvirtError> {
        self.handle.connection.binding.domain_name(&self.handle.object)
    }

    /// What it is made of, as XML.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn xml(&self) -> Result<String, LibvirtError> {
        self.handle.call(ANSWER_LIMIT, "describe the domain", Binding::domain_xml)
    }

    /// The element that somebody has put into it under this namespace, as XML.
    ///
    /// # Errors
    /// There is none, or the connection failed.
    pub fn metadata(&self, namespace: &str) -> Result<String, LibvirtError> {
        let namespace = namespace.to_owned();
        self.handle.call(ANSWER_LIMIT, "describe the domain", move |binding, object| {
            binding.domain_metadata(object, &namespace)
        })
    }

    /// Whether it runs, paused or not.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn is_running(&self) -> Result<bool, LibvirtError> {
        Ok(self.runs_and_waits()?.0)
    }

    /// Whether it runs, and whether its processors wait.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn runs_and_waits(&self) -> Result<(bool, bool), LibvirtError> {
        let state = self.handle.call(ANSWER_LIMIT, "say how the domain is", Binding::domain_state)?;
        Ok((![SHUT_OFF, CRASHED].contains(&state), state == PAUSED))
    }

    /// Has its processors wait.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn suspend(&self) -> Result<(), LibvirtError> {
        self.handle.call(DOMAIN_LIMIT, "suspend the domain", Binding::suspend_domain)
    }

    /// Lets its processors go on.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn resume(&self) -> Result<(), LibvirtError> {
        self.handle.call(DOMAIN_LIMIT, "resume the domain", Binding::resume_domain)
    }

    /// Ends it at once.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn destroy(&self) -> Result<(), LibvirtError> {
        self.handle.call(DOMAIN_LIMIT, "end the domain", Binding::destroy_domain)
    }

    /// The host's end of its virtio-serial channel of this name, as a socket.
    ///
    /// # Errors
    /// There is none, somebody has it, or the connection failed.
    pub fn open_channel(&self, name: &str) -> Result<UnixStream, LibvirtError> {
        let name = name.to_owned();
        let open = move |binding: &Binding, domain: &Object, stream: &Object| {
            binding.open_channel(domain, &name, stream)
        };
        self.open("open the channel", open)
    }

    /// Its first serial console, as a socket.
    ///
    /// # Errors
    /// There is none, somebody has it, or the connection failed.
    pub fn open_console(&self) -> Result<UnixStream, LibvirtError> {
        self.open("open the console", Binding::open_console)
    }

    fn open(
        &self,
        what: &'static str,
        open: impl FnOnce(&Binding, &Object, &Object) -> Result<(), LibvirtError> + Send + 'static,
    ) -> Result<UnixStream, LibvirtError> {
        let Handle { connection, object } = self.handle.clone();
        within(ANSWER_LIMIT, what, move || {
            let binding = connection.binding;
            let stream = binding.stream(&connection.object, false)?;
            open(binding, &object, &stream)?;
            pump::begin(binding, stream)
        })
    }
}
