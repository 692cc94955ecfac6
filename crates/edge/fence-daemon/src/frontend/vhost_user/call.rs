//! Descriptors by which both sides tell each other: none of them may make us wait.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketType, send, sockopt};

use super::wire::WireError;

/// Tells a client that something is done.
#[derive(Debug)]
pub enum Call {
    /// As nearly all of them have it.
    Event(OwnedFd),
    /// One end of a pair of stream sockets, as the kernel of User Mode Linux has it: an eventfd would not wake it.
    Socket(OwnedFd),
}

impl Call {
    /// Takes it from a client.
    ///
    /// # Errors
    /// It is something else.
    pub fn new(fd: OwnedFd) -> Result<Self, WireError> {
        let local = sockopt::socket_domain(&fd).is_ok_and(|domain| domain == AddressFamily::UNIX);
        if local && sockopt::socket_type(&fd).is_ok_and(|kind| kind == SocketType::STREAM) {
            return Ok(Self::Socket(fd));
        }
        eventfd(fd).map(Self::Event)
    }

    /// Tells the client. One that has not read what it was told before knows already.
    pub fn tell(&self) {
        match self {
            Self::Event(event) => add_one(event),
            Self::Socket(socket) => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                let _ = send(socket, &1u64.to_ne_bytes(), flags);
            }
        }
    }
}

/// Adds one to an eventfd. One that is full tells all there is to tell.
pub fn add_one(event: &OwnedFd) {
    let _ = rustix::io::write(event.as_fd(), &1u64.to_ne_bytes());
}

/// Takes an eventfd from a client: other files may not be read and written without fear of waiting.
///
/// # Errors
/// It is something else, or the kernel does not say what it is.
pub fn eventfd(fd: OwnedFd) -> Result<OwnedFd, WireError> {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    match link {
        Ok(link) if link.as_os_str() == "anon_inode:[eventfd]" => {}
        Ok(_) => return Err(WireError::Malformed("a descriptor that is no eventfd")),
        Err(_) => return Err(WireError::Malformed("a descriptor of which /proc does not say what it is")),
    }
    let flags = rustix::fs::fcntl_getfl(&fd).map_err(WireError::Socket)?;
    rustix::fs::fcntl_setfl(&fd, flags | rustix::fs::OFlags::NONBLOCK).map_err(WireError::Socket)?;
    Ok(fd)
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
