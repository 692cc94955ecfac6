//! `virtbench-agent`: init of a guest, a child on an inherited socket (`--fd N`), the same in namespaces of its own
//! (`--alone N NETWORK`, NETWORK an open network namespace), what watches a desktop's session (`--desktop-session DISPLAY PORT`), or on another machine (`--remote FOLDER [LOGIN [made]]`,
//! or `--remote-as NAME FOLDER [LOGIN [made]]` where several share a folder; `--enclose-as` for an appliance there). On Windows it is begun by `--session ORDER` alone.

#[cfg(unix)]
mod linux_main;
#[cfg(windows)]
mod windows_main;

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    return linux_main::main();
    #[cfg(windows)]
    return windows_main::main();
}
