//! Whose a VM of vSphere's is: what was written when it was made, with the identity that it got. A copy has another one.

use virtbench_lab::{Sign, new_uuid};
use virtbench_mark::{Mark, RunId};
use virtbench_vsphere::{Machine, Own};

/// What a VM is for: its management is measured.
pub(super) const VM: &str = "vm";
/// What a VM is for: it is never started, and says that its run lives.
pub(super) const KEEPER: &str = "shared";

/// What a VM says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) mark: Mark,
    pub(super) uuid: String,
    pub(super) sign: Sign,
}

impl Owned {
    /// Of a VM that this process makes now.
    pub(super) fn new(run: &RunId, purpose: &str) -> Self {
        let mut sign = Sign::now();
        sign.host.retain(|letter| !letter.is_whitespace());
        Self { mark: Mark::new(run.clone(), purpose), uuid: new_uuid(), sign }
    }

    pub(super) fn is_for(&self, purpose: &str) -> bool {
        self.mark.purpose() == purpose
    }

    /// As it is written into the VM's configuration.
    pub(super) fn text(&self) -> String {
        let sign: String =
            self.sign.attributes().iter().map(|(name, value)| format!(" {name}={value}")).collect();
        format!("{} uuid={}{sign}", self.mark, self.uuid)
    }

    /// The same for a VM that is made.
    pub(super) fn own<'a>(&'a self, text: &'a str) -> Own<'a> {
        Own { text, uuid: &self.uuid }
    }

    /// Reads it from a VM; nothing where virtbench did not make that VM.
    pub(super) fn read(machine: &Machine) -> Option<Self> {
        let (mark, rest) = machine.label.as_deref()?.split_once(" uuid=")?;
        let (uuid, words) = rest.split_once(' ').unwrap_or((rest, ""));
        let sign = Sign::read(|name| {
            let mut values = words.split(' ').filter_map(|word| word.split_once('='));
            values.find(|(key, _)| *key == name).map(|(_, value)| value)
        });
        let is_its = machine.uuid.as_deref().is_some_and(|its| its.eq_ignore_ascii_case(uuid));
        let mark = Mark::parse(mark).filter(|_| is_its)?;
        Some(Self { mark, uuid: uuid.to_owned(), sign })
    }
}

#[cfg(test)]
mod tests {
    use virtbench_vsphere::Power;

    use super::*;

    #[test]
    fn a_vm_is_ours_by_what_was_written_and_its_copy_is_not() {
        let owned = Owned::new(&RunId::new_random(), VM);
        let machine = |label: &str, uuid: &str| Machine {
            name: "virtbench-1".into(),
            power: Power::Off,
            host: None,
            template: false,
            label: Some(label.into()),
            uuid: Some(uuid.into()),
        };
        assert_eq!(Owned::read(&machine(&owned.text(), &owned.uuid.to_uppercase())), Some(owned.clone()));
        assert_eq!(Owned::read(&machine(&owned.text(), &new_uuid())), None, "a copy");
        assert_eq!(Owned::read(&machine("virtbench-a-b-1-1-0", &owned.uuid)), None, "a name");
        assert_eq!(Owned::read(&machine(&owned.mark.to_string(), &owned.uuid)), None);
    }
}
