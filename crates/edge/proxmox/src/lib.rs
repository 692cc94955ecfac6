//! A client of Proxmox VE's API.
//!
//! It has the calls that virtbench makes and no others. Calls wait, and threads share a connection. Every call has a
//! deadline, and a ticket that has expired is asked for anew. Tasks are looked at ever less often, so that looking costs the
//! server little. The password is in no error and in no log.
//!
//! ```no_run
//! use std::time::{Duration, Instant};
//! use virtbench_proxmox::{Address, Limit, Operation, PASSWORD_VARIABLE, Proxmox, Secret};
//!
//! let address = Address::parse("proxmox:root@pam@pve.example?ca=/etc/pve.pem")?;
//! let password = Secret::find(address.password_file.as_deref(), PASSWORD_VARIABLE)?;
//! let soon = || Limit::at(Instant::now() + Duration::from_secs(30));
//! let server = Proxmox::connect(&address, password, soon())?;
//! let web = server.machines(soon())?.into_iter().find(|vm| vm.name == "web").expect("a VM of this name");
//! let (times, done) = server.perform(&web.place, &Operation::Start, soon());
//! done?;
//! println!("the task ran for {:?}", times.running);
//! # Ok::<(), virtbench_proxmox::ProxmoxError>(())
//! ```

mod address;
mod client;
mod effect;
mod error;
mod inventory;
mod local;
mod operation;
mod session;
mod task;

pub use address::{Address, PASSWORD_VARIABLE};
pub use client::{OperationTimes, Proxmox};
pub use effect::Disk;
pub use error::{Fault, FaultKind, ProxmoxError};
pub use inventory::{Machine, Node, Place, Power, Storage};
pub use local::LocalProxmox;
pub use operation::{NewMachine, Operation};
pub use task::Upid;
pub use virtbench_https::{Limit, Secret, Trust};
