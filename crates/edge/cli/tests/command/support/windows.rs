//! A machine with Windows, as far as Wine is one: an OpenSSH server on loopback whose every session is given to Wine's `cmd.exe`, as OpenSSH for
//! Windows gives it to the one of Windows.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use virtbench_samples::this_run::of_this_run;

use super::folder;
use super::sshd::Sshd;

/// What programs of one machine share, which ends with the last of them unless it is told to stay: a session takes half a second less where it did.
/// Services that it starts keep the first program's output open, so that this is one which nobody waits for.
const SERVER: &str = "/usr/lib/wine/wineserver64";
/// What Rust's programs look for in the system and Wine 8 has not: its one function, by one that Wine has.
const RANDOM: &str = "#include <windows.h>\n#include <ntsecapi.h>\n\
    __declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return RtlGenRandom(data, (ULONG)size); }\n";

/// Which shell the server gives sessions to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    Cmd,
    /// What PowerShell does that matters: it has its own idea of words with signs, and reads the session's input itself.
    PowerShell,
}

/// The machine. Dropping it ends all of its programs.
pub struct Windows {
    sshd: Sshd,
    prefix: TempDir,
}

impl Windows {
    pub fn start(shell: Shell) -> Self {
        Self::with(shell, "")
    }

    /// With more shell commands before each session.
    pub fn with(shell: Shell, before: &str) -> Self {
        Self::configured(shell, before, "")
    }

    /// With more lines of the server's configuration.
    pub fn configured(shell: Shell, before: &str, configuration: &str) -> Self {
        Self::made(shell, before, configuration, "")
    }

    /// With shell commands before each session, in a mount namespace in which others were done first: Wine's server, which opens files for all
    /// programs, starts there.
    pub fn mounted(before: &str, mounts: &str) -> Self {
        Self::made(Shell::Cmd, before, "", mounts)
    }

