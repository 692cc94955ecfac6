//! The fence's daemon as an NBD server, beside QEMU's and nbdkit's on the same file with the same client.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::pairs::{Claim, Verdict, alternated};
use crate::servers::{self, Server};
use crate::tools::{self, Case, Engine, Target, virtbench};

/// Measurements of each server at most: each takes four seconds.
const MOST_ROUNDS: usize = 7;
/// What a disk takes of its device besides its size: the label.
const FILE_SIZE: &str = "1026M";

/// Starts a server at a socket, over a file.
type Start = fn(&Path, &Path) -> Result<Server>;

/// Measures the servers in turns, and holds ours to 1.5 times each of the others at depth 32.
pub fn check(rounds: usize, folder: &Path) -> Result<Vec<Verdict>> {
    let file = folder.join("nbd.img");
    tools::make_file_of(&file, FILE_SIZE)?;
    // Each beside ours on the same way to the file: QEMU's past the page cache, nbdkit's through it.
    let others: [(&str, Start, Start); 2] = [
        ("qemu-storage-daemon, direct", servers::storage_daemon_nbd, fence_direct),
        ("nbdkit file, page cache", servers::nbdkit_file, fence_buffered),
    ];
    let mut verdicts = Vec::new();
    for (name, start, fence) in others {
        for (depth, claims) in [(1, vec![Claim::iops(1.0)]), (32, vec![Claim::iops(1.5)])] {
            let mut pairs = Vec::new();
            for round in 0..rounds.min(MOST_ROUNDS) {
                // Both want the file for themselves, so they take turns.
                let side = |start| one(start, folder, &file, depth);
                pairs.push(alternated(round, || side(fence), || side(start))?);
            }
            let case = format!("NBD server, depth {depth}, against {name}");
            verdicts.extend(claims.iter().map(|claim| claim.hold(&case, &pairs)));
        }
    }
    Ok(verdicts)
}

fn one(start: Start, folder: &Path, file: &Path, depth: u32) -> Result<crate::pairs::Sample> {
    let socket = folder.join("served");
    let _ = std::fs::remove_file(&socket);
    let _server = start(&socket, file)?;
    Case::new(&Target::Nbd(servers::uri_of(&socket, "disk")), depth).measure(Engine::Virtbench)
}

fn fence_direct(socket: &Path, file: &Path) -> Result<Server> {
    fence(socket, file, "file")
}

fn fence_buffered(socket: &Path, file: &Path) -> Result<Server> {
    fence(socket, file, "buffered")
}

/// Ours: the whole path, with a scheduler that lets everything pass.
fn fence(socket: &Path, file: &Path, kind: &str) -> Result<Server> {
    let config = file.with_extension("toml");
    let text = format!(
        "[slow]\ndevice = \"{kind}:{}\"\n[scheduler]\nname = \"pass-through\"\n[nbd]\nlisten = \"unix:{}\"\n\
         [[disk]]\nname = \"disk\"\nexport = \"disk\"\nsize = \"1 GiB\"\n",
        absolute(file)?,
        absolute(socket)?,
    );
    std::fs::write(&config, text)?;
    let format = Command::new(virtbench()).args(["fence", "format", "--force"]).arg(&config).output()?;
    ensure!(format.status.success(), "{}", String::from_utf8_lossy(&format.stderr));
    servers::fence(&config, socket)
}

fn absolute(path: &Path) -> Result<String> {
    let path = std::path::absolute(path).context("the folder of the measurements")?;
    Ok(path.display().to_string())
}
