//! A client of OpenStack's APIs: Keystone, Nova, Glance, Cinder, and Neutron to find a network.
//!
//! It has the calls that virtbench makes and no others. Calls wait, and threads share a connection. Every call has a deadline; a token that ends is
//! renewed, and a cloud that wants fewer requests gets them later. Servers are followed by looks that become ever rarer and answer for all who wait.
//! No secret is in an error or a log.
//!
//! ```no_run
//! use std::time::{Duration, Instant};
//! use virtbench_openstack::{Address, Limit, OpenStack, Operation};
//!
//! let soon = || Limit::at(Instant::now() + Duration::from_secs(60));
//! let cloud = OpenStack::connect(&Address::parse("openstack:mycloud")?, soon())?;
//! let mut web = None;
//! cloud.each_server(soon(), |server| web = Some(server).filter(|server| server.name == "web").or(web.take()))?;
//! let (times, done) = cloud.perform(&web.expect("a server of this name").id, &Operation::Stop, soon());
//! done?;
//! println!("it was over after {:?}, give or take {:?}", times.accepted + times.running + times.done, times.uncertainty);
//! # Ok::<(), virtbench_openstack::OpenStackError>(())
//! ```

mod actions;
mod address;
mod catalogue;
mod client;
mod clouds;
mod credentials;
mod error;
mod fault;
mod local;
mod looks;
mod operation;
mod perform;
mod server;
mod session;
mod stand;
mod things;
mod time;
mod watch;

pub use actions::Told;
pub use address::Address;
pub use client::{ListTimes, OpenStack};
pub use clouds::Cloud;
pub use credentials::Credentials;
pub use error::OpenStackError;
pub use fault::{Fault, FaultKind};
pub use local::LocalOpenStack;
pub use looks::{OperationTimes, Pace, Until};
pub use operation::{NewServer, Operation};
pub use server::{AddressOf, Flavor, FlavorOf, Image, Power, Server, ServerFault, Volume};
pub use stand::{OpenStackStand, Rally, RallyAction};
pub use virtbench_https::{Limit, Trust};
