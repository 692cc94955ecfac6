//! Files that a host sends in pieces, of which appliances on this machine are made.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::protocol::appliance::Piece;

/// Keeps a piece in this folder.
///
/// # Errors
/// In words.
pub(crate) fn store(folder: &Path, piece: &Piece) -> Result<(), String> {
    let end = piece.offset.checked_add(piece.bytes.len() as u64);
    if !is_plain(&piece.name) || end.is_none_or(|end| end > piece.file_bytes) {
        return Err(format!("{piece:?} is no piece of a file: a defect"));
    }
    let write = || -> io::Result<()> {
        let path = folder.join(&piece.name);
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() != piece.file_bytes {
            file.set_len(piece.file_bytes)?;
        }
        file.write_all_at(&piece.bytes, piece.offset)
    };
    write().map_err(|error| format!("a file of {} bytes cannot be kept there: {error}", piece.file_bytes))
}

/// Whether a name leads nowhere else.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Copies a file, sharing blocks where its file system can, and without writing what is zeros.
///
/// # Errors
/// In words.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let mut command = Command::new("cp");
    command.args(["--reflink=auto", "--sparse=auto", "--no-preserve=all", "--"]).arg(from).arg(to);
    let output = command.stdin(Stdio::null()).output();
    let failed = |why: &str| format!("{} cannot be copied there: {why}", from.display());
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if output.status.success() { Ok(()) } else { Err(failed(String::from_utf8_lossy(&output.stderr).trim())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_in_pieces_and_is_zeros_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let piece = |name: &str, offset, bytes: &[u8]| Piece {
            name: name.into(),
            file_bytes: 10,
            offset,
            bytes: bytes.to_vec(),
        };
        store(folder.path(), &piece("0", 7, b"end")).unwrap();
        store(folder.path(), &piece("0", 1, b"at")).unwrap();
        let copied = folder.path().join("copy");
        copy(&folder.path().join("0"), &copied).unwrap();
        assert_eq!(std::fs::read(&copied).unwrap(), b"\0at\0\0\0\0end");
        for wrong in
            [piece("../x", 0, b""), piece("", 0, b""), piece("0", 8, b"end"), piece("0", u64::MAX, b"e")]
        {
            assert!(store(folder.path(), &wrong).unwrap_err().contains("no piece of a file"));
        }
        let none = copy(Path::new("/nonexistent"), &copied).unwrap_err();
        assert!(
            none.starts_with("/nonexistent cannot be copied there: ") && none.contains("No such file"),
            "{none}"
        );
    }
}