    fn made(shell: Shell, before: &str, configuration: &str, mounts: &str) -> Self {
        let prefix = folder();
        let path = prefix.path();
        install(path);
        let script = path.join("session");
        let others = match shell {
            Shell::Cmd => String::new(),
            Shell::PowerShell => "case $line in 'echo virtbench-shell'*) printf '%s\\n' virtbench-shell %OS% Windows_NT; exit ;; esac\n\
                                  cat > /dev/null &\nwine cmd.exe /c \"$line\" < /dev/null\ncode=$?; kill $!; exit $code\n"
                .to_owned(),
        };
        let text = format!(
            "#!/bin/sh\nline=$SSH_ORIGINAL_COMMAND\nexport WINEPREFIX={prefix} WINEDEBUG=-all LC_ALL=C.UTF-8\n\
             {SERVER} -p < /dev/null > /dev/null 2>&1 && wine cmd.exe /c exit < /dev/null > /dev/null 2>&1\n\
             cd {home} || exit 1\ncase $line in /usr/lib/openssh/sftp-server*) exec /usr/lib/openssh/sftp-server ;; esac\n\
             {before}\n{others}exec wine cmd.exe /c \"$line\"\n",
            prefix = path.display(),
            home = home(path).display(),
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let lines = format!(
            "{configuration}\nSubsystem sftp /usr/lib/openssh/sftp-server\nForceCommand {}\n",
            script.display()
        );
        Self { sshd: Sshd::with(&lines, mounts), prefix }
    }

    /// The process of Linux that runs a program of this machine.
    pub fn process(&self, program: &str) -> u32 {
        let prefix = format!("WINEPREFIX={}", self.prefix.path().display()).into_bytes();
        let runs_it = |id: &u32| {
            let of = |what: &str| fs::read(format!("/proc/{id}/{what}")).unwrap_or_default();
            let first = of("cmdline").split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
            first.ends_with(program.as_bytes())
                && of("environ").split(|byte| *byte == 0).any(|one| one == prefix)
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.into_iter().find(runs_it).unwrap_or_else(|| panic!("{program} does not run"))
    }

    /// The address of a folder on it, such as `/C:/bench`.
    pub fn address(&self, folder: &str) -> String {
        let linux = self.sshd.address("x");
        let config = linux.split_once("?config=").unwrap().1;
        format!("ssh://metal{folder}?config={config}")
    }

    /// Its port on loopback, and the file that tells ssh how to reach it.
    pub fn login(&self) -> (u16, String) {
        let address = self.address("/C:/x");
        (self.sshd.port(), address.split_once("?config=").unwrap().1.to_owned())
    }

    /// Where drive C: is.
    pub fn drive(&self) -> PathBuf {
        self.prefix.path().join("drive_c")
    }

    /// Whether no program with this in its command line runs in it.
    pub fn has_no_process(&self, words: &str) -> bool {
        let own = format!("WINEPREFIX={}\0", self.prefix.path().display());
        let is_here = |process: &fs::DirEntry| {
            let text = |name| fs::read(process.path().join(name)).unwrap_or_default();
            let environment = String::from_utf8_lossy(&text("environ")).into_owned() + "\0";
            environment.contains(&own) && String::from_utf8_lossy(&text("cmdline")).contains(words)
        };
        !fs::read_dir("/proc").unwrap().flatten().any(|process| is_here(&process))
    }

    /// Where another drive is, which is a folder from now on.
    pub fn has_drive(&self, letter: char, place: &Path) {
        let drive = self.prefix.path().join(format!("dosdevices/{letter}:"));
        std::os::unix::fs::symlink(place, drive).unwrap();
    }

    /// A command for a program in this machine.
    pub fn wine(&self) -> Command {
        wine(self.prefix.path())
    }

    /// Names of what virtbench has left in the user's own folder.
    pub fn left_at_home(&self) -> Vec<String> {
        names(&home(self.prefix.path())).into_iter().filter(|name| name.contains("virtbench")).collect()
    }

    /// Names of what is in a folder of drive C:.
    pub fn names(&self, folder: &str) -> Vec<String> {
        names(&self.drive().join(folder))
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        end_server(self.prefix.path());
    }
}

/// Ends all programs of a machine, and waits for their end.
fn end_server(prefix: &Path) {
    for order in ["-k", "-w"] {
        let mut server = Command::new(SERVER);
        let _ = server.arg(order).env("WINEPREFIX", prefix).stderr(Stdio::null()).status();
    }
}

fn wine(prefix: &Path) -> Command {
    let mut command = Command::new("wine");
    command.env("WINEPREFIX", prefix).env("WINEDEBUG", "-all").env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn home(prefix: &Path) -> PathBuf {
    let users = prefix.join("drive_c/users");
    let own = names(&users).into_iter().find(|name| name != "Public").unwrap();
    users.join(own)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Makes a machine in an empty folder: as the one that is booted once a run, with an identity of its own. Files that no program changes in place
/// are the same ones.
fn install(prefix: &Path) {
    let first = of_this_run(Path::new(env!("CARGO_TARGET_TMPDIR")), "windows", boot);
    let copied =
        Command::new("cp").args(["-al", "."]).arg(prefix).current_dir(&first.folder).status().unwrap();
    assert!(copied.success(), "cp: {copied}");
    for name in names(prefix).into_iter().filter(|name| name.ends_with(".reg")) {
        let text = fs::read(first.folder.join(&name)).unwrap();
        fs::remove_file(prefix.join(&name)).unwrap();
        let own = format!("\"MachineGuid\"=\"{}\"", prefix.file_name().unwrap().to_string_lossy());
        let text: Vec<Vec<u8>> =
            text.split(|byte| *byte == b'\n')
                .map(|line| {
                    if line.starts_with(b"\"MachineGuid\"") {
                        own.clone().into_bytes()
                    } else {
                        line.to_vec()
                    }
                })
                .collect();
        fs::write(prefix.join(&name), text.join(&b'\n')).unwrap();
    }
}

/// Has Wine make a machine in an empty folder.
fn boot(prefix: &Path) {
    // Without what shows web pages and runs programs for .NET, which take half of the time.
    let made = wine(prefix)
        .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
        .args(["wineboot", "-i"])
        .status()
        .expect("wine: run `scripts/setup.sh test`");
    assert!(made.success(), "wineboot: {made}");
    let (source, library) =
        (prefix.join("random.c"), prefix.join("drive_c/windows/system32/bcryptprimitives.dll"));
    fs::write(&source, RANDOM).unwrap();
    let mut compiler = Command::new("x86_64-w64-mingw32-gcc");
    compiler.args(["-shared", "-o"]).arg(&library).arg(&source).arg("-ladvapi32");
    assert!(compiler.status().expect("mingw: run `scripts/setup.sh test`").success());
    end_server(prefix);
}
