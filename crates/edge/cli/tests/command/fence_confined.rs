//! A daemon under its system call filter, and the unit that runs it under systemd. Needs libnbd-bin, openssl and systemd.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::certificates::{Certificates, free_port};
use crate::support::fence::{Fence, PLAIN};
use crate::support::{folder, wait_for};

/// Runs a program of somebody else's, which must be there.
fn output(program: &str, package: &str, arguments: &[&str]) -> Output {
    let output = Command::new("timeout").args(["60", program]).args(arguments).output().unwrap();
    assert!(
        output.status.code() != Some(127),
        "{program}: install it with `apt-get install {package}`, or run `make setup-test`"
    );
    output
}

#[test]
fn tls_is_spoken_by_a_daemon_that_is_confined() {
    let (certificates, port) = (Certificates::new(), free_port());
    let nbd = format!("[nbd]\n{}\n[[disk]]", certificates.config(port, &certificates.authority_line()));
    let config =
        PLAIN.replace("[[disk]]", &nbd).replace("socket = \"A\"", "socket = \"A\"\nexport = \"alpha\"");
    let fence = Fence::formatted(&config);
    let daemon = fence.serve();
    wait_for("the filter", || {
        let status = fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
        status.contains("Seccomp:\t2").then_some(())
    });
    let uri = certificates.uri(port);
    let (source, back) = (fence.path("source"), fence.path("back"));
    let bytes: Vec<u8> = (0..16u32 << 20).map(|at| (at / 512 + at).to_le_bytes()[0]).collect();
    fs::write(&source, &bytes).unwrap();
    for (from, to) in [(source.to_str().unwrap(), uri.as_str()), (&uri, back.to_str().unwrap())] {
        let copied = output("nbdcopy", "libnbd-bin", &["--connections=2", "--flush", from, to]);
        assert!(copied.status.success(), "{copied:?}");
    }
    assert!(fs::read(&back).unwrap() == bytes);
    // An unknown client does not end it.
    let open = format!("nbd://localhost:{port}/alpha");
    assert!(!output("nbdinfo", "libnbd-bin", &[&open]).status.success());
    assert!(output("nbdinfo", "libnbd-bin", &[&uri]).status.success());
    assert_eq!(daemon.stop().code(), 0);
}

/// systemd's scale goes from 0 to 100; a service without any hardening has 96.
const MOST_EXPOSURE: &str = "20";

#[test]
fn the_systemd_unit_is_valid_and_hardened() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/virtbench-fence@.service");
    let folder = folder();
    let here = folder.path().join("virtbench-fence@.service");
    // Where the program is on this machine, so that it is found; its manual need not be installed.
    let text = fs::read_to_string(&unit).unwrap();
    assert!(text.contains("ExecStart=/usr/local/bin/virtbench fence serve"), "{text}");
    let text = text.replace("/usr/local/bin/virtbench", env!("CARGO_BIN_EXE_virtbench"));
    fs::write(&here, text).unwrap();
    let here = here.to_str().unwrap();
    let verified = output("systemd-analyze", "systemd", &["verify", "--man=no", here]);
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("virtbench-fence@"), "{said}");
    let threshold = format!("--threshold={MOST_EXPOSURE}");
    let security = ["security", "--offline=true", "--no-pager", &threshold, here];
    let secure = output("systemd-analyze", "systemd", &security);
    assert!(secure.status.success(), "{secure:?}");
}
