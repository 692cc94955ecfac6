//! Where the energy that a host uses can be read: RAPL, a file that something else writes, or a command.

mod command;
mod file;
mod find;
mod rapl;
mod source;

pub use find::{find_energy, open_energy};
pub use source::{EnergySource, NoEnergy};
