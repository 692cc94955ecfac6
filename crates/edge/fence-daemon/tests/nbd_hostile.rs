//! NBD clients that are silent, wrong, greedy or gone. Each harms only itself.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use crate::common;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::raw::{self, reply, request};
use common::{DISK_BYTES, Daemon, listen, success};
use virtbench_fence_daemon::ServeError;
use virtbench_fence_daemon::frontend::nbd::NbdSetupError;

fn connect(daemon: &Daemon) -> UnixStream {
    raw::connect(&daemon.socket)
}

/// A connection to `alpha`, in the transmission phase.
fn attached(daemon: &Daemon) -> UnixStream {
    raw::attached(&daemon.socket, "alpha")
}

/// Waits until the server has closed the connection.
fn assert_closed(mut stream: UnixStream) {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "it is open still"),
    }
}

fn assert_serves(daemon: &Daemon) {
    success("nbdinfo", "libnbd-bin", &["--size", &daemon.uri("alpha")]);
}

#[test]
fn silence_ends_a_connection_in_either_phase_but_idling_does_not() {
    let daemon = Daemon::serve("negotiation_s = 1\nstall_s = 1");
    let silent = connect(&daemon);
    let mut half_a_request = attached(&daemon);
    half_a_request.write_all(&request(1, 1, 0, 4096)).unwrap();
    half_a_request.write_all(&[1; 1000]).unwrap();
    let mut idle = attached(&daemon);
    assert_closed(silent);
    assert_closed(half_a_request);
    idle.write_all(&request(3, 7, 0, 0)).unwrap();
    assert_eq!(reply(&mut idle), (0, 7));
}

#[test]
fn a_client_that_takes_no_replies_is_left_and_others_are_served() {
    let daemon = Daemon::serve("stall_s = 1");
    let mut greedy = attached(&daemon);
    let requests: Vec<u8> = (0..10_000).flat_map(|n| request(0, n, 0, 1 << 20)).collect();
    // The server takes some, and no more: what is left fills the socket.
    greedy.set_nonblocking(true).unwrap();
    let _ = greedy.write(&requests);
    assert_serves(&daemon);
    let mut left = 300;
    while greedy.write(&[0]).map_err(|error| error.kind()) != Err(ErrorKind::BrokenPipe) {
        left -= 1;
        assert!(left > 0, "it was never left");
        std::thread::sleep(Duration::from_millis(100));
    }
    greedy.set_nonblocking(false).unwrap();
    let taken = std::io::copy(&mut greedy, &mut std::io::sink());
    assert!(taken.is_err() || taken.unwrap() < 64 << 20, "more was read for it than its limit");
    assert_serves(&daemon);
}

#[test]
fn what_is_no_nbd_is_closed() {
    let daemon = Daemon::serve("");
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 100], b"\0\0\0\x03IHAVEOPTIHAVEOPTxxxxxxxxxxxx"] {
        let mut stream = connect(&daemon);
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_closed(stream);
    }
    let mut stream = attached(&daemon);
    stream.write_all(&[0; 28]).unwrap();
    assert_closed(stream);
    assert_serves(&daemon);
}

#[test]
fn a_disk_ends_at_its_end() {
    let daemon = Daemon::serve("");
    let mut stream = attached(&daemon);
    for (n, (command, offset, len, error)) in (0..).zip([
        (0, DISK_BYTES, 512, 22),
        (0, DISK_BYTES - 512, 1024, 22),
        (0, u64::MAX - 511, 1024, 22),
        (6, DISK_BYTES - 512, u32::MAX - 511, 28),
        (4, DISK_BYTES, 512, 22),
        (0, 0, 33 << 20, 22),
    ]) {
        stream.write_all(&request(command, n, offset, len)).unwrap();
        assert_eq!(reply(&mut stream), (error, n), "{command} {offset} {len}");
    }
    stream.write_all(&[request(1, 77, DISK_BYTES - 512, 1024), vec![9; 1024]].concat()).unwrap();
    assert_eq!(reply(&mut stream), (28, 77));
    // More than is ever taken: thrown away, and answered.
    stream.write_all(&request(1, 78, 0, 40 << 20)).unwrap();
    (0..40).for_each(|_| stream.write_all(&vec![9; 1 << 20]).unwrap());
    assert_eq!(reply(&mut stream), (28, 78));
    drop(stream);
    let (image, path) = (std::fs::read(daemon.path("image")).unwrap(), daemon.path("image"));
    assert!(image[1 << 20..].iter().all(|byte| *byte == 0), "{} was written", path.display());
}

