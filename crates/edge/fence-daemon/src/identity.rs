//! Identities of what is new.

use std::io;

use crate::serve_error::{ServeError, system};

pub(crate) fn random_uuid() -> Result<[u8; 16], ServeError> {
    let mut uuid = [0; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut uuid[..], flags) {
        Ok(16) => Ok(uuid),
        Ok(_) => Err(system("random numbers", io::Error::from_raw_os_error(libc::EIO))),
        Err(error) => Err(system("random numbers", error.into())),
    }
}
