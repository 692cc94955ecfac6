//! A unit's system calls as a filter. It is put in place by this test's own program, begun anew, as the last step.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// The test that puts a filter in place.
pub const ENTRY: &str = "fence_unit::enter_the_filter";
const ALLOWED: &str = "VIRTBENCH_TEST_CALLS";
const COMMAND: &str = "VIRTBENCH_TEST_COMMAND";

/// Calls by name; those with rules of their own are let through with these arguments alone.
#[derive(Default)]
pub struct Filter {
    allowed: Vec<String>,
    denied: Vec<&'static str>,
    /// Address families of sockets.
    families: Vec<i32>,
    no_new_code: bool,
}

fn systemd_set(name: &str) -> Vec<String> {
    let output = Command::new("systemd-analyze").args(["syscall-filter", name]).output();
    let output = output.expect("systemd-analyze: install systemd, or run `make setup-test`");
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.lines().skip(1).map(str::trim).filter(|word| !word.is_empty() && !word.starts_with('#'));
    words
        .flat_map(|word| if word.starts_with('@') { systemd_set(word) } else { vec![word.to_owned()] })
        .collect()
}

impl Filter {
    /// False if it is no directive about system calls.
    pub fn directive(&mut self, key: &str, value: &str, left_out: &mut Vec<String>) -> bool {
        let words = || value.split_ascii_whitespace();
        match (key, value) {
            ("SystemCallFilter", _) => {
                let calls = words().flat_map(|word| {
                    if word.starts_with('@') { systemd_set(word) } else { vec![word.to_owned()] }
                });
                self.allowed = calls.collect();
            }
            // The filter below is of this processor's own calls, and refuses with EPERM.
            ("SystemCallArchitectures", "native") | ("SystemCallErrorNumber", "EPERM") => {}
            ("RestrictAddressFamilies", _) => {
                self.families = words()
                    .map(|family| match family {
                        "AF_UNIX" => libc::AF_UNIX,
                        "AF_INET" => libc::AF_INET,
                        "AF_INET6" => libc::AF_INET6,
                        other => panic!("{other}: which number is it?"),
                    })
                    .collect();
            }
            ("MemoryDenyWriteExecute", "yes") => self.no_new_code = true,
            ("RestrictNamespaces", "yes") => {
                self.denied.extend(["unshare", "setns"]);
                left_out.push("RestrictNamespaces: the flags of clone are not looked at".into());
            }
            ("RestrictRealtime", "yes") => {
                self.denied.extend(["sched_setscheduler", "sched_setattr", "sched_setparam"]);
            }
            ("RestrictSUIDSGID", "yes") => {
                left_out.push("RestrictSUIDSGID: the modes of chmod and open are not looked at".into());
            }
            ("LockPersonality", "yes") => self.denied.push("personality"),
            ("ProtectClock", "yes") => self.denied.extend(["clock_settime", "settimeofday", "adjtimex"]),
            ("ProtectHostname", "yes") => self.denied.extend(["sethostname", "setdomainname"]),
            ("ProtectKernelLogs", "yes") => self.denied.push("syslog"),
            ("ProtectKernelModules", "yes") => {
                self.denied.extend(["init_module", "finit_module", "delete_module"]);
            }
            _ => return false,
        }
        true
    }

    /// Adds the step that puts it in place and goes on with the program.
    pub fn enter(&self, command: &mut Command, program: &str, arguments: &[&str]) {
        assert!(!self.allowed.is_empty(), "the unit has no SystemCallFilter=");
        let calls = self.allowed.iter().filter(|call| !self.denied.contains(&call.as_str()));
        let mut words: Vec<String> = calls.cloned().collect();
        words.extend(self.families.iter().map(|family| format!("family={family}")));
        words.extend(self.no_new_code.then(|| "no-new-code".to_owned()));
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", ENTRY, "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(ALLOWED, words.join(" ")).env(COMMAND, [&[program], arguments].concat().join("\n"));
    }
}

/// Numbers of this processor's system calls, from the kernel's headers.
fn numbers() -> BTreeMap<String, i64> {
    let places = [
        format!("/usr/include/{}-linux-gnu/asm/unistd_64.h", std::env::consts::ARCH),
        "/usr/include/asm/unistd_64.h".to_owned(),
        "/usr/include/asm-generic/unistd.h".to_owned(),
    ];
    let text = places.iter().find_map(|place| std::fs::read_to_string(place).ok());
    let text = text.expect("the kernel's headers: install linux-libc-dev");
    let number = |line: &str| {
        let (name, number) = line.strip_prefix("#define __NR_")?.split_once(' ')?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    text.lines().filter_map(number).collect()
}

fn rule(argument: u8, operator: SeccompCmpOp, value: i32) -> SeccompRule {
    let value = u64::try_from(value).unwrap();
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value).unwrap();
    SeccompRule::new(vec![condition]).unwrap()
}

/// Puts the filter in place and becomes the program. Returns only if there is nothing to become.
pub fn enter() {
    let (Ok(words), Ok(command)) = (std::env::var(ALLOWED), std::env::var(COMMAND)) else { return };
    let numbers = numbers();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        words.split(' ').filter_map(|word| Some((*numbers.get(word)?, Vec::new()))).collect();
    let families = words.split(' ').filter_map(|word| word.strip_prefix("family=")?.parse().ok());
    let families: Vec<SeccompRule> = families.map(|family: i32| rule(0, SeccompCmpOp::Eq, family)).collect();
    if !families.is_empty() {
        rules.insert(libc::SYS_socket, families);
    }
    if words.split(' ').any(|word| word == "no-new-code") {
        let code = libc::PROT_WRITE | libc::PROT_EXEC;
        let either = [0, libc::PROT_WRITE, libc::PROT_EXEC];
        let masked = |mask: i32, value| rule(2, SeccompCmpOp::MaskedEq(u64::try_from(mask).unwrap()), value);
        rules.insert(libc::SYS_mmap, either.map(|value| masked(code, value)).to_vec());
        for call in [libc::SYS_mprotect, libc::SYS_pkey_mprotect] {
            rules.insert(call, vec![masked(libc::PROT_EXEC, 0)]);
        }
    }
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch).unwrap();
    let mut words = command.lines();
    let mut program = Command::new(words.next().unwrap());
    program.args(words).env_remove(ALLOWED).env_remove(COMMAND);
    seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
    panic!("cannot become the program: {}", program.exec());
}
