//! The client, on a fake Proxmox VE and on servers that misbehave.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hostile;
mod operations;