#[test]
fn the_longest_request_is_carried_out() {
    let daemon = Daemon::serve("");
    let mut stream = attached(&daemon);
    let data: Vec<u8> = (0..DISK_BYTES as usize).map(|at| (at / 4096 + at) as u8).collect();
    stream.write_all(&request(1, 1, 0, 32 << 20)).unwrap();
    stream.write_all(&data).unwrap();
    assert_eq!(reply(&mut stream), (0, 1));
    stream.write_all(&request(0, 2, 0, 32 << 20)).unwrap();
    assert_eq!(reply(&mut stream), (0, 2));
    let mut back = vec![0; 32 << 20];
    stream.read_exact(&mut back).unwrap();
    assert!(back == data);
    stream.write_all(&request(6, 3, 0, 32 << 20)).unwrap();
    assert_eq!(reply(&mut stream), (0, 3));
    stream.write_all(&request(0, 4, 16 << 20, 4096)).unwrap();
    assert_eq!(reply(&mut stream), (0, 4));
    stream.read_exact(&mut back[..4096]).unwrap();
    assert!(back[..4096].iter().all(|byte| *byte == 0));
}

#[test]
fn clients_that_go_in_the_middle_leave_no_trace() {
    let daemon = Daemon::serve("connections = 8");
    for n in 0..60 {
        let mut stream = attached(&daemon);
        let reads: Vec<u8> = (0..50).flat_map(|n| request(0, n, 4096 * n, 65536)).collect();
        stream.write_all(&reads).unwrap();
        stream.write_all(&request(1, 99, 0, 1 << 20)[..10 + n % 18]).unwrap();
        if n % 2 == 0 {
            let _ = stream.read(&mut [0; 100]);
        }
    }
    assert_serves(&daemon);
}

#[test]
fn more_connections_than_allowed_are_closed_at_once() {
    let daemon = Daemon::serve("connections = 2");
    let (first, second) = (attached(&daemon), attached(&daemon));
    assert_closed(connect(&daemon));
    drop(first);
    // Its place becomes free when the server has seen that it is gone.
    let mut left = 100;
    while connect(&daemon).read(&mut [0; 18]).unwrap_or(0) == 0 {
        left -= 1;
        assert!(left > 0, "the place never became free");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(second);
}

#[test]
fn a_socket_in_use_is_refused_and_one_left_behind_is_replaced() {
    let daemon = Daemon::serve("");
    let again = Daemon::try_serve(&listen(&daemon.socket)).map(|_| ()).unwrap_err();
    assert!(matches!(&again, ServeError::Nbd(NbdSetupError::Listen(_))), "{again}");
    assert!(again.to_string().contains("listening there"), "{again}");
    assert_serves(&daemon);
    let socket = daemon.socket.clone();
    let folder = daemon.stop();
    assert!(!socket.exists());
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists(), "a killed server leaves its socket");
    assert_serves(&Daemon::in_folder(folder, "").unwrap());
}

#[test]
fn tcp_on_loopback_is_served_too() {
    let probe = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = probe.local_addr().unwrap().port();
    drop(probe);
    let daemon = Daemon::serve(&format!("listen = \"tcp:127.0.0.1:{port}\""));
    let size = success("nbdinfo", "libnbd-bin", &["--size", &format!("nbd://127.0.0.1:{port}/beta")]);
    assert_eq!(size.trim(), DISK_BYTES.to_string());
    drop(daemon);
}

#[test]
fn what_is_written_before_a_restart_is_there_after_it() {
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let socket = folder.path().join("nbd");
    let image = folder.path().join("image");
    let daemon = Daemon::in_folder(folder, "").unwrap();
    let mut stream = attached(&daemon);
    stream.write_all(&[request(1, 1, 8192, 512), vec![3; 512], request(3, 2, 0, 0)].concat()).unwrap();
    assert_eq!(reply(&mut stream).0, 0);
    assert_eq!(reply(&mut stream).0, 0);
    assert!(std::fs::read(&image).unwrap()[(1 << 20) + 8192..][..512].iter().all(|byte| *byte == 3));
    drop(daemon);
    assert!(!socket.exists());
    assert_closed(stream);
}
