//! A client of vSphere's VIM API, as a vCenter or a host speaks it: SOAP over HTTPS.
//!
//! It has the calls that virtbench makes and no others. Calls wait, and threads share a connection. Every call has a
//! deadline, answers have a size that they may not exceed, and a session that has expired is opened anew. Tasks are
//! followed by the server's updates, all by one thread. The password is in no error and in no log.
//!
//! ```no_run
//! use std::time::{Duration, Instant};
//! use virtbench_vsphere::{Address, Operation, PASSWORD_VARIABLE, Secret, Until, Vsphere};
//!
//! let address = Address::parse("vsphere+https://user@vcenter.example/sdk?ca=/etc/vcenter.pem")?;
//! let password = Secret::find(address.password_file.as_deref(), PASSWORD_VARIABLE)?;
//! let soon = || Instant::now() + Duration::from_secs(30);
//! let server = Vsphere::connect(&address, password, soon())?;
//! let inventory = server.inventory(soon())?;
//! let web = inventory.named("web").expect("a VM of this name");
//! let (course, done) = server.perform(&Operation::PowerOn(web), Until::Seen, soon());
//! done?;
//! println!("the server took {:?}, this program {:?}", course.running, course.client);
//! # Ok::<(), virtbench_vsphere::VsphereError>(())
//! ```

mod address;
mod client;
mod cluster;
mod devices;
mod effect;
mod error;
mod found_out;
mod inventory;
mod local_vcenter;
mod operation;
mod outage;
mod properties;
mod reply;
mod request;
mod session;
mod task;
mod tracker;

pub use address::{Address, PASSWORD_VARIABLE, PlaceNames};
pub use client::{Followed, OperationTimes, Until, Vsphere};
pub use cluster::Cluster;
pub use devices::Hardware;
pub use error::{Fault, FaultKind, VsphereError};
pub use inventory::{Inventory, LABEL_KEY, Machine, Power};
pub use local_vcenter::LocalVcenter;
pub use operation::{Disk, Operation, Own, Shape, Slot};
pub use reply::Reference;
pub use session::About;
pub use virtbench_https::{Secret, Trust};
