//! What `--target` names, whether it is as large as it is to be, and why it cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_units::format_bytes;

/// Why a target cannot be used. Each message says what to do next.
#[derive(Debug, Error)]
pub enum TargetError {
    /// It is a directory.
    #[error("{path} is a directory: name a file in it, such as {path}/test.img", path = .0.display())]
    Directory(PathBuf),
    /// It is neither a file nor a block device.
    #[error("{path} is neither a regular file nor a block device", path = .0.display())]
    Kind(PathBuf),
    /// It does not exist and no size was given.
    #[error("{path} does not exist: give --size to have it made", path = .0.display())]
    Missing(PathBuf),
    /// The load writes, and the data was not made by virtbench.
    #[error(
        "{path} was not made by virtbench and this load writes: name another target, read only (--read 100), \
         or give --allow-overwrite to destroy its contents", path = .0.display()
    )]
    Foreign(PathBuf),
    /// A block device that holds a mounted file system, swap or another device.
    #[error("{path} is in use ({use_}): unmount or detach it first", path = path.display())]
    InUse {
        /// The device.
        path: PathBuf,
        /// What it is used for.
        use_: String,
    },
    /// It is smaller than asked.
    #[error("{path} has {}, less than the {} asked for: lower --size", format_bytes(*actual_bytes),
        format_bytes(*wanted_bytes), path = path.display())]
    TooSmall {
        /// The target.
        path: PathBuf,
        /// Its size, in bytes.
        actual_bytes: u64,
        /// The size asked for, in bytes.
        wanted_bytes: u64,
    },
    /// The file system has no room for it.
    #[error("no room for {} at {path}: {} are free; lower --size or name a target elsewhere",
        format_bytes(*wanted_bytes), format_bytes(*free_bytes), path = path.display())]
    Full {
        /// The target.
        path: PathBuf,
        /// The size asked for, in bytes.
        wanted_bytes: u64,
        /// The room left, in bytes.
        free_bytes: u64,
    },
    /// It is being written by another run.
    #[error("{path} is being prepared by another run: wait for it, or name another target", path = .0.display())]
    Busy(PathBuf),
    /// The user interrupted its preparation.
    #[error("interrupted while {path} was being written; nothing is left of it", path = .0.display())]
    Interrupted(PathBuf),
    /// It names a kind of target that this program does not know.
    #[error(
        "{0}: this kind of target is not known here; there are FILE, DEVICE, null, nbd://HOST[:PORT]/EXPORT, \
         nbd+unix:///EXPORT?socket=PATH and vhost-user:SOCKET"
    )]
    Name(String),
    /// It is reached through a socket, and this build leaves such targets out.
    #[cfg(not(feature = "network-targets"))]
    #[error("{path}: targets that are reached through a socket are not in this build, which `make study` made: \
             `make install` builds all of virtbench", path = .0.display())]
    NotBuilt(PathBuf),
    /// The load writes, and the server's disk is read-only.
    #[error("{0} is read-only and this load writes: use --read 100, or have it served writable")]
    ReadOnly(String),
    /// An NBD server cannot be used.
    #[cfg(feature = "network-targets")]
    #[error(transparent)]
    Nbd(#[from] crate::nbd::NbdError),
    /// A vhost-user-blk server cannot be used.
    #[cfg(feature = "network-targets")]
    #[error(transparent)]
    VhostUser(#[from] crate::vhost_user::VhostUserError),
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The target.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl TargetError {
    /// For `map_err`: an operating-system error while doing `action` to `path`.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

pub(super) fn check_size(path: &Path, actual_bytes: u64, wanted_bytes: u64) -> Result<(), TargetError> {
    if actual_bytes < wanted_bytes || actual_bytes == 0 {
        return Err(TargetError::TooSmall { path: path.to_owned(), actual_bytes, wanted_bytes });
    }
    Ok(())
}

/// What `--target` names, before anything has been looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetName {
    /// A file or block device.
    Path(PathBuf),
    /// `null`: operations complete at once.
    Null,
    /// An export of an NBD server, as a URI: `nbd://HOST[:PORT]/EXPORT` or
    /// `nbd+unix:///EXPORT?socket=PATH`.
    Nbd(String),
    /// `vhost-user:SOCKET`: a vhost-user-blk server.
    VhostUser(PathBuf),
}

impl TargetName {
    /// Tells the kinds of targets apart. A file whose name looks like one of the others is named with
    /// a folder, as in `./null`.
    ///
    /// # Errors
    /// The name is a URI of a kind that is not known.
    pub fn parse(name: &Path) -> Result<Self, TargetError> {
        let Some(text) = name.to_str() else { return Ok(Self::Path(name.to_owned())) };
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        Ok(match scheme.as_str() {
            "nbd" | "nbds" | "nbd+unix" | "nbds+unix" => Self::Nbd(text.to_owned()),
            "vhost-user" => match &text["vhost-user:".len()..] {
                "" => return Err(TargetError::Name(text.to_owned())),
                socket => Self::VhostUser(PathBuf::from(socket)),
            },
            _ if text == "null" => Self::Null,
            _ if text.contains("://") => return Err(TargetError::Name(text.to_owned())),
            _ => Self::Path(name.to_owned()),
        })
    }

    /// Whether a target of this name is made when it does not exist.
    #[must_use]
    pub fn is_made(&self) -> bool {
        matches!(self, Self::Path(_) | Self::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_checked() {
        assert!(check_size(Path::new("x"), 4096, 4096).is_ok());
        let error = check_size(Path::new("x"), 4096, 8192).unwrap_err().to_string();
        assert!(error.contains("4 KiB") && error.contains("--size"), "{error}");
        assert!(check_size(Path::new("x"), 0, 0).is_err());
    }

    #[test]
    fn kinds_are_told_apart() {
        let parsed = |text: &str| TargetName::parse(Path::new(text)).unwrap();
        assert_eq!(parsed("null"), TargetName::Null);
        for path in ["./null", "/dev/sdb", "a:b", "dir/nbd:", "C:\\x"] {
            assert_eq!(parsed(path), TargetName::Path(path.into()));
        }
        assert_eq!(parsed("vhost-user:/run/v.sock"), TargetName::VhostUser("/run/v.sock".into()));
        for uri in ["nbd://localhost", "NBD+unix:///?socket=s", "nbds://h"] {
            assert_eq!(parsed(uri), TargetName::Nbd(uri.into()));
        }
    }

    #[test]
    fn unknown_kinds_are_named_with_the_known_ones() {
        for text in ["iscsi://host/iqn/0", "vhost-user:", "http://x"] {
            let message = TargetName::parse(Path::new(text)).unwrap_err().to_string();
            assert!(message.contains(text) && message.contains("vhost-user:SOCKET"), "{message}");
        }
    }
}
