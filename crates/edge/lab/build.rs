//! Builds the agent as a static program for each kind of processor, so that they can be carried inside this crate,
//! packed.
//!
//! The nested cargo has a target directory of its own, as the outer one holds the lock on its own.
//! `VIRTBENCH_AGENT=path` takes a ready-made agent for the host's kind instead. `VIRTBENCH_AGENTS=host` leaves the others
//! out, which only machines of another kind need.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};

/// Kinds of processors, as `uname -m` and Rust's targets name them.
const MACHINES: [&str; 2] = ["x86_64", "aarch64"];
/// What is read and written at once where an agent is sent to, in bytes: it is sent in whole blocks.
const BLOCK_BYTES: usize = 64 << 10;
/// What the agent is made of, from the workspace's root.
const SOURCES: [&str; 13] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates/edge/agent",
    "crates/edge/counters",
    "crates/edge/desktop-session",
    "crates/edge/engine",
    "crates/edge/host",
    "crates/edge/workloads",
    "crates/pure/desktops",
    "crates/pure/recipe",
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
    println!("cargo::rerun-if-env-changed=VIRTBENCH_AGENTS");
    let host = variable("CARGO_CFG_TARGET_ARCH")?;
    let only_host = env::var("VIRTBENCH_AGENTS").is_ok_and(|agents| agents == "host");
    let machines: Vec<&str> = MACHINES.into_iter().filter(|machine| !only_host || *machine == host).collect();
    let ready_made = env::var_os("VIRTBENCH_AGENT").map(PathBuf::from);
    let missing: Vec<&str> =
        machines.iter().copied().filter(|machine| *machine != host || ready_made.is_none()).collect();
    let built = if missing.is_empty() { PathBuf::new() } else { build(&out, &missing)? };
    let mut table = String::new();
    for &machine in &machines {
        let of_target = || built.join(target(machine)).join("agent/virtbench-agent");
        let agent = ready_made.clone().filter(|_| machine == host).unwrap_or_else(of_target);
        println!("cargo::rerun-if-changed={}", agent.display());
        let program = fs::read(&agent).map_err(|error| format!("the agent {}: {error}", agent.display()))?;
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&program)?;
        fs::write(out.join(format!("virtbench-agent-{machine}")), packed.finish()?)?;
        table += &row(machine, program);
    }
    fs::write(out.join("block_bytes.rs"), BLOCK_BYTES.to_string())?;
    fs::write(out.join("agents.rs"), format!("&[{table}]"))?;
    Ok(())
}

/// A row of the table of agents: what is sent is the program and zeros up to a whole block.
fn row(machine: &str, mut program: Vec<u8>) -> String {
    let length = program.len();
    program.resize(program.len().next_multiple_of(BLOCK_BYTES), 0);
    let digest: String = Sha256::digest(&program).iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "Packed {{ machine: \"{machine}\", digest: \"{digest}\", length: {length}, \
         bytes: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/virtbench-agent-{machine}\")) }},"
    )
}

fn target(machine: &str) -> String {
    format!("{machine}-unknown-linux-musl")
}

/// Builds the agents; returns the folder with one for each target.
fn build(out: &Path, machines: &[&str]) -> Result<PathBuf, Box<dyn Error>> {
    let workspace = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../..").canonicalize()?;
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }
    // OUT_DIR is TARGET/PROFILE/build/PACKAGE/out.
    let built = out.ancestors().nth(4).ok_or("OUT_DIR has no target directory")?.join("agent");
    let host = variable("HOST")?;
    let mut cargo = Command::new(variable("CARGO")?);
    cargo.current_dir(&workspace).args(["build", "--package", "virtbench-agent", "--profile", "agent"]);
    cargo.arg("--target-dir").arg(&built);
    for machine in machines {
        require_target(&target(machine))?;
        cargo.args(["--target", &target(machine)]);
    }
    if workspace.join("Cargo.lock").exists() {
        cargo.arg("--locked");
    }
    for (name, _) in env::vars_os().filter(|(name, _)| belongs_to_outer_build(name)) {
        cargo.env_remove(name);
    }
    // The linker of another kind of processor is Rust's own, which needs no package.
    for machine in machines.iter().filter(|machine| !host.starts_with(*machine)) {
        let name = target(machine).to_uppercase().replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{name}_LINKER"), "rust-lld");
    }
    let output = cargo.output()?;
    if !output.status.success() {
        return Err(format!("the agent did not build: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(built)
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

fn require_target(target: &str) -> Result<(), Box<dyn Error>> {
    let output =
        Command::new(variable("RUSTC")?).args(["--print", "target-libdir", "--target", target]).output()?;
    let directory = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && Path::new(directory.trim()).is_dir() {
        return Ok(());
    }
    Err(format!("the agent is built for {target}, which is not installed: rustup target add {target} (or VIRTBENCH_AGENTS=host)").into())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}
