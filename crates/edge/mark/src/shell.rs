//! A mark that a shell writes, on a machine where nothing of ours runs yet.

/// A shell function `mark` that prints the mark of the shell itself for a login; the run's id is in `$run`. It needs `sha256sum`, and
/// keeps to what BusyBox has too. A program that the shell hands itself over to with `exec` is the same maker. There are neither single
/// quotes nor exclamation marks in it.
pub const SHELL_MARK: &str = "\
mark() { \
of=$({ cat /etc/machine-id /proc/sys/kernel/hostname 2>/dev/null; readlink -n /proc/self/ns/pid; } | sha256sum | cut -c 1-10); \
boot=$(sha256sum < /proc/sys/kernel/random/boot_id | cut -c 1-10); \
echo \"virtbench-mark-1 run=$run for=login machine=$of boot=$boot process=$$ began=$(cut -d \" \" -f 22 /proc/$$/stat)\"; }";

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::maker::Owner;
    use crate::mark::{Mark, RunId};

    #[test]
    fn a_shell_and_what_it_becomes_are_one_maker() {
        assert!(!SHELL_MARK.contains(['\'', '!', '\n']));
        let run = RunId::new_random();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mark");
        let script = format!("run={run}; {SHELL_MARK}; mark > {}; exec sleep 60", path.display());
        let mut shell = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).spawn().unwrap();
        let written = || std::fs::read_to_string(&path).ok().as_deref().and_then(Mark::parse);
        let mark = loop {
            match written() {
                Some(mark) => break mark,
                None if shell.try_wait().unwrap().is_some() => panic!("no mark: {:?}", std::fs::read(&path)),
                None => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        };
        assert_eq!((mark.run.clone(), mark.purpose(), mark.owner()), (run, "login", Owner::Lives));
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(mark.owner(), Owner::Gone);
    }
}
