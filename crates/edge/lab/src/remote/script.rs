//! What OpenSSH's programs and the shell of an existing machine are told: it gets the agent and executes it in its place.

use std::process::{Command, Stdio};
use std::sync::OnceLock;

use virtbench_agents::{Agent, AgentError, BLOCK_BYTES};
use virtbench_mark::{MARK_FILE, RunId, SHELL_MARK};

use super::address::SshAddress;

/// Begins every line that the script prints, so that a login's own are told from them.
pub(super) const MARK: &str = "virtbench-login";

/// The script. It is one line without single quotes or exclamation marks, so that any login shell hands it on as it is.
///
/// The named folder is made, but not its parents: a mistyped mount point would have another disk measured. The agent is told, and removes it.
/// All else that it writes is in a folder with a mark, but for an agent that is kept. The agent removes that folder, and those that killed logins
/// have left; what carries no mark is nobody's business.
///
/// Arguments: the folder, whether the agent is kept (`keep` or `remove`), the run's id, how the agent is begun, then machine, blocks and
/// digest of each agent.
const SCRIPT: &str = "\
umask 077; folder=$1; keep=$2; run=$3; begin=$4; made=; shift 4; \
say() { echo; echo \"MARK $*\"; }; \
stop() { say \"no $*\"; exit 1; }; refuse() { say \"unusable $*\"; exit 1; }; \
[ \"$(uname -s)\" = Linux ] || stop \"its system is $(uname -s), and virtbench has an agent for Linux\"; \
machine=$(uname -m); blocks=; all=; \
while [ $# -ge 3 ]; do all=\"$all $1\"; if [ \"$1\" = \"$machine\" ]; then blocks=$2; digest=$3; fi; shift 3; done; \
[ -n \"$blocks\" ] || stop \"its processor is $machine, and this virtbench has agents for$all: one that make install builds has more\"; \
[ -d \"$folder\" ] || { why=$(mkdir \"$folder\" 2>&1) || refuse \"cannot make the folder $folder: $why\"; made=made; }; \
[ -w \"$folder\" ] || refuse \"cannot write into $folder\"; \
command -v sha256sum >/dev/null || stop \"it has no sha256sum\"; \
FUNCTION; sum() { sha256sum \"$1\" 2>/dev/null | cut -c 1-64; }; \
cache=${XDG_CACHE_HOME:-$HOME/.cache}/virtbench; login=; \
away() { if [ -n \"$login\" ]; then rm -f \"$login/program\" \"$login/MARKER\"; rmdir \"$login\"; login=; fi; } 2>/dev/null; \
leave() { away; if [ -n \"$made\" ]; then rmdir \"$folder\" 2>/dev/null; fi; }; trap leave 0; trap \"exit 1\" 1 2 13 15; \
if [ $keep = keep ]; then set -- \"$cache\"; else set -- \"$folder\" \"${XDG_RUNTIME_DIR:-/tmp}\" /tmp /var/tmp \"$HOME\"; fi; \
for place in \"$@\"; do \
if [ $keep = keep ]; then mkdir -p \"$place\" 2>/dev/null; fi; \
mkdir \"$place/.virtbench-login-$run\" 2>/dev/null || continue; login=$place/.virtbench-login-$run; \
if { mark > \"$login/MARKER\" && echo \"exit 0\" > \"$login/program\"; } 2>/dev/null && \
chmod 700 \"$login/program\" && \"$login/program\" 2>/dev/null; then break; fi; \
away; done; \
[ -n \"$login\" ] || refuse \"no program can be written and executed in any of: $*\"; \
agent=$login/program; if [ $keep = keep ]; then agent=$place/agent-$digest; fi; \
if [ $keep = keep ] && [ \"$(sum \"$agent\")\" = \"$digest\" ]; then say have $machine; else \
say need $machine; part=$login/program; \
dd bs=BLOCK count=$blocks iflag=fullblock of=\"$part\" 2>/dev/null || refuse \"cannot write the agent into $place: no room\"; \
[ \"$(sum \"$part\")\" = \"$digest\" ] || stop \"the agent has not arrived whole in $place: is there room?\"; \
chmod 700 \"$part\" || stop \"cannot keep the agent in $place\"; \
if [ $keep = keep ]; then mv \"$part\" \"$agent\" || stop \"cannot keep the agent in $place\"; fi; fi; \
exec \"$agent\" $begin \"$folder\" \"$login\" $made";

