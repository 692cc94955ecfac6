//! Domains that stay when they have ended: defined, started, changed, moved, and undefined.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::binding::Binding;
use crate::connection::{ANSWER_LIMIT, Handle};
use crate::domain::{Domain, StartFlags};
use crate::error::LibvirtError;
use crate::hypervisor::Hypervisor;

/// `VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA`
const WITH_ALL: u32 = 1 | 2;
/// `VIR_ERR_NO_DOMAIN_SNAPSHOT`
const NO_SNAPSHOT: i32 = 72;
/// `VIR_DOMAIN_AFFECT_LIVE`
const LIVE: u32 = 1;
/// `VIR_DOMAIN_AFFECT_CONFIG`
const CONFIG: u32 = 2;
/// `VIR_MIGRATE_LIVE | VIR_MIGRATE_PERSIST_DEST | VIR_MIGRATE_UNDEFINE_SOURCE | VIR_MIGRATE_UNSAFE`: the disk is the same file on
/// both sides, which libvirt cannot know.
const MOVES: u32 = 1 | 8 | 16 | 512;

impl Hypervisor {
    /// Defines a domain that stays, or another description of one that is there.
    ///
    /// # Errors
    /// The description is wrong, or the connection failed.
    pub fn define(&self, xml: &str, limit: Duration) -> Result<Domain, LibvirtError> {
        let xml = xml.to_owned();
        let object = self.handle.call(limit, "define the domain", move |binding, connection| {
            binding.define_domain(connection, &xml)
        })?;
        Ok(Domain::new(Handle::new(&self.handle.connection, object)))
    }

    /// The domain of this name.
    ///
    /// # Errors
    /// There is none, or the connection failed.
    pub fn domain(&self, name: &str) -> Result<Domain, LibvirtError> {
        let name = name.to_owned();
        let object = self.handle.call(ANSWER_LIMIT, "find the domain", move |binding, connection| {
            binding.find_domain(connection, &name)
        })?;
        Ok(Domain::new(Handle::new(&self.handle.connection, object)))
    }
}

impl Domain {
    /// Starts it.
    ///
    /// # Errors
    /// It runs already, or does not start.
    pub fn start(&self, flags: StartFlags, limit: Duration) -> Result<(), LibvirtError> {
        self.handle.call(limit, "start the domain", move |binding, domain| {
            binding.create_domain(domain, flags.bits())
        })
    }

