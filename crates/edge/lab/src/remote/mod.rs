//! Machines that exist already, reached by the system's own OpenSSH.
//!
//! ```text
//! ssh HOST sh -c SCRIPT     what a login prints is passed over
//!   <- system, processor, whether the agent is kept there
//!   -> the agent's bytes    unless it is; checked by its digest there
//!   <- ready                the agent has taken the shell's place
//!   <> the protocol, over the same connection
//! ```
//!
//! Keys, jump hosts and names are those of the user's own configuration of ssh. The agent ends when the connection does.

mod address;
mod appliances;
#[cfg(test)]
mod emulated_tests;
mod login;
mod loopback;
mod machine;
mod remote_agent;
mod script;
mod windows;

pub use address::{AddressError, SshAddress, SshHost};
pub(crate) use appliances::EnclosedAppliance;
pub use appliances::{SshAppliances, check_ssh_host};
pub use loopback::{LoopbackKeys, LoopbackSshd};
pub use machine::Ssh;
pub(crate) use remote_agent::{Alive, RemoteAgent};