/// The command for the login shell of the machine at `address`.
pub(super) fn command(address: &SshAddress, run: &RunId, agents: &[Agent]) -> Result<String, AgentError> {
    let script = script();
    let keep = if address.keeps_agent() { "keep" } else { "remove" };
    let folder = address.folder().to_string_lossy();
    // One in the user's home may begin as an option does.
    let folder = quoted(&if folder.starts_with('/') { folder.into_owned() } else { format!("./{folder}") });
    let mut command =
        format!("exec /bin/sh -c '{script}' virtbench {folder} {keep} {run} {}", quoted(address.begin()));
    for agent in agents {
        let blocks = agent.blocks()?.len() / BLOCK_BYTES;
        command.push_str(&format!(" {} {blocks} {}", agent.machine(), agent.digest()?));
    }
    Ok(command)
}

fn script() -> String {
    let words = [
        ("MARKER", MARK_FILE),
        ("MARK", MARK),
        ("FUNCTION", SHELL_MARK),
        ("BLOCK", &BLOCK_BYTES.to_string()),
    ];
    words.into_iter().fold(SCRIPT.to_owned(), |script, (word, value)| script.replace(word, value))
}

/// As one word for any login shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// For any connection: nobody can be asked for anything, and one that is cut is noticed in 15 seconds.
pub(super) const CONNECTION: [&str; 8] = [
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

/// For a session: no terminal, no escapes, and the command that is given.
const SESSION: [&str; 5] = ["-T", "-e", "none", "-o", "RemoteCommand=none"];

/// What undoes more that a user's configuration may say for logins by hand: no input, no session, no foreground.
const MORE_OPTIONS: [&str; 6] =
    ["-o", "StdinNull=no", "-o", "SessionType=default", "-o", "ForkAfterAuthentication=no"];

/// The version from which on there are these.
const MORE_FROM: (u32, u32) = (8, 7);

/// What ssh is told for a session.
pub(super) fn options() -> Vec<&'static str> {
    let more: &[&str] = if has_more_options() { &MORE_OPTIONS } else { &[] };
    SESSION.iter().chain(&CONNECTION).chain(more).copied().collect()
}

/// Whether this host's ssh knows them, as it says itself.
fn has_more_options() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let said = Command::new("ssh").arg("-V").stdin(Stdio::null()).output();
        said.is_ok_and(|said| {
            version(&String::from_utf8_lossy(&said.stderr)).is_some_and(|version| version >= MORE_FROM)
        })
    })
}

