//! What the management stack itself uses, where its processes run on this host ([Platform 2014], section III.C): libvirt's daemons, a
//! vCenter's or a simulator's process.
//!
//! A daemon is found by the socket that virtbench is connected to: the process that listens there. Behind a proxy that is the proxy, which the name
//! of the process tells.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fluent_uri::Uri;
use virtbench_platforms::{OnOpenStack, OnProxmox};
use virtbench_record::{ManagementProcess, ManagementUse};

/// libvirt's daemon for all drivers, and that for QEMU with that for its pools.
const DAEMONS: [(&str, &[&str]); 2] =
    [("libvirt-sock", &["libvirtd"]), ("virtqemud-sock", &["virtqemud", "virtstoraged"])];
/// The ports of a libvirt that listens on TCP, without and with TLS.
const LIBVIRT_PORTS: [(&str, u16); 2] = [("tcp", 16509), ("tls", 16514)];

/// Where the management stack of a platform listens, or why nobody can look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Management {
    /// On one of these sockets in the file system, the first that is there.
    Sockets(Vec<PathBuf>),
    /// On a port, of any of these names.
    Port(String, u16),
    /// Not on this host.
    Elsewhere(String),
}

/// Its processes at a moment.
pub(super) struct Sampled {
    at: Instant,
    processes: Result<Vec<Process>, String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Process {
    pid: u32,
    name: String,
    cpu_ticks: u64,
    resident_bytes: u64,
}

impl Management {
    /// That of the platform at this address.
    pub(super) fn of(address: &str) -> Self {
        let elsewhere = |why: &str| Self::Elsewhere(why.to_owned());
        if let Some((host, port)) = OnProxmox::server_of(address) {
            return Self::Port(host, port);
        }
        if OnOpenStack::check(address).is_ok() {
            return elsewhere("a cloud's services are many processes, on hosts of its own");
        }
        let Some((kind, uri)) = address.split_once('+') else {
            return elsewhere("the platform has no address");
        };
        let Ok(uri) = Uri::parse(uri) else { return elsewhere("the address of the platform cannot be read") };
        let authority = uri.authority();
        let host = authority.map_or("", |authority| authority.host());
        let port = authority.and_then(|authority| authority.port()?.as_str().parse().ok());
        let scheme = uri.scheme().as_str();
        if kind == "vsphere" {
            return Self::Port(host.to_owned(), port.unwrap_or(if scheme == "http" { 80 } else { 443 }));
        }
        let (driver, transport) = scheme.split_once('+').unwrap_or((scheme, ""));
        match (driver, transport, host) {
            ("test", ..) => elsewhere("libvirt's test driver runs within virtbench"),
            (_, "" | "unix", "") => Self::Sockets(sockets(&uri)),
            (_, "ssh" | "libssh" | "libssh2", _) => elsewhere("the hypervisor is reached by ssh"),
            (_, transport, host) => {
                let usual = LIBVIRT_PORTS.iter().find(|(name, _)| *name == transport);
                let usual = usual.map_or(LIBVIRT_PORTS[1].1, |(_, port)| *port);
                Self::Port(host.to_owned(), port.unwrap_or(usual))
            }
        }
    }

    /// Its processes now.
    pub(super) fn sample(&self) -> Sampled {
        let pids = match self {
            Self::Elsewhere(why) => Err(why.clone()),
            Self::Port(host, port) => listening(host, *port),
            Self::Sockets(paths) => behind_one_of(paths),
        };
        let processes = pids.and_then(|pids| {
            let gone = |pid: u32| format!("process {pid} of the management stack cannot be read");
            pids.into_iter().map(|pid| read(pid).ok_or_else(|| gone(pid))).collect()
        });
        Sampled { at: Instant::now(), processes }
    }

    /// What they have used since.
    pub(super) fn until_now(&self, since: &Sampled) -> ManagementUse {
        let before = match &since.processes {
            Ok(before) => before,
            Err(why) => return ManagementUse { processes: Vec::new(), unavailable: Some(why.clone()) },
        };
        let seconds = since.at.elapsed().as_secs_f64();
        let (mut processes, mut unavailable) = (Vec::new(), None);
        for one in before {
            // A number that was given again has used less.
            let now = read(one.pid).filter(|now| now.name == one.name && now.cpu_ticks >= one.cpu_ticks);
            match now {
                Some(now) => processes.push(used(one, now, seconds)),
                None => unavailable = Some(format!("{} (process {}) ended meanwhile", one.name, one.pid)),
            }
        }
        ManagementUse { processes, unavailable }
    }
}

#[allow(clippy::cast_precision_loss, reason = "ticks of a piece are few")]
fn used(before: &Process, now: Process, seconds: f64) -> ManagementProcess {
    let ticks = (now.cpu_ticks - before.cpu_ticks) as f64;
    let a_second = rustix::param::clock_ticks_per_second().max(1) as f64;
    ManagementProcess {
        name: now.name,
        pid: now.pid,
        cpu_percent: 100.0 * ticks / a_second / seconds.max(1e-9),
        resident_bytes: now.resident_bytes,
    }
}

/// Where libvirt looks for its daemon, unless the address says.
fn sockets(uri: &Uri<&str>) -> Vec<PathBuf> {
    let of_query = uri.query().and_then(|query| {
        let socket = query.split('&').find_map(|setting| {
            let (name, value) = setting.split_once('=')?;
            (name.as_str() == "socket").then_some(value)
        })?;
        socket.decode().to_string().ok().map(|path| PathBuf::from(path.into_owned()))
    });
    if let Some(socket) = of_query {
        return vec![socket];
    }
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) if uri.path().as_str() == "/session" => PathBuf::from(runtime).join("libvirt"),
        _ => PathBuf::from("/run/libvirt"),
    };
    DAEMONS.iter().map(|(socket, _)| folder.join(socket)).collect()
}

