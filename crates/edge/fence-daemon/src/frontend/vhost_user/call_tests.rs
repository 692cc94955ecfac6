use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixDatagram, UnixStream};

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

#[test]
fn a_client_is_told_through_an_eventfd_or_a_socket() {
    let event = new_eventfd(0, EventfdFlags::empty()).unwrap();
    let told = event.try_clone().unwrap();
    Call::new(event).unwrap().tell();
    let (mut client, ours) = UnixStream::pair().unwrap();
    Call::new(ours.into()).unwrap().tell();
    let (mut counted, mut word) = ([0; 8], [0; 8]);
    rustix::io::read(&told, &mut counted).unwrap();
    client.read_exact(&mut word).unwrap();
    assert_eq!((u64::from_ne_bytes(counted), u64::from_ne_bytes(word)), (1, 1));
}

/// Whether a client reads or has gone, and whatever it does to the socket that both share: nobody waits for it.
#[test]
fn a_client_that_does_not_read_its_socket_halts_nobody_and_gets_whole_words() {
    let (mut client, ours) = UnixStream::pair().unwrap();
    let call = Call::new(ours.try_clone().unwrap().into()).unwrap();
    (0..1_000_000).for_each(|_| call.tell());
    ours.set_nonblocking(true).unwrap();
    assert!(rustix::io::write(&ours, &[0]).is_err(), "it is full");
    client.set_nonblocking(true).unwrap();
    let mut read = 0;
    let mut word = [0; 8];
    while client.read_exact(&mut word).is_ok() {
        assert_eq!(u64::from_ne_bytes(word), 1);
        read += 1;
    }
    assert!((1..1_000_000).contains(&read), "{read}");
    call.tell();
    client.read_exact(&mut word).unwrap();
    drop(client);
    call.tell();
}

#[test]
fn a_call_is_no_other_socket_and_no_file() {
    let (datagrams, _other) = UnixDatagram::pair().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let remote = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (_reader, pipe) = std::io::pipe().unwrap();
    let file = tempfile::tempfile().unwrap();
    for fd in [OwnedFd::from(datagrams), remote.into(), pipe.into(), file.into()] {
        assert!(matches!(Call::new(fd), Err(WireError::Malformed(_))));
    }
}