    /// Ends it at once, if it runs.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn destroy_if_running(&self) -> Result<(), LibvirtError> {
        if self.is_running()? { self.destroy() } else { Ok(()) }
    }

    /// Gives up its definition, with whatever libvirt keeps of its snapshots.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn undefine(&self, limit: Duration) -> Result<(), LibvirtError> {
        self.handle
            .call(limit, "undefine the domain", |binding, domain| binding.undefine_domain(domain, WITH_ALL))
    }

    /// Changes the description for people, of the domain that runs as well.
    ///
    /// # Errors
    /// It is gone, or the connection failed.
    pub fn describe(&self, text: &str, runs: bool, limit: Duration) -> Result<(), LibvirtError> {
        let text = text.to_owned();
        let flags = if runs { LIVE | CONFIG } else { CONFIG };
        self.handle.call(limit, "change the domain", move |binding, domain| {
            binding.set_description(domain, &text, flags)
        })
    }

    /// Puts an element of this namespace into its definition, or another one in the place of what was there.
    ///
    /// # Errors
    /// It is gone, the element is wrong, or the connection failed.
    pub fn set_element(
        &self,
        element: &str,
        prefix: &str,
        namespace: &str,
        limit: Duration,
    ) -> Result<(), LibvirtError> {
        let [element, prefix, namespace] = [element, prefix, namespace].map(str::to_owned);
        self.handle.call(limit, "change the domain", move |binding, domain| {
            binding.set_element(domain, &element, (&prefix, &namespace), CONFIG)
        })
    }

    /// The description for people.
    ///
    /// # Errors
    /// There is none, or the connection failed.
    pub fn description(&self) -> Result<String, LibvirtError> {
        self.handle.call(ANSWER_LIMIT, "describe the domain", Binding::description)
    }

    /// Adds a device to its definition, as XML.
    ///
    /// # Errors
    /// It cannot have it, or the connection failed.
    pub fn attach(&self, device: &str, limit: Duration) -> Result<(), LibvirtError> {
        let device = device.to_owned();
        self.handle
            .call(limit, "attach a device", move |binding, domain| binding.attach(domain, &device, CONFIG))
    }

    /// Takes a device out of its definition.
    ///
    /// # Errors
    /// It does not have it, or the connection failed.
    pub fn detach(&self, device: &str, limit: Duration) -> Result<(), LibvirtError> {
        let device = device.to_owned();
        self.handle
            .call(limit, "detach a device", move |binding, domain| binding.detach(domain, &device, CONFIG))
    }

    /// Keeps its state, and its memory where it runs, under the name in this description.
    ///
    /// # Errors
    /// Its disks have no snapshots, or the connection failed.
    pub fn create_snapshot(&self, xml: &str, limit: Duration) -> Result<(), LibvirtError> {
        let xml = xml.to_owned();
        self.handle.call(limit, "create a snapshot", move |binding, domain| {
            binding.create_snapshot(domain, &xml).map(drop)
        })
    }

    /// Whether there is a snapshot of this name.
    ///
    /// # Errors
    /// The connection failed.
    pub fn has_snapshot(&self, name: &str) -> Result<bool, LibvirtError> {
        let name = name.to_owned();
        let found = self.handle.call(ANSWER_LIMIT, "find a snapshot", move |binding, domain| {
            binding.find_snapshot(domain, &name).map(drop)
        });
        match found {
            Ok(()) => Ok(true),
            Err(LibvirtError::Refused { code: NO_SNAPSHOT, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives up a state that was kept.
    ///
    /// # Errors
    /// There is none of this name, or the connection failed.
    pub fn delete_snapshot(&self, name: &str, limit: Duration) -> Result<(), LibvirtError> {
        let name = name.to_owned();
        self.handle.call(limit, "delete a snapshot", move |binding, domain| {
            let snapshot = binding.find_snapshot(domain, &name)?;
            binding.delete_snapshot(&snapshot)
        })
    }

    /// What libvirt tells of the last job that it is done with, under its own names such as `downtime`, in its own units; nothing
    /// where there was none, or where somebody has asked before.
    ///
    /// # Errors
    /// The hypervisor tells nothing of jobs, or the connection failed.
    pub fn completed_job(&self) -> Result<BTreeMap<String, u64>, LibvirtError> {
        self.job(true)
    }

    /// The same of the job that it is in at the moment.
    ///
    /// # Errors
    /// As for [`completed_job`](Self::completed_job).
    pub fn current_job(&self) -> Result<BTreeMap<String, u64>, LibvirtError> {
        self.job(false)
    }

    fn job(&self, is_completed: bool) -> Result<BTreeMap<String, u64>, LibvirtError> {
        let told = self
            .handle
            .call(ANSWER_LIMIT, "tell of its job", move |binding, domain| binding.job(domain, is_completed));
        Ok(told?.into_iter().collect())
    }

    /// Moves it, definition and all, to another hypervisor that has the same storage, while it runs. `over` is where that one
    /// is reached by this one's emulator, such as `tcp://127.0.0.1`; it says so itself where there is nothing.
    ///
    /// # Errors
    /// Either refuses, or a connection failed. It then runs on where it was.
    pub fn migrate(
        &self,
        to: &Hypervisor,
        over: Option<&str>,
        limit: Duration,
    ) -> Result<Self, LibvirtError> {
        let over = over.map(str::to_owned);
        let destination = Arc::clone(&to.handle.object);
        let moved = self.handle.call(limit, "migrate the domain", move |binding, domain| {
            binding.migrate(domain, &destination, MOVES, over.as_deref())
        })?;
        Ok(Self::new(Handle::new(&to.handle.connection, moved)))
    }
}