/// The processes behind the first socket that is there, and those that do a part of its work.
fn behind_one_of(paths: &[PathBuf]) -> Result<BTreeSet<u32>, String> {
    let path = paths.iter().find(|path| path.exists());
    let path = path.ok_or_else(|| format!("there is no socket {}", shown(paths)))?;
    let daemons =
        DAEMONS.iter().find(|(name, _)| path.ends_with(name)).map_or(&[][..], |(_, daemons)| daemons);
    let mut pids = BTreeSet::from([behind(path, daemons.first())?]);
    for daemon in daemons.iter().skip(1) {
        let beside = path.with_file_name(format!("{daemon}-sock"));
        if beside.exists() {
            pids.insert(behind(&beside, Some(daemon))?);
        }
    }
    Ok(pids)
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" or ")
}

/// The process that listens at a socket of the file system; where systemd does so for a daemon, the one of the daemon's pid file.
fn behind(path: &Path, daemon: Option<&&str>) -> Result<u32, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let stream = UnixStream::connect(path).map_err(|error| failed(&error))?;
    let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(|error| failed(&error))?;
    let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).map_err(|error| failed(&error))?;
    if pid != 1 {
        return Ok(pid);
    }
    let daemon = daemon.ok_or_else(|| failed(&"systemd listens there, for an unknown service"))?;
    let files =
        [PathBuf::from("/run"), PathBuf::from("/run/libvirt")].map(|at| at.join(format!("{daemon}.pid")));
    let read = |file: &PathBuf| fs::read_to_string(file).ok()?.trim().parse().ok();
    files.iter().find_map(read).ok_or_else(|| format!("{daemon} has no pid file {}", shown(&files)))
}

/// The process that listens on a port of this host.
fn listening(host: &str, port: u16) -> Result<BTreeSet<u32>, String> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let found: Vec<SocketAddr> =
        (name, port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?.collect();
    let here: Vec<IpAddr> = found.iter().map(SocketAddr::ip).filter(|ip| is_here(*ip)).collect();
    if here.is_empty() {
        return Err(format!("{host} is another host"));
    }
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let inodes: BTreeSet<u64> = tables.iter().flat_map(|table| listeners(table, &here, port)).collect();
    let pids: BTreeSet<u32> = processes().filter(|pid| has_one_of(*pid, &inodes)).collect();
    if pids.is_empty() {
        return Err(format!("this user sees no process that listens on port {port}"));
    }
    Ok(pids)
}

/// Whether an address is one of this host's: it would be its own way to itself.
fn is_here(ip: IpAddr) -> bool {
    let any: IpAddr = if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let local = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((ip, 9))?;
        socket.local_addr()
    };
    local().is_ok_and(|local| local.ip() == ip)
}

/// The inodes of sockets that listen on a port at any of these addresses, of a table of the kernel's.
fn listeners(table: &str, here: &[IpAddr], port: u16) -> Vec<u64> {
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
        let (ip, at) = endpoint(local)?;
        let is_meant = at == port && (ip.is_unspecified() || here.contains(&ip));
        (is_meant && *state == "0A").then(|| inode.parse().ok())?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

/// `0100007F:1F90`: words of four bytes as this machine has them.
fn endpoint(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let words: Option<Vec<[u8; 4]>> = (0..ip.len() / 8)
        .map(|word| Some(u32::from_str_radix(ip.get(8 * word..8 * word + 8)?, 16).ok()?.to_ne_bytes()))
        .collect();
    let ip = match words?.as_slice() {
        [word] => IpAddr::from(*word),
        [a, b, c, d] => {
            let bytes: [u8; 16] = [*a, *b, *c, *d].concat().try_into().ok()?;
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?))
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether one of these sockets is open in a process.
fn has_one_of(pid: u32, inodes: &BTreeSet<u64>) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|target| {
        let inode =
            target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        inode.is_some_and(|inode: u64| inodes.contains(&inode))
    })
}

