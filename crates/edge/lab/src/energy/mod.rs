//! Where the energy that a host uses can be read: RAPL, a file that something else writes, or a command.

mod command;
mod file;
mod rapl;
mod source;

pub use source::{EnergySource, NoEnergy, find_energy, open_energy};
