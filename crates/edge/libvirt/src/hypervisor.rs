//! A connection to a hypervisor.

use std::sync::Arc;
use std::time::Duration;

use crate::binding::{Binding, Listed, NodeInfo, Object};
use crate::connection::{ANSWER_LIMIT, Connection, DOMAIN_LIMIT, Handle, binding};
use crate::domain::{Domain, StartFlags};
use crate::error::{ErrorKind, LibvirtError, within};
use crate::storage::Pool;

/// How long it may take to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// How often the other side is asked for a sign of life, in seconds, and how often it may owe one.
const KEEP_ALIVE: (i32, u32) = (5, 3);

/// A connection to a hypervisor. Cloning shares it; it is closed when everything that came of it is gone, upon which the
/// hypervisor ends the domains that were to end with it.
#[derive(Debug, Clone)]
pub struct Hypervisor {
    pub(crate) handle: Handle,
}

impl Hypervisor {
    /// Connects to `uri`, such as `qemu:///system`.
    ///
    /// # Errors
    /// The library is missing, nobody answers within 30 s, or who asks is not let in.
    pub fn open(uri: &str) -> Result<Self, LibvirtError> {
        let binding = binding()?;
        let uri = uri.to_owned();
        within(CONNECT_LIMIT, "connect", move || {
            let connection = binding.open(&uri)?;
            // A connection within this process, such as one of the test driver, has nobody to ask.
            let (interval_s, count) = KEEP_ALIVE;
            match binding.keep_alive(&connection, interval_s, count) {
                Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
                _ => {}
            }
            let object = Arc::new(connection);
            let connection = Connection { binding, object: Arc::clone(&object) };
            Ok(Self { handle: Handle { connection, object } })
        })
    }

    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Binding, &Object) -> Result<T, LibvirtError> + Send + 'static,
    ) -> Result<T, LibvirtError> {
        self.handle.call(ANSWER_LIMIT, "answer", question)
    }

    fn object(&self, object: Object) -> Handle {
        Handle::new(&self.handle.connection, object)
    }

    /// The kind of hypervisor, such as `QEMU`.
    ///
    /// # Errors
    /// The connection failed.
    pub fn kind(&self) -> Result<String, LibvirtError> {
        self.ask(Binding::type_name)
    }

    /// The name of its machine.
    ///
    /// # Errors
    /// The connection failed.
    pub fn host_name(&self) -> Result<String, LibvirtError> {
        self.ask(Binding::host_name)
    }

    /// Its capabilities, as XML.
    ///
    /// # Errors
    /// The connection failed.
    pub fn capabilities(&self) -> Result<String, LibvirtError> {
        self.ask(Binding::capabilities)
    }

    /// What the firmware of its machine says, as XML.
    ///
    /// # Errors
    /// It does not say, or the connection failed.
    pub fn system_information(&self) -> Result<String, LibvirtError> {
        self.ask(Binding::system_information)
    }

    /// The hypervisor's version and that of libvirt there, as `7.2.22`.
    ///
    /// # Errors
    /// The connection failed.
    pub fn versions(&self) -> Result<[String; 2], LibvirtError> {
        let shown =
            |version: u64| format!("{}.{}.{}", version / 1_000_000, version / 1000 % 1000, version % 1000);
        Ok(self.ask(Binding::versions)?.map(shown))
    }

    /// What its machine is.
    ///
    /// # Errors
    /// The connection failed.
    pub fn node(&self) -> Result<NodeInfo, LibvirtError> {
        self.ask(Binding::node)
    }

    /// What the machine's processors have done since it started, all together: names as `user`, `kernel`, `idle` and
    /// `iowait`, with nanoseconds.
    ///
    /// # Errors
    /// It does not say, or the connection failed.
    pub fn cpu_times(&self) -> Result<Vec<(String, u64)>, LibvirtError> {
        self.ask(Binding::cpu_times)
    }

    /// All its domains, running or not.
    ///
    /// # Errors
    /// The connection failed.
    pub fn domains(&self) -> Result<Vec<Domain>, LibvirtError> {
        let objects = self.ask(|binding, connection| binding.list(connection, Listed::Domains))?;
        Ok(objects.into_iter().map(|object| Domain::new(self.object(object))).collect())
    }

    /// Starts a domain that is gone once it has ended.
    ///
    /// # Errors
    /// It does not start, with the words of its emulator; or there is one of its name.
    pub fn start(&self, xml: &str, flags: StartFlags) -> Result<Domain, LibvirtError> {
        let xml = xml.to_owned();
        let object = self.handle.call(DOMAIN_LIMIT, "start the domain", move |binding, connection| {
            binding.start_domain(connection, &xml, flags.bits())
        })?;
        Ok(Domain::new(self.object(object)))
    }

    /// The storage pool of this name.
    ///
    /// # Errors
    /// There is none, or the connection failed.
    pub fn pool(&self, name: &str) -> Result<Pool, LibvirtError> {
        let name = name.to_owned();
        let object = self.ask(move |binding, connection| binding.find_pool(connection, &name))?;
        Ok(Pool::new(self.object(object)))
    }

    /// Names of all its storage pools.
    ///
    /// # Errors
    /// The connection failed.
    pub fn pool_names(&self) -> Result<Vec<String>, LibvirtError> {
        let objects = self.ask(|binding, connection| binding.list(connection, Listed::Pools))?;
        objects.iter().map(|object| self.handle.connection.binding.pool_name(object)).collect()
    }
}