/// `OpenSSH_9.2p1 Debian-2` is 9.2.
fn version(said: &str) -> Option<(u32, u32)> {
    let digits = said.split("OpenSSH_").nth(1)?;
    let mut numbers = digits.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::path::Path;
    use std::process::{Command, Stdio};

    use virtbench_mark::{Mark, Owner};

    use super::*;

    #[test]
    fn any_shell_hands_the_script_on_as_it_is() {
        let script = script();
        assert!(!script.contains(['\'', '!', '\n']), "{script}");
        assert!(
            !script.contains("MARK ") && !script.contains("FUNCTION") && !script.contains("BLOCK"),
            "{script}"
        );
    }

    #[test]
    fn a_folder_is_one_word() {
        let address = SshAddress::parse("ssh://metal/srv/it's%20$HOME").unwrap();
        let run = RunId::new_random();
        let words = format!(r"virtbench '/srv/it'\''s $HOME' remove {run} '--remote'");
        assert!(command(&address, &run, &[]).unwrap().ends_with(&words));
        let named = address.with_agent_name("vm2");
        assert!(command(&named, &run, &[]).unwrap().ends_with("'--remote-as vm2'"));
    }

    /// Runs the script for an agent that is a shell script; sends `sent` of it. Returns what is said, and the shell's process.
    fn logged_in(place: &Path, keep: &str, agent: &[u8], sent: usize) -> (String, u32) {
        let digest = Command::new("sh")
            .args(["-c", "sha256sum | cut -c 1-64"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut digest = digest.unwrap();
        digest.stdin.take().unwrap().write_all(agent).unwrap();
        let digest = String::from_utf8(digest.wait_with_output().unwrap().stdout).unwrap();
        let machine = String::from_utf8(Command::new("uname").arg("-m").output().unwrap().stdout).unwrap();
        let folder = place.join("folder").display().to_string();
        let run = RunId::new_random().to_string();
        let words = [&folder, keep, &run, "--remote", machine.trim(), "1", digest.trim()];
        let mut command = Command::new("sh");
        command.args(["-c", &script(), "virtbench"]).args(words).env("XDG_CACHE_HOME", place.join("cache"));
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut to, mut from) = (shell.stdin.take().unwrap(), BufReader::new(shell.stdout.take().unwrap()));
        let mut said = String::new();
        while from.read_line(&mut said).unwrap() > 0 && !said.contains("need") && !said.contains("have") {}
        to.write_all(&agent[..sent]).unwrap();
        drop(to);
        from.read_to_string(&mut said).unwrap();
        let process = shell.id();
        shell.wait().unwrap();
        (said, process)
    }

    /// An agent, as large as a block, that shows what it was told, and the mark of its folder.
    fn agent() -> Vec<u8> {
        let mut text =
            format!("#!/bin/sh\necho \"told $*\"; echo \"program $0\"; cat \"$3/{MARK_FILE}\"; exit\n")
                .into_bytes();
        text.resize(BLOCK_BYTES, b'#');
        text
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).map_or_else(|_| Vec::new(), |entries| entries.flatten().collect());
        entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn an_agent_is_begun_in_a_folder_that_is_marked_as_its_own() {
        for keep in ["remove", "keep"] {
            let place = tempfile::tempdir().unwrap();
            let (said, process) = logged_in(place.path(), keep, &agent(), BLOCK_BYTES);
            let line = |word: &str| {
                said.lines().find_map(|line| line.strip_prefix(word)).unwrap_or_else(|| panic!("{said}"))
            };
            // The folder, the login's, and that the folder was made.
            let told: Vec<&str> = line("told --remote ").split(' ').collect();
            assert_eq!(told[2..], ["made"], "{told:?}");
            let login = told[1];
            let mark = said.lines().find_map(Mark::parse).unwrap_or_else(|| panic!("{said}"));
            assert_eq!((mark.purpose(), mark.owner()), ("login", Owner::Gone), "its shell has ended");
            assert!(mark.to_string().contains(&format!("process={process} ")), "{mark}");
            assert!(Path::new(login).join(MARK_FILE).exists(), "the agent removes it");
            assert_eq!(line("program ").starts_with(login), keep == "remove", "{said}");
            if keep == "keep" {
                let (again, _) = logged_in(place.path(), keep, &agent(), 0);
                assert!(again.contains("virtbench-login have"), "{again}");
            }
        }
    }

    #[test]
    fn a_transfer_that_is_cut_leaves_nothing_and_files_of_the_user_stay() {
        for keep in ["remove", "keep"] {
            let place = tempfile::tempdir().unwrap();
            let folder = place.path().join("folder");
            fs::create_dir(&folder).unwrap();
            for name in [".virtbench-my-notes", ".virtbench-agent-7", ".virtbench-probe-7"] {
                fs::write(folder.join(name), "precious").unwrap();
                let old =
                    Command::new("touch").args(["-d", "-1 hour"]).arg(folder.join(name)).status().unwrap();
                assert!(old.success());
            }
            let (said, _) = logged_in(place.path(), keep, &agent(), BLOCK_BYTES / 2);
            assert!(said.contains("not arrived whole"), "{said}");
            assert_eq!(names(&folder).len(), 3, "{:?}", names(&folder));
            assert!(names(&place.path().join("cache/virtbench")).is_empty());
        }
    }

    #[test]
    fn versions_of_ssh_are_read() {
        assert_eq!(version("OpenSSH_9.2p1 Debian-2+deb12u2, OpenSSL 3.0.11"), Some((9, 2)));
        assert_eq!(version("OpenSSH_for_Windows_8.1p1"), None);
        assert_eq!(version("OpenSSH_10.0p2"), Some((10, 0)));
        assert!(has_more_options(), "the ssh of this host");
    }
}
