//! The VMs of a server, kept small.

use std::collections::HashMap;

use roxmltree::Node;

use crate::properties::PropertySet;
use crate::reply;
use crate::reply::Reference;

/// The key of a VM's configuration that says which run made it, and for which VM.
pub const LABEL_KEY: &str = "virtbench.run";

/// What is read of a VM.
pub(crate) const MACHINE: PropertySet = PropertySet {
    kind: "VirtualMachine",
    paths: &[
        "name",
        "runtime.powerState",
        "runtime.host",
        "config.template",
        "config.instanceUuid",
        "config.extraConfig[\"virtbench.run\"]",
    ],
};

/// Whether a VM runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Power {
    /// It does not.
    Off,
    /// It does.
    On,
    /// It stands still.
    Suspended,
}

impl Power {
    /// As the API writes it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "poweredOff",
            Self::On => "poweredOn",
            Self::Suspended => "suspended",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Off, Self::On, Self::Suspended].into_iter().find(|power| power.word() == word)
    }
}

/// A VM, as the inventory shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: Box<str>,
    /// Whether it runs.
    pub power: Power,
    /// Where it is.
    pub host: Option<Reference>,
    /// Whether it is a template.
    pub template: bool,
    /// What its maker, or that of the VM that it was copied from, wrote into it.
    pub label: Option<Box<str>>,
    /// Its own identity, which no copy of it has.
    pub uuid: Option<Box<str>>,
}

/// The VMs of a server.
#[derive(Debug, Default)]
pub struct Inventory {
    machines: HashMap<Reference, Machine>,
    /// Each host once, however many VMs it has.
    hosts: HashMap<Box<str>, Reference>,
}

impl Inventory {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.machines.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.machines.is_empty()
    }

    /// One VM.
    #[must_use]
    pub fn get(&self, machine: &Reference) -> Option<&Machine> {
        self.machines.get(machine)
    }

    /// All, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&Reference, &Machine)> {
        self.machines.iter()
    }

    /// The VM of this name, if there is exactly one.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Reference> {
        let mut found = self.machines.iter().filter(|(_, machine)| &*machine.name == name);
        found.next().filter(|_| found.next().is_none()).map(|(reference, _)| reference)
    }

    pub(crate) fn apply(&mut self, change: MachineChange) {
        if change.gone {
            self.machines.remove(&change.machine);
            return;
        }
        let machine = self.machines.entry(change.machine).or_insert_with(|| Machine {
            name: Box::default(),
            power: Power::Off,
            host: None,
            template: false,
            label: None,
            uuid: None,
        });
        for value in change.values {
            match value {
                Value::Name(name) => machine.name = name,
                Value::Power(power) => machine.power = power,
                Value::Template(template) => machine.template = template,
                Value::Label(label) => machine.label = label,
                Value::Uuid(uuid) => machine.uuid = uuid,
                Value::Host(host) => {
                    machine.host =
                        host.map(|host| self.hosts.entry(host.id().into()).or_insert(host).clone());
                }
            }
        }
    }
}

enum Value {
    Name(Box<str>),
    Power(Power),
    Host(Option<Reference>),
    Template(bool),
    Label(Option<Box<str>>),
    Uuid(Option<Box<str>>),
}

/// What is new of a VM.
pub(crate) struct MachineChange {
    machine: Reference,
    gone: bool,
    values: Vec<Value>,
}

impl MachineChange {
    /// It is gone.
    pub fn gone(machine: Reference) -> Self {
        Self { machine, gone: true, values: Vec::new() }
    }

    /// These properties have these values; others are as they were.
    pub fn read<'a, 'input: 'a>(
        machine: Reference,
        values: impl Iterator<Item = (&'a str, Option<Node<'a, 'input>>)>,
    ) -> Result<Self, String> {
        let values =
            values.filter_map(|(path, value)| value_of(path, value).transpose()).collect::<Result<_, _>>()?;
        Ok(Self { machine, gone: false, values })
    }
}

/// Paths that were not asked for are passed over.
fn value_of(path: &str, value: Option<Node<'_, '_>>) -> Result<Option<Value>, String> {
    let text = value.and_then(|value| value.text()).map_or("", str::trim);
    Ok(Some(match path {
        "name" => Value::Name(text.into()),
        "runtime.powerState" => Value::Power(
            Power::parse(text).ok_or_else(|| format!("a VM is {text:?}, and neither on nor off"))?,
        ),
        "runtime.host" => Value::Host(value.map(reply::reference).transpose()?),
        "config.instanceUuid" => Value::Uuid(Some(text).filter(|text| !text.is_empty()).map(Into::into)),
        "config.template" => Value::Template(text == "true"),
        path if path.contains(LABEL_KEY) => {
            Value::Label(value.and_then(|option| reply::text(option, "value")).map(Into::into))
        }
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use roxmltree::Document;

    use super::*;
    use crate::properties;

    fn change(id: &str, set: &str) -> Result<MachineChange, String> {
        let text = format!("<objectSet>{set}</objectSet>");
        let document = Document::parse(&text).unwrap();
        MachineChange::read(
            Reference::new("VirtualMachine", id),
            properties::changed(document.root_element()),
        )
    }

    fn set(name: &str, value: &str) -> String {
        format!("<changeSet><name>{name}</name><op>assign</op><val>{value}</val></changeSet>")
    }

    #[test]
    fn changes_are_applied_to_what_is_known() {
        let mut inventory = Inventory::default();
        let all = set("name", "web")
            + &set("runtime.powerState", "poweredOn")
            + &set("config.extraConfig[\"virtbench.run\"]", "<key>virtbench.run</key><value>run-1</value>")
            + "<changeSet><name>runtime.host</name><op>assign</op><val type=\"HostSystem\">host-3</val></changeSet>";
        inventory.apply(change("vm-1", &all).unwrap());
        inventory.apply(change("vm-2", &set("name", "db")).unwrap());
        inventory.apply(change("vm-1", &set("runtime.powerState", "suspended")).unwrap());
        let web = inventory.get(inventory.named("web").unwrap()).unwrap();
        assert_eq!((web.power, web.label.as_deref()), (Power::Suspended, Some("run-1")));
        assert_eq!(web.host, Some(Reference::new("HostSystem", "host-3")));
        inventory.apply(
            change("vm-1", "<changeSet><name>runtime.host</name><op>remove</op></changeSet>").unwrap(),
        );
        assert_eq!(inventory.get(&Reference::new("VirtualMachine", "vm-1")).unwrap().host, None);
        inventory.apply(MachineChange::gone(Reference::new("VirtualMachine", "vm-1")));
        assert_eq!(inventory.len(), 1);
        assert!(change("vm-3", &set("runtime.powerState", "mad")).is_err());
    }
}
