//! Builds the agent as a static program for each kind of processor, so that this crate carries them.
//!
//! The nested cargo has a target directory of its own, as the outer one holds the lock on its own.
//! `VIRTBENCH_AGENTS=host` leaves out the kinds that only machines of another kind or system need.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Kinds of processors, as `uname -m` and Rust's targets name them.
const MACHINES: [&str; 2] = ["x86_64", "aarch64"];
/// The target of the agent for Windows, the linker that it needs, and the package of Debian that has it.
const WINDOWS: &str = "x86_64-pc-windows-gnu";
const WINDOWS_LINKER: &str = "x86_64-w64-mingw32-gcc";
const WINDOWS_PACKAGE: &str = "gcc-mingw-w64-x86-64";
/// What is read and written at once where an agent is sent to, in bytes: it is sent in whole blocks.
const BLOCK_BYTES: usize = 64 << 10;
/// What the agent is made of, from the workspace's root.
const SOURCES: [&str; 14] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates/edge/agent",
    "crates/edge/counters",
    "crates/edge/desktop-session",
    "crates/edge/engine",
    "crates/edge/host",
    "crates/edge/mark",
    "crates/edge/workloads",
    "crates/pure/desktops",
    "crates/pure/recipe",
    "crates/pure/record",
    "crates/pure/units",
    "crates/pure/workload",
];

fn main() -> ExitCode {
    match provide_agents() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={}", error.to_string().replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn provide_agents() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=VIRTBENCH_AGENTS");
    let (mut rows, mut windows) = (String::new(), String::new());
    if env::var_os("CARGO_FEATURE_CARRIED").is_some() {
        let host = variable("CARGO_CFG_TARGET_ARCH")?;
        let only_host = env::var("VIRTBENCH_AGENTS").is_ok_and(|agents| agents == "host");
        let machines: Vec<&str> =
            MACHINES.into_iter().filter(|machine| !only_host || *machine == host).collect();
        let mut targets: Vec<String> = machines.iter().map(|machine| target(machine)).collect();
        if !only_host {
            require_windows_linker()?;
            targets.push(WINDOWS.to_owned());
        }
        let built = build(&out, &targets)?;
        for machine in machines {
            rows += &row(&out, &built, machine, &target(machine), "virtbench-agent")?;
        }
        if !only_host {
            windows = row(&out, &built, "windows", WINDOWS, "virtbench-agent.exe")?;
        }
    }
    fs::write(out.join("block_bytes.rs"), BLOCK_BYTES.to_string())?;
    fs::write(out.join("agents.rs"), format!("&[{rows}]"))?;
    fs::write(out.join("windows.rs"), format!("&[{windows}]"))?;
    Ok(())
}

/// Keeps what is sent, the program and zeros up to a whole block; returns its row of the table.
fn row(
    out: &Path,
    built: &Built,
    machine: &str,
    target: &str,
    program: &str,
) -> Result<String, Box<dyn Error>> {
    let agent = built.folder.join(target).join(built.profile).join(program);
    let mut program = fs::read(&agent).map_err(|error| format!("the agent {}: {error}", agent.display()))?;
    let length = program.len();
    program.resize(length.next_multiple_of(BLOCK_BYTES), 0);
    fs::write(out.join(format!("virtbench-agent-{machine}")), program)?;
    Ok(format!(
        "Carried {{ machine: \"{machine}\", length: {length}, \
         bytes: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/virtbench-agent-{machine}\")) }},"
    ))
}

fn target(machine: &str) -> String {
    format!("{machine}-unknown-linux-musl")
}

/// Where agents were built.
struct Built {
    folder: PathBuf,
    profile: &'static str,
}

/// Builds the agents: for tests quickly, else to be small and fast.
fn build(out: &Path, targets: &[String]) -> Result<Built, Box<dyn Error>> {
    let workspace = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../..").canonicalize()?;
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join(source).display());
    }
    // OUT_DIR is TARGET/PROFILE/build/PACKAGE/out.
    let folder = out.ancestors().nth(4).ok_or("OUT_DIR has no target directory")?.join("agent");
    let profile = if variable("PROFILE")? == "debug" { "agent-test" } else { "agent" };
    let host = variable("HOST")?;
    let mut cargo = Command::new(variable("CARGO")?);
    cargo.current_dir(&workspace).args(["build", "--package", "virtbench-agent", "--profile", profile]);
    cargo.arg("--target-dir").arg(&folder);
    for target in targets {
        require_target(target)?;
        cargo.args(["--target", target]);
    }
    if workspace.join("Cargo.lock").exists() {
        cargo.arg("--locked");
    }
    for (name, _) in env::vars_os().filter(|(name, _)| belongs_to_outer_build(name)) {
        cargo.env_remove(name);
    }
    // The linker of another kind of processor is Rust's own, which needs no package.
    let foreign = MACHINES.into_iter().filter(|machine| !host.starts_with(machine)).map(target);
    for target in foreign.filter(|target| targets.contains(target)) {
        let name = target.to_uppercase().replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{name}_LINKER"), "rust-lld");
    }
    let output = cargo.output()?;
    if !output.status.success() {
        return Err(format!("the agent did not build: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(Built { folder, profile })
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

fn require_windows_linker() -> Result<(), Box<dyn Error>> {
    match Command::new(WINDOWS_LINKER).arg("--version").output() {
        Ok(said) if said.status.success() => Ok(()),
        _ => Err(format!(
            "the agent for Windows is linked by {WINDOWS_LINKER}, which is not installed: \
             apt-get install {WINDOWS_PACKAGE} (or VIRTBENCH_AGENTS=host)"
        )
        .into()),
    }
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
