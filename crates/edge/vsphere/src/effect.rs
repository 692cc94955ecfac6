//! What an operation is for, and whether the inventory shows it.

use roxmltree::Node;

use crate::inventory::Power;
use crate::properties::{self, PropertySet};
use crate::reply;
use crate::reply::Reference;

/// What should be seen of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Whether it runs.
    Power(Power),
    /// That it is there.
    Exists,
    /// That it is not.
    Gone,
    /// Where it is.
    On(Reference),
    /// That it has this snapshot.
    Snapshot(Reference),
    /// That it has not.
    NoSnapshot(Reference),
    /// What is noted of it.
    Note(String),
    /// That it has a disk of this key, or not.
    Disk(i32, bool),
}

impl Effect {
    /// As an error names it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Power(Power::On) => "a VM that runs",
            Self::Power(Power::Off) => "a VM that is off",
            Self::Power(Power::Suspended) => "a VM that stands still",
            Self::Exists => "a new VM",
            Self::Gone => "a VM's end",
            Self::On(_) => "a VM on another host",
            Self::Snapshot(_) => "a new snapshot",
            Self::NoSnapshot(_) => "a snapshot's end",
            Self::Note(_) => "a new note",
            Self::Disk(..) => "a disk attached or detached",
        }
    }

    /// What is read to see it.
    pub fn wanted(&self) -> PropertySet {
        let paths: &[&str] = match self {
            Self::Power(_) => &["runtime.powerState"],
            Self::Exists | Self::Gone => &["name"],
            Self::On(_) => &["runtime.host"],
            Self::Snapshot(_) | Self::NoSnapshot(_) => &["snapshot"],
            Self::Note(_) => &["config.annotation"],
            Self::Disk(..) => &["config.hardware.device"],
        };
        PropertySet { kind: "VirtualMachine", paths }
    }

    /// Whether the VM's properties show it; nothing is what a VM shows that is not there.
    pub fn shows(&self, object: Option<Node<'_, '_>>) -> bool {
        let path = self.wanted().paths[0];
        let Some(object) = object else { return *self == Self::Gone };
        let value = properties::values(object).find(|(name, _)| *name == path).map(|(_, value)| value);
        let text = value.and_then(|value| value.text()).map_or("", str::trim);
        match self {
            Self::Power(power) => text == power.word(),
            Self::Exists => value.is_some(),
            // What is about to go has no properties any more.
            Self::Gone => value.is_none(),
            Self::On(host) => text == host.id(),
            Self::Snapshot(snapshot) => value.is_some_and(|value| has(value, snapshot)),
            Self::NoSnapshot(snapshot) => !value.is_some_and(|value| has(value, snapshot)),
            Self::Note(note) => text == note,
            Self::Disk(key, wanted) => value.is_some_and(|value| disks(value).contains(key) == *wanted),
        }
    }
}

/// Whether a tree of snapshots has this one.
fn has(tree: Node<'_, '_>, snapshot: &Reference) -> bool {
    let named =
        |node: &Node<'_, '_>| node.tag_name().name() == "snapshot" && node.text() == Some(snapshot.id());
    tree.descendants().any(|node| named(&node))
}

/// Keys of the disks among devices.
fn disks(devices: Node<'_, '_>) -> Vec<i32> {
    reply::children(devices, "VirtualDevice")
        .filter(|device| kind(*device) == "VirtualDisk")
        .filter_map(|disk| reply::text(disk, "key")?.parse().ok())
        .collect()
}

/// The type of an element of which the API has several.
pub(crate) fn kind<'a>(node: Node<'a, '_>) -> &'a str {
    node.attributes().find(|attribute| attribute.name() == "type").map_or("", |kind| kind.value())
}
