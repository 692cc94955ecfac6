//! Programs of this host under QEMU's user mode: their instructions are translated by what translates those of an emulated guest.
//!
//! The kernel is told to hand each program over to the translator (binfmt_misc), in a namespace in which only an agent and what it starts
//! are. Translator and agent are programs of the same kind, so the copies that are run carry a mark where the format has padding, and
//! marked programs are left alone.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::descriptors::MemoryFile;

/// Where the kernel takes such rules.
const RULES: &str = "/proc/sys/fs/binfmt_misc";
/// Bytes of an ELF header that tell programs: the magic number, class and byte order, padding, type and machine.
const HEADER: usize = 20;
/// The last byte of padding, in which copies carry the mark.
const MARK_AT: usize = 15;
const MARK: u8 = 1;
/// Programs at fixed addresses and others differ in the lowest bits of their type, and kernels ignore which system they name.
const MASK: [u8; HEADER] =
    [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0xff, 0xff, 0xff];

/// QEMU's translator for programs of this host.
#[derive(Debug, Clone)]
pub struct Translator {
    program: PathBuf,
}

impl Translator {
    /// Finds it where programs are.
    ///
    /// # Errors
    /// It is not installed, or this kernel has no rules for programs; in words.
    pub fn find() -> Result<Self, String> {
        if !Path::new(RULES).is_dir() {
            return Err("this kernel has no binfmt_misc".into());
        }
        // For this host's own instructions.
        let names = ["-static", ""].map(|kind| format!("qemu-{}{kind}", env::consts::ARCH));
        let program = names.iter().find_map(|name| which::which(name).ok());
        let program =
            program.ok_or_else(|| format!("{} is not installed (package qemu-user-static)", names[0]))?;
        Ok(Self { program })
    }

    /// Has the command of this agent run a marked copy of it where every other program is translated. The descriptors are to be inherited.
    pub(crate) fn wrap(&self, command: &mut Command, agent: &[u8]) -> io::Result<Vec<OwnedFd>> {
        let translator = MemoryFile::new("translator", &marked(fs::read(&self.program)?)?)?;
        let agent = MemoryFile::new("virtbench-agent", &marked(agent.to_vec())?)?;
        let ((translator, path), (agent, program)) = (translator.lend()?, agent.lend()?);
        let rule = rule(&header()?, &path);
        let words = command.get_args().map(ToOwned::to_owned).collect::<Vec<_>>();
        *command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c", ENTER, "sh", RULES]);
        command.arg(rule).arg(program).args(words);
        Ok(vec![translator, agent])
    }
}

/// Tells the kernel the rule, and becomes the agent.
const ENTER: &str =
    r#"mount -t binfmt_misc binfmt_misc "$1" && printf %s "$2" > "$1/register" && shift 2 && exec "$@""#;

/// A program with the mark.
fn marked(mut program: Vec<u8>) -> io::Result<Vec<u8>> {
    match program.get_mut(MARK_AT) {
        Some(byte) => *byte = MARK,
        None => return Err(io::Error::new(io::ErrorKind::InvalidData, "this is no program")),
    }
    Ok(program)
}

/// What the programs of this host begin with: as this one does.
fn header() -> io::Result<[u8; HEADER]> {
    let mut header = [0; HEADER];
    io::Read::read_exact(&mut fs::File::open("/proc/self/exe")?, &mut header)?;
    Ok(header)
}

/// The rule for the kernel: programs like this one, opened now (F), with the names they are called by (P).
fn rule(header: &[u8; HEADER], translator: &Path) -> String {
    let bytes =
        |bytes: &mut dyn Iterator<Item = u8>| bytes.map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let magic = bytes(&mut header.iter().zip(MASK).map(|(byte, mask)| byte & mask));
    format!(":virtbench:M:0:{magic}:{}:{}:FP", bytes(&mut MASK.into_iter()), translator.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_for_this_program_and_not_for_a_marked_one() {
        let header = header().unwrap();
        let matches =
            |of: &[u8]| of.iter().zip(MASK).zip(header).all(|((byte, mask), own)| byte & mask == own & mask);
        let own = fs::read("/proc/self/exe").unwrap();
        assert!(matches(&own[..HEADER]));
        let kept = marked(own.clone()).unwrap();
        assert!(!matches(&kept[..HEADER]));
        assert_eq!((kept.len(), &kept[16..64]), (own.len(), &own[16..64]));
        assert!(marked(vec![0; 4]).is_err());
        let rule = rule(&header, Path::new("/proc/self/fd/9"));
        assert!(
            rule.starts_with(r":virtbench:M:0:\x7f\x45\x4c\x46") && rule.ends_with(":/proc/self/fd/9:FP"),
            "{rule}"
        );
    }
}
