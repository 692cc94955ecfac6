//! The folder that a login made for this program. Windows keeps a program's file as long as it runs, so a command of the system's removes it
//! afterwards.

use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use windows_sys::Win32::System::Threading::{
    CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, DETACHED_PROCESS,
};

use crate::work_folder::sweep_logins;

/// How often the command tries, about once a second.
const ATTEMPTS: u32 = 60;

/// Removes the folder once this value is gone and the process has ended.
#[derive(Debug)]
pub(crate) struct Departure(Option<PathBuf>);

impl Departure {
    /// Notes the folder, if there is one, and removes what killed logins have left beside it.
    pub(crate) fn begin(login: Option<&Path>) -> Self {
        if let Some(beside) = login.and_then(Path::parent) {
            sweep_logins(beside);
        }
        Self(login.map(Path::to_owned))
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        let Some(login) = &self.0 else { return };
        // The folder's name is of this program's own making, without anything that the command's language would take for more than a letter.
        let Some((parent, name)) = login.parent().zip(login.file_name()) else { return };
        let name = name.to_string_lossy();
        let line = format!(
            "for /l %i in (1,1,{ATTEMPTS}) do (rd /s /q {name} & if not exist {name} exit & ping -n 2 127.0.0.1)"
        );
        let start = |flags| {
            Command::new("cmd.exe")
                .args(["/d", "/c"])
                .raw_arg(&line)
                .current_dir(parent)
                .creation_flags(flags)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
        };
        let flags = DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP;
        // Out of the session's job where that lets its members go, as it ends them all when the session ends.
        if start(flags | CREATE_BREAKAWAY_FROM_JOB).or_else(|_| start(flags)).is_err() {
            eprintln!("virtbench-agent: {} could not be removed", login.display());
        }
    }
}
