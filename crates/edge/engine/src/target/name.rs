//! What `--target` names.

use std::path::{Path, PathBuf};

use super::TargetError;

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
