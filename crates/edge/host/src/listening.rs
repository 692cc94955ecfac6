//! Who listens at a socket.

use std::fs;
use std::path::Path;

/// The bit of a unix socket's flags that says that its owner listens: `SO_ACCEPTCON` of the kernel's `linux/net.h`.
const LISTENS: u32 = 1 << 16;

/// Whether somebody listens at a unix socket, whose absolute path is that which it was bound to. The file appears
/// before its owner listens, and connecting would use up a server that takes one client.
pub fn listens_at(socket: &Path) -> bool {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    table.lines().any(|line| listener(line) == Some(socket))
}

/// The path that a line of `/proc/net/unix` (proc(5)) says somebody listens at.
fn listener(line: &str) -> Option<&Path> {
    let mut rest = line;
    let mut words = [""; 7];
    for word in &mut words {
        (*word, rest) = rest.trim_start().split_once(' ')?;
    }
    let [_, _, _, flags, ..] = words;
    let listens = u32::from_str_radix(flags, 16).ok()? & LISTENS != 0;
    listens.then(|| Path::new(rest))
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

    use super::*;

    #[test]
    fn a_socket_that_is_bound_has_a_file_before_anybody_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a socket");
        let server = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        assert!(path.exists() && !listens_at(&path));
        listen(&server, 1).unwrap();
        assert!(listens_at(&path));
        drop(server);
        assert!(path.exists() && !listens_at(&path), "a file that its owner left");
    }
}
