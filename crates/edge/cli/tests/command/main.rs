//! The command as a user runs it: a module for each subject, in one program, so that it is linked once and no processor
//! idles while another subject's last test ends.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod adapters;
mod alternate;
mod analyse;
mod appliance;
mod application_parts;
mod application_study;
#[path = "../../../fence-daemon/tests/common/certificates.rs"]
mod certificates;
mod closed_pipe;
mod company;
mod compare;
mod desktops;
mod desktops_elsewhere;
mod desktops_faults;
mod desktops_office;
mod fence;
mod fence_admin;
mod fence_bad_input;
mod fence_bounds;
mod fence_confined;
mod fence_guest;
mod fence_live;
mod fence_newest;
mod fence_power;
mod fence_serve;
mod fence_status;
mod fence_unit;
mod history;
mod hosts;
mod libvirt;
mod live;
mod load;
mod log;
mod oltp;
mod oltp_study;
mod operations;
mod operations_vsphere;
mod outage;
mod power;
mod predict;
mod predictions;
mod profile;
mod run_file;
mod sandbox;
mod search;
mod sets;
mod spec;
mod ssh;
mod ssh_bad_input;
mod ssh_guest;
mod study;
mod support;
mod sweep;
mod systems;
mod tiles;
mod tiles_elsewhere;
mod tiles_existing;
mod tiles_joined;
mod tiles_paper;
mod trace;
mod users;
mod verify;
mod workload;
