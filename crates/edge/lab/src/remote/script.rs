//! What the shell of an existing machine is told: it gets the agent and makes way for it.

use virtbench_agents::{Agent, AgentError, BLOCK_BYTES};

use super::address::SshAddress;

/// Begins every line that the script prints, so that a login's own are told from them.
pub(super) const MARK: &str = "virtbench-login";

/// The script. It is one line without single quotes or exclamation marks, so that any login shell hands it on as it is.
///
/// What an earlier one left that was killed in the middle, as by a reboot, is removed: a login takes two minutes at most.
///
/// Arguments: the folder, whether the agent is kept (`keep` or `remove`), how the agent is begun, then machine, blocks and
/// digest of each agent.
const SCRIPT: &str = "\
umask 077; folder=$1; keep=$2; begin=$3; shift 3; \
say() { echo; echo \"MARK $*\"; }; \
stop() { say \"no $*\"; exit 1; }; \
[ \"$(uname -s)\" = Linux ] || stop \"its system is $(uname -s), and virtbench has an agent for Linux\"; \
machine=$(uname -m); blocks=; all=; \
while [ $# -ge 3 ]; do all=\"$all $1\"; if [ \"$1\" = \"$machine\" ]; then blocks=$2; digest=$3; fi; shift 3; done; \
[ -n \"$blocks\" ] || stop \"its processor is $machine, and this virtbench has agents for$all: one that make install builds has more\"; \
mkdir -p \"$folder\" 2>/dev/null || stop \"cannot make the folder $folder: $(mkdir -p \"$folder\" 2>&1)\"; \
[ -w \"$folder\" ] || stop \"cannot write into $folder\"; \
find \"$folder\" -maxdepth 1 -type f -name \".virtbench-*-*\" -mmin +10 -exec rm -f {} + 2>/dev/null; \
command -v sha256sum >/dev/null || stop \"it has no sha256sum\"; \
cache=${XDG_CACHE_HOME:-$HOME/.cache}/virtbench; place=; why=; \
if [ $keep = keep ]; then set -- \"$cache\"; else set -- \"$folder\" \"${XDG_RUNTIME_DIR:-/tmp}\" /tmp /var/tmp \"$HOME\"; fi; \
for one in \"$@\"; do \
if [ $keep = keep ]; then mkdir -p \"$one\" 2>/dev/null; fi; \
probe=$one/.virtbench-probe-$$; \
if { echo \"exit 0\" > \"$probe\"; } 2>/dev/null && chmod 700 \"$probe\" && \"$probe\" 2>/dev/null; then place=$one; fi; \
rm -f \"$probe\" 2>/dev/null; [ -z \"$place\" ] || break; done; \
[ -n \"$place\" ] || stop \"no program can be written and executed in any of: $*\"; \
sum() { sha256sum \"$1\" 2>/dev/null | cut -c 1-64; }; \
if [ $keep = keep ]; then agent=$place/agent-$digest; else agent=$place/.virtbench-agent-$$; fi; \
if [ $keep = keep ] && [ \"$(sum \"$agent\")\" = \"$digest\" ]; then say have $machine; else \
part=$agent.$$; trap \"rm -f \\\"$part\\\"\" 0 1 2 15; say need $machine; \
dd bs=BLOCK count=$blocks iflag=fullblock of=\"$part\" 2>/dev/null || stop \"cannot write the agent into $place: no room\"; \
[ \"$(sum \"$part\")\" = \"$digest\" ] || stop \"the agent has not arrived whole in $place: is there room?\"; \
chmod 700 \"$part\" && mv \"$part\" \"$agent\" || stop \"cannot keep the agent in $place\"; trap - 0 1 2 15; fi; \
if [ $keep = keep ]; then exec \"$agent\" $begin \"$folder\"; else exec \"$agent\" $begin \"$folder\" \"$agent\"; fi";

/// The command for the login shell of the machine at `address`.
pub(super) fn command(address: &SshAddress, agents: &[Agent]) -> Result<String, AgentError> {
    let script = SCRIPT.replace("MARK", MARK).replace("BLOCK", &BLOCK_BYTES.to_string());
    let keep = if address.keeps_agent() { "keep" } else { "remove" };
    let folder = address.folder().to_string_lossy();
    // One in the user's home may begin as an option does.
    let folder = quoted(&if folder.starts_with('/') { folder.into_owned() } else { format!("./{folder}") });
    let mut command =
        format!("exec /bin/sh -c '{script}' virtbench {folder} {keep} {}", quoted(address.begin()));
    for agent in agents {
        let blocks = agent.blocks()?.len() / BLOCK_BYTES;
        command.push_str(&format!(" {} {blocks} {}", agent.machine(), agent.digest()?));
    }
    Ok(command)
}

/// As one word for any login shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_shell_hands_the_script_on_as_it_is() {
        assert!(!SCRIPT.contains(['\'', '!', '\n']), "{SCRIPT}");
    }

    #[test]
    fn a_folder_is_one_word() {
        let address = SshAddress::parse("ssh://metal/srv/it's%20$HOME").unwrap();
        assert!(
            command(&address, &[]).unwrap().ends_with(r"virtbench '/srv/it'\''s $HOME' remove '--remote'")
        );
        let named = address.with_agent_name("vm2");
        assert!(command(&named, &[]).unwrap().ends_with(r"remove '--remote-as vm2'"));
    }
}
