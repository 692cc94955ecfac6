//! Whose a VM of Proxmox VE's is: what its description says, with the number and the name that it was made with, and its tag.

use virtbench_lab::Sign;
use virtbench_mark::{Mark, RunId};
use virtbench_proxmox::Machine;

/// What a VM is for: its management is measured.
pub(super) const VM: &str = "vm";
/// What a VM is for: it is never started, and says that its run lives.
pub(super) const KEEPER: &str = "shared";
/// The tag of every VM that virtbench makes.
pub(super) const TAG: &str = "virtbench";

/// What a VM says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) mark: Mark,
    pub(super) vmid: u32,
    pub(super) name: String,
    pub(super) sign: Sign,
}

impl Owned {
    /// Of a VM that this process makes now.
    pub(super) fn new(run: &RunId, purpose: &str, vmid: u32, name: &str) -> Self {
        let mut sign = Sign::now();
        sign.host.retain(|letter| !letter.is_whitespace());
        Self { mark: Mark::new(run.clone(), purpose), vmid, name: name.to_owned(), sign }
    }

    pub(super) fn is_for(&self, purpose: &str) -> bool {
        self.mark.purpose() == purpose
    }

    /// The first line of its description.
    pub(super) fn text(&self) -> String {
        let sign: String =
            self.sign.attributes().iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!("{} vmid={} name={}{sign}", self.mark, self.vmid, self.name)
    }

    /// Whether a VM may be one of virtbench's, so that its description is worth a look.
    pub(super) fn may_be(machine: &Machine) -> bool {
        machine.tags.iter().any(|tag| tag == TAG) || machine.name.starts_with(TAG)
    }

    /// Reads it from a VM; nothing where virtbench did not make that VM. A copy and a restored VM have another number. A VM that was just
    /// cloned from one without the tag has none yet, and the name that it was made with.
    pub(super) fn read(machine: &Machine, description: &str) -> Option<Self> {
        let line = description.lines().next()?;
        let (mark, rest) = line.split_once(" vmid=")?;
        let (vmid, words) = rest.split_once(' ')?;
        let value = |name: &str| {
            let mut values = words.split(' ').filter_map(|word| word.split_once('='));
            values.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let name = value("name")?;
        let has_tag = machine.tags.iter().any(|tag| tag == TAG);
        let is_it = vmid.parse() == Ok(machine.place.vmid) && (has_tag || machine.name == name);
        let mark = Mark::parse(mark).filter(|_| is_it)?;
        Some(Self { mark, vmid: machine.place.vmid, name: name.to_owned(), sign: Sign::read(value) })
    }
}

#[cfg(test)]
mod tests {
    use virtbench_proxmox::{Place, Power};

    use super::*;

    #[test]
    fn a_vm_of_proxmox_is_ours_by_its_number_and_tag_and_its_copy_is_not() {
        let owned = Owned::new(&RunId::new_random(), VM, 900, "virtbench-1");
        let machine = |vmid: u32, name: &str, tags: &[&str]| Machine {
            place: Place { node: "pve1".into(), vmid },
            name: name.into(),
            power: Power::Off,
            is_template: false,
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        };
        let read = |machine: &Machine, text: &str| Owned::read(machine, text);
        let noted = format!("{}\nsomething else\n", owned.text());
        assert_eq!(read(&machine(900, "renamed", &["a", TAG]), &noted), Some(owned.clone()));
        assert_eq!(
            read(&machine(900, "virtbench-1", &[]), &owned.text()),
            Some(owned.clone()),
            "not yet tagged"
        );
        assert_eq!(read(&machine(900, "renamed", &[]), &owned.text()), None, "neither tag nor name");
        assert_eq!(read(&machine(901, "virtbench-1", &[TAG]), &owned.text()), None, "a copy");
        assert_eq!(read(&machine(900, "virtbench-1", &[TAG]), ""), None, "a name and a tag");
        assert_eq!(read(&machine(900, "virtbench-1", &[TAG]), &owned.mark.to_string()), None);
        assert!(Owned::may_be(&machine(1, "x", &[TAG])) && !Owned::may_be(&machine(1, "x", &["y"])));
    }
}