fn read(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    parse(pid, &stat, &status)
}

/// A process's account: processor time of itself and of children it has waited for, and what of it is in memory.
fn parse(pid: u32, stat: &str, status: &str) -> Option<Process> {
    let name = stat.get(stat.find('(')? + 1..stat.rfind(')')?)?;
    let after: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    // Fields 14 to 17 of proc(5), of which the first after the name is the third.
    let times: Option<Vec<u64>> = after.get(11..15)?.iter().map(|ticks| ticks.parse().ok()).collect();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = resident.split_whitespace().next()?.parse().ok()?;
    Some(Process { pid, name: name.to_owned(), cpu_ticks: times?.iter().sum(), resident_bytes: kib << 10 })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn an_address_says_where_a_management_stack_listens() {
        let socket = |path: &str| Management::Sockets(vec![PathBuf::from(path)]);
        assert_eq!(
            Management::of("libvirt+qemu:///system?socket=/a%20b/libvirt-sock&pool=x"),
            socket("/a b/libvirt-sock")
        );
        let usual = ["/run/libvirt/libvirt-sock", "/run/libvirt/virtqemud-sock"].map(PathBuf::from);
        assert_eq!(Management::of("libvirt+qemu:///system?pool=x"), Management::Sockets(usual.to_vec()));
        let port = |host: &str, port| Management::Port(host.to_owned(), port);
        assert_eq!(Management::of("libvirt+qemu+tcp://hv/system"), port("hv", 16509));
        assert_eq!(Management::of("vsphere+https://u@127.0.0.1:8989/sdk?verify=no"), port("127.0.0.1", 8989));
        assert_eq!(Management::of("vsphere+https://u@vc/sdk"), port("vc", 443));
        assert_eq!(Management::of("proxmox:root@pam@127.0.0.1:18006?verify=no"), port("127.0.0.1", 18006));
        for elsewhere in ["libvirt+test:///default", "libvirt+qemu+ssh://root@hv/system", "nothing"] {
            assert!(matches!(Management::of(elsewhere), Management::Elsewhere(_)), "{elsewhere}");
        }
    }

    #[test]
    fn a_process_is_found_behind_its_sockets_and_what_it_used_is_told() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let on_port = Management::Port("127.0.0.1".into(), listener.local_addr().unwrap().port());
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("libvirt-sock");
        let _unix = UnixListener::bind(&path).unwrap();
        for management in [on_port, Management::Sockets(vec![temp.path().join("none"), path.clone()])] {
            let before = management.sample();
            // Until the clock of processes has moved.
            while read(std::process::id()).unwrap().cpu_ticks
                == before.processes.as_ref().unwrap()[0].cpu_ticks
            {}
            let used = management.until_now(&before);
            let [process] = &used.processes[..] else { panic!("{used:?}") };
            assert_eq!((process.pid, &used.unavailable), (std::process::id(), &None));
            assert!(process.cpu_percent > 0.0 && process.resident_bytes > 1 << 20, "{process:?}");
        }
    }

    #[test]
    fn what_cannot_be_found_is_unavailable_with_the_reason() {
        let temp = tempfile::tempdir().unwrap();
        let why = |management: Management| management.until_now(&management.sample()).unavailable.unwrap();
        assert!(why(Management::Sockets(vec![temp.path().join("none")])).contains("there is no socket"));
        assert!(why(Management::Port("192.0.2.1".into(), 443)).contains("another host"));
        assert!(why(Management::of("libvirt+test:///default")).contains("within virtbench"));
        let ended = Process { pid: u32::MAX, name: "libvirtd".into(), cpu_ticks: 1, resident_bytes: 1 };
        let before = Sampled { at: Instant::now(), processes: Ok(vec![ended]) };
        let used = Management::of("libvirt+test:///default").until_now(&before);
        assert!(used.processes.is_empty() && used.unavailable.unwrap().contains("ended meanwhile"));
    }

    #[test]
    fn the_kernel_s_tables_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1\n   \
                     1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 78 1\n";
        assert_eq!(listeners(table, &[Ipv4Addr::LOCALHOST.into()], 8080), [77]);
        assert!(listeners(table, &[IpAddr::from([10, 0, 0, 1])], 8080).is_empty());
        let mapped = endpoint("0000000000000000FFFF00000100007F:0050");
        assert_eq!(mapped, Some((Ipv4Addr::LOCALHOST.into(), 80)));
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 100 1 1";
        let process = parse(7, stat, "Name:\ta\nVmRSS:\t    2048 kB\n").unwrap();
        assert_eq!(
            (process.name.as_str(), process.cpu_ticks, process.resident_bytes),
            ("a (b) c", 100, 2 << 20)
        );
    }
}
