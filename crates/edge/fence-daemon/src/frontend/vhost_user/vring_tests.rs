use rustix::event::{EventfdFlags, eventfd as new_eventfd};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

use super::*;

#[test]
fn an_eventfd_is_taken_and_does_not_wait() {
    let taken = eventfd(new_eventfd(0, EventfdFlags::empty()).unwrap()).unwrap();
    assert!(rustix::io::read(&taken, &mut [0; 8]).is_err(), "nothing was written yet");
}

#[test]
fn what_is_no_eventfd_is_refused() {
    let file = tempfile::tempfile().unwrap();
    assert!(eventfd(file.into()).is_err());
}

/// The kernel cannot say what a descriptor is whose path is longer than paths may be.
#[test]
fn a_descriptor_whose_kind_cannot_be_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = |at: &OwnedFd, name: &str| openat(at, name, OFlags::DIRECTORY, Mode::empty()).unwrap();
    let name = "long".repeat(60);
    let mut inner = openat(CWD, folder.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..20 {
        mkdirat(&inner, &name, Mode::RWXU).unwrap();
        inner = open(&inner, &name);
    }
    let file = openat(&inner, "file", OFlags::CREATE | OFlags::RDWR, Mode::RWXU).unwrap();
    assert!(eventfd(file).is_err(), "a file passes for an eventfd");
}
