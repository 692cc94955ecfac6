//! Builds the agent as a static program, so that it can be carried inside this crate.
//!
//! The nested cargo has a target directory of its own, as the outer one holds the lock on its own.
//! `VIRTBENCH_AGENT=path` takes a ready-made agent instead.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const TARGET: &str = "x86_64-unknown-linux-musl";
/// What the agent is made of, from the workspace's root.
const SOURCES: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates/edge/agent",
    "crates/edge/engine",
    "crates/edge/workloads",
    "crates/pure/record",
    "crates/pure/units",
    "crates/pure/workload",
];

fn main() -> ExitCode {
    match provide_agent() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={}", error.to_string().replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn provide_agent() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    println!("cargo::rerun-if-env-changed=VIRTBENCH_AGENT");
    let agent = match env::var_os("VIRTBENCH_AGENT") {
        Some(path) => PathBuf::from(path),
        None => build(&out)?,
    };
    println!("cargo::rerun-if-changed={}", agent.display());
    fs::copy(&agent, out.join("virtbench-agent"))
        .map_err(|error| format!("the agent {} cannot be copied: {error}", agent.display()))?;
    Ok(())
}

fn build(out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let workspace = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../..").canonicalize()?;
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }
    require_target()?;
    // OUT_DIR is TARGET/PROFILE/build/PACKAGE/out.
    let target = out.ancestors().nth(4).ok_or("OUT_DIR has no target directory")?.join("agent");
    let mut cargo = Command::new(variable("CARGO")?);
    cargo.current_dir(&workspace).args(["build", "--package", "virtbench-agent", "--profile", "agent"]);
    cargo.args(["--target", TARGET, "--target-dir"]).arg(&target);
    if workspace.join("Cargo.lock").exists() {
        cargo.arg("--locked");
    }
    for (name, _) in env::vars_os().filter(|(name, _)| belongs_to_outer_build(name)) {
        cargo.env_remove(name);
    }
    let output = cargo.output()?;
    if !output.status.success() {
        return Err(format!("the agent did not build: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(target.join(TARGET).join("agent/virtbench-agent"))
}

/// Flags, wrappers and package facts of the outer build would change the agent or rebuild it each time.
fn belongs_to_outer_build(name: &OsStr) -> bool {
    const KEPT: [&str; 7] = [
        "CARGO_HOME",
        "CARGO_MAKEFLAGS",
        "CARGO_NET_",
        "CARGO_HTTP_",
        "CARGO_REGISTRY_",
        "CARGO_REGISTRIES_",
        "CARGO_SOURCE_",
    ];
    const DROPPED: [&str; 6] = ["CARGO", "RUSTC", "RUSTFLAGS", "RUSTDOC", "LLVM_PROFILE", "DEP_"];
    let name = name.to_string_lossy();
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    (begins(&DROPPED) && !begins(&KEPT))
        || ["TARGET", "HOST", "PROFILE", "OPT_LEVEL", "DEBUG"].contains(&&*name)
}

fn require_target() -> Result<(), Box<dyn Error>> {
    let output =
        Command::new(variable("RUSTC")?).args(["--print", "target-libdir", "--target", TARGET]).output()?;
    let directory = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && Path::new(directory.trim()).is_dir() {
        return Ok(());
    }
    Err(format!("the agent is built for {TARGET}, which is not installed: rustup target add {TARGET}").into())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}
