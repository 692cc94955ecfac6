//! The command that is measured.

use std::path::Path;

/// Where the release build of the command is.
pub fn virtbench() -> &'static Path {
    Path::new("target/release/virtbench")
}
