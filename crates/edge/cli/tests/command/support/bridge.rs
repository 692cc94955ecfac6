//! A bridge on which a DHCP server gives addresses.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use virtbench_lab::{NetworkNamespace, Reach};

/// Its name.
pub const BRIDGE: &str = "virtbench-test";

/// Shell commands that make it.
pub fn commands() -> String {
    format!(
        "ip link set lo up\nip link add {BRIDGE} type bridge\nip address add 10.99.7.1/24 dev {BRIDGE}\nip link set {BRIDGE} up\n"
    )
}

/// What busybox's udhcpd is told, with its files in the folder `run`.
pub fn dhcp_configuration(run: &str) -> String {
    format!(
        "interface {BRIDGE}\nstart 10.99.7.20\nend 10.99.7.200\nopt subnet 255.255.255.0\nopt router 10.99.7.1\n\
         lease_file {run}/leases\npidfile {run}/udhcpd\n"
    )
}

/// A network of its own with the bridge. The server ends with this.
pub struct Bridge {
    pub reach: Reach,
    server: Child,
}

impl Bridge {
    /// With the server's files in `folder`.
    pub fn start(folder: &Path) -> Self {
        let reach = Reach::of(&NetworkNamespace::new().unwrap_or_else(|error| panic!("{error}")));
        let mut make = Command::new("sh");
        make.args(["-ec", &commands()]);
        reach.run_there(&mut make);
        assert!(make.status().unwrap().success());
        let (configuration, log) = (folder.join("udhcpd.conf"), folder.join("udhcpd.log"));
        fs::write(&configuration, dhcp_configuration(folder.to_str().unwrap())).unwrap();
        fs::write(folder.join("leases"), "").unwrap();
        let mut serve = Command::new("setpriv");
        serve
            .args(["--pdeathsig", "KILL", "busybox", "udhcpd", "-f"])
            .arg(configuration)
            .stdin(Stdio::null());
        let log = fs::File::create(log).unwrap();
        serve.stdout(log.try_clone().unwrap()).stderr(log);
        reach.run_there(&mut serve);
        Self { reach, server: serve.spawn().unwrap() }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
