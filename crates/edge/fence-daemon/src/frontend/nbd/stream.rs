//! Bytes to and from a client, in the open or through TLS. Nothing here waits.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvmsg, send, sendmsg,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use thiserror::Error;

/// Bytes that may wait in the cipher to be sent.
const TLS_BUFFER_BYTES: usize = 256 << 10;

/// A connected socket.
#[derive(Debug)]
pub(super) struct Stream {
    socket: OwnedFd,
    tls: Option<Box<ServerConnection>>,
}

impl Stream {
    /// In the open, as every connection begins.
    pub(super) const fn plain(socket: OwnedFd) -> Self {
        Self { socket, tls: None }
    }

    /// From the next byte on everything is TLS.
    pub(super) fn start_tls(&mut self, tls: &TlsServer) -> io::Result<()> {
        let mut connection = tls.connection().map_err(io::Error::other)?;
        connection.set_buffer_limit(Some(TLS_BUFFER_BYTES));
        self.tls = Some(Box::new(connection));
        Ok(())
    }

    /// Fills `first`, then `then`. None if nothing has come; 0 if nothing will come any more.
    pub(super) fn receive(&mut self, first: &mut [u8], then: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else {
            let mut slices = [IoSliceMut::new(first), IoSliceMut::new(then)];
            let skip = usize::from(slices[0].is_empty());
            let received = recvmsg(
                &self.socket,
                &mut slices[skip..],
                &mut RecvAncillaryBuffer::default(),
                RecvFlags::DONTWAIT,
            );
            return unless_waiting(received.map(|received| received.bytes));
        };
        let count = decrypted(tls, first, then)?;
        if count != Some(0) && count.is_some() {
            return Ok(count);
        }
        let read = unless_waiting_io(tls.read_tls(&mut Socket(&self.socket)))?;
        tls.process_new_packets().map_err(io::Error::other)?;
        let count = decrypted(tls, first, then)?;
        // A handshake is answered at once.
        push(tls, &self.socket)?;
        Ok(match (count, read) {
            (None, Some(0)) => Some(0),
            (count, _) => count,
        })
    }

    /// Sends as much as there is room for. None if there is none.
    pub(super) fn send(&mut self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            return unless_waiting(sendmsg(&self.socket, slices, &mut SendAncillaryBuffer::default(), flags));
        };
        let count = tls.writer().write_vectored(slices)?;
        push(tls, &self.socket)?;
        Ok((count > 0).then_some(count))
    }

    /// Sends what waits in the cipher.
    pub(super) fn push(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => push(tls, &self.socket),
            None => Ok(()),
        }
    }

    /// Whether something waits in the cipher.
    pub(super) fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether bytes may have come that the socket knows nothing of any more.
    pub(super) const fn has_buffered(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the other side has closed, though what it said before may not have been received.
    pub(super) fn has_hung_up(&self) -> bool {
        let mut polled = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Says that nothing more will come, if that can be said without waiting.
    pub(super) fn goodbye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = push(tls, &self.socket);
        }
    }
}

/// What has been decrypted. None if nothing has; 0 if the client has said that nothing will come.
fn decrypted(tls: &mut ServerConnection, first: &mut [u8], then: &mut [u8]) -> io::Result<Option<usize>> {
    let mut total = 0;
    for slice in [first, then] {
        let mut filled = 0;
        while filled < slice.len() {
            match tls.reader().read(&mut slice[filled..]) {
                Ok(0) => return Ok(Some(total + filled)),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    total += filled;
                    return Ok((total > 0).then_some(total));
                }
                Err(error) => return Err(error),
            }
        }
        total += filled;
    }
    Ok(Some(total))
}

fn push(tls: &mut ServerConnection, socket: &OwnedFd) -> io::Result<()> {
    while tls.wants_write() {
        if unless_waiting_io(tls.write_tls(&mut Socket(socket)))?.is_none() {
            return Ok(());
        }
    }
    Ok(())
}

fn unless_waiting(result: Result<usize, Errno>) -> io::Result<Option<usize>> {
    unless_waiting_io(result.map_err(io::Error::from))
}

fn unless_waiting_io(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The socket as TLS wants it.
struct Socket<'a>(&'a OwnedFd);

impl Read for Socket<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let (count, _) = recv(self.0, bytes, RecvFlags::DONTWAIT)?;
        Ok(count)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(sendmsg(self.0, slices, &mut SendAncillaryBuffer::default(), flags)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Files in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority whose clients are let in; all clients without one.
    pub client_authority: Option<PathBuf>,
}

/// Why TLS cannot be spoken.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum TlsError {
    /// A file is not there, or not what it should be.
    #[error("nbd.tls: {path}: {why}", path = path.display())]
    File {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Certificate and key do not go together.
    #[error("nbd.tls: {0}")]
    Mismatch(String),
}

/// What every TLS connection needs.
#[derive(Debug, Clone)]
pub struct TlsServer(Arc<ServerConfig>);

impl TlsServer {
    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read or has nothing usable in it, or they do not go together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let mismatch = |error: &dyn std::fmt::Display| TlsError::Mismatch(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| unusable(&files.key, &error))?;
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| mismatch(&error))?;
        let builder = match &files.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| unusable(path, &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().map_err(|error| unusable(path, &error))?)
            }
        };
        let config = builder.with_single_cert(certificates(&files.certificate)?, key);
        Ok(Self(Arc::new(config.map_err(|error| mismatch(&error))?)))
    }

    /// For a client that has asked for it.
    pub(super) fn connection(&self) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.0))
    }
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> TlsError {
    TlsError::File { path: path.to_owned(), why: error.to_string() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, &error))?.collect();
    let found = found.map_err(|error| unusable(path, &error))?;
    if found.is_empty() {
        return Err(unusable(path, &"there is no certificate in it"));
    }
    Ok(found)
}
