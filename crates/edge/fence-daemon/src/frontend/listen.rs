//! Unix sockets for clients: private, never taken from another server.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use thiserror::Error;

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 16;

/// How long the socket of a daemon that is ending is waited for, and how often it is tried.
const ENDING_LIMIT: Duration = Duration::from_secs(2);
const ENDING_PAUSE: Duration = Duration::from_millis(100);

/// Why a socket cannot be had.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ListenError {
    /// Another server answers there.
    #[error("{path}: another server is listening there: stop it, or choose another socket", path = path.display())]
    InUse { path: PathBuf },
    /// Something else is there.
    #[error("{path}: there is something that is no socket: remove it, or choose another name", path = path.display())]
    NoSocket { path: PathBuf },
    /// The system refuses.
    #[error("{path}: {action}: {source}", path = path.display())]
    Io {
        path: PathBuf,
        /// What failed.
        action: &'static str,
        source: io::Error,
    },
}

/// A listening socket with a name, which goes when this does.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode: the name is removed only while it is still ours.
    inode: (u64, u64),
}

impl Listener {
    /// Listens at `path`, for the owner alone. What a server that is gone has left there is replaced.
    ///
    /// # Errors
    /// Another server listens there, something else is there, or the system refuses.
    pub fn bind(path: &Path) -> Result<Self, ListenError> {
        let fails = |action: &'static str| {
            let path = path.to_owned();
            move |source: io::Error| ListenError::Io { path, action, source }
        };
        Self::make_way(path)?;
        // Bound under another name, closed to others, and only then given the real one: at no time can anybody else
        // connect, and the name never leads nowhere.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .map_err(io::Error::from)
            .map_err(fails("no socket"))?;
        let address =
            SocketAddrUnix::new(&temporary).map_err(io::Error::from).map_err(fails("unusable as a name"))?;
        let _ = fs::remove_file(&temporary);
        bind(&socket, &address).map_err(io::Error::from).map_err(fails("cannot be created"))?;
        let placed = fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))
            .and_then(|()| listen(&socket, BACKLOG).map_err(io::Error::from))
            .and_then(|()| fs::symlink_metadata(&temporary))
            .and_then(|metadata| fs::rename(&temporary, path).map(|()| metadata));
        let metadata = placed.map_err(|source| {
            let _ = fs::remove_file(&temporary);
            fails("cannot be put in place")(source)
        })?;
        let inode = (metadata.dev(), metadata.ino());
        Ok(Self { socket: UnixListener::from(socket), path: path.to_owned(), inode })
    }

    /// A socket that somebody else has bound to `path`, and that listens.
    ///
    /// # Errors
    /// It is no such socket, or nothing is at `path`.
    pub(crate) fn adopt(socket: OwnedFd, path: PathBuf) -> Result<Self, ListenError> {
        let fails = |action: &'static str| {
            let path = path.clone();
            move |source: io::Error| ListenError::Io { path, action, source }
        };
        let listens = rustix::net::sockopt::socket_acceptconn(&socket)
            .map_err(io::Error::from)
            .map_err(fails("no listening socket was handed over"))?;
        let facts = fs::symlink_metadata(&path).map_err(fails("cannot be examined"))?;
        if !listens || !facts.file_type().is_socket() {
            return Err(ListenError::NoSocket { path });
        }
        let socket = UnixListener::from(socket);
        socket.set_nonblocking(true).map_err(fails("cannot be made ready"))?;
        Ok(Self { socket, inode: (facts.dev(), facts.ino()), path })
    }

    /// The socket has another owner, who removes its name.
    pub(crate) fn leave_name(mut self) {
        // No file has this inode.
        self.inode = (0, 0);
    }

    fn make_way(path: &Path) -> Result<(), ListenError> {
        let in_the_way = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(source) => {
                return Err(ListenError::Io { path: path.to_owned(), action: "cannot be examined", source });
            }
            Ok(metadata) => metadata,
        };
        if !in_the_way.file_type().is_socket() {
            return Err(ListenError::NoSocket { path: path.to_owned() });
        }
        // The socket of a daemon that was killed answers until the kernel is done with what it had in flight.
        let until = Instant::now() + ENDING_LIMIT;
        loop {
            match answers(path) {
                Ok(false) => return Ok(()),
                Ok(true) if Instant::now() < until => std::thread::sleep(ENDING_PAUSE),
                Ok(true) => return Err(ListenError::InUse { path: path.to_owned() }),
                Err(source) => {
                    let action = "cannot be tried for a server";
                    return Err(ListenError::Io { path: path.to_owned(), action, source });
                }
            }
        }
    }

    /// The next client, if one waits; its stream does not block.
    ///
    /// # Errors
    /// The system refuses.
    pub fn accept(&self) -> io::Result<Option<UnixStream>> {
        match self.socket.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                Ok(Some(stream))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The socket itself, to be watched.
    #[must_use]
    pub const fn socket(&self) -> &UnixListener {
        &self.socket
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.inode);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether anybody listens at `path`. Never waits: a server that accepts nobody is one.
fn answers(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_private_and_goes_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = Listener::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(listener.accept().unwrap().is_none());
        let _client = UnixStream::connect(&path).unwrap();
        assert!(listener.accept().unwrap().is_some());
        drop(listener);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_in_the_way_is_left_alone_unless_nobody_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let first = Listener::bind(&path).unwrap();
        assert!(matches!(Listener::bind(&path), Err(ListenError::InUse { .. })));
        drop(first);
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(matches!(Listener::bind(&file), Err(ListenError::NoSocket { .. })));
        assert_eq!(fs::read(&file).unwrap(), b"x");
    }

    #[test]
    fn a_name_left_behind_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _listener = Listener::bind(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
    }
}
