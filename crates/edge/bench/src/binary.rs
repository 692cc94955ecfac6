//! The command that is measured.

use std::path::Path;

/// Where the command is, built as it is installed.
pub fn virtbench() -> &'static Path {
    Path::new("target/release/virtbench")
}
