//! Nodes, storages and VMs, as the server lists them.

use serde_json::Value;

/// Where a VM is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The node.
    pub node: String,
    /// The VM's number.
    pub vmid: u32,
}

/// Whether a VM runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// It does not.
    Off,
    /// It does.
    On,
    /// It stands still, in memory or on disk.
    Suspended,
}

/// A VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Where it is.
    pub place: Place,
    /// Its name.
    pub name: String,
    /// Whether it runs; a VM that stands still counts as one that runs in lists.
    pub power: Power,
    /// Whether VMs are made of it.
    pub is_template: bool,
    /// Its tags.
    pub tags: Vec<String>,
}

impl Machine {
    /// Reads an entry of `cluster/resources`; nothing for a container.
    pub(crate) fn read(entry: &Value) -> Option<Self> {
        if entry["type"] != "qemu" {
            return None;
        }
        let vmid = u32::try_from(entry["vmid"].as_u64()?).ok()?;
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let tags =
            text("tags").split([';', ',', ' ']).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
        Some(Self {
            place: Place { node: text("node"), vmid },
            name: text("name"),
            power: if entry["status"] == "running" { Power::On } else { Power::Off },
            is_template: is_true(&entry["template"]),
            tags,
        })
    }
}

/// A node that is online.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Memory that is free, in bytes; 0 where it does not say.
    pub free_memory: u64,
}

impl Node {
    /// Reads an entry of `nodes`; nothing for one that is away.
    pub(crate) fn read(entry: &Value) -> Option<Self> {
        if entry["status"] != "online" {
            return None;
        }
        let number = |name: &str| entry[name].as_u64().unwrap_or(0);
        let free_memory = number("maxmem").saturating_sub(number("mem"));
        Some(Self { name: entry["node"].as_str()?.to_owned(), free_memory })
    }
}

/// A storage of a node that takes disks of VMs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// Its name.
    pub name: String,
    /// Whether other nodes see the same.
    pub is_shared: bool,
    /// Free space in bytes.
    pub free: u64,
}

impl Storage {
    /// Reads an entry of `nodes/NODE/storage`; nothing for one that is off or takes no disks.
    pub(crate) fn read(entry: &Value) -> Option<Self> {
        let takes_disks = entry["content"].as_str()?.split(',').any(|kind| kind == "images");
        let is_active = entry.get("active").is_none_or(is_true);
        (takes_disks && is_active).then_some(Self {
            name: entry["storage"].as_str()?.to_owned(),
            is_shared: is_true(&entry["shared"]),
            free: entry["avail"].as_u64().unwrap_or(0),
        })
    }
}

/// The first address that others can reach a guest at, of those that its agent tells: one of version 4 before one of version 6.
pub(crate) fn outer_address(answer: &Value) -> Option<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let outer = list(&answer["result"]).into_iter().filter(|interface| interface["name"] != "lo");
    let all: Vec<String> = outer
        .flat_map(|interface| list(&interface["ip-addresses"]))
        .filter_map(|address| address["ip-address"].as_str().map(str::to_owned))
        .filter(|address| !address.starts_with("fe80:"))
        .collect();
    all.iter().find(|address| !address.contains(':')).or(all.first()).cloned()
}

/// Perl has no truth of its own: 1, "1" and true are.
pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(it) => *it,
        Value::Number(number) => number.as_u64() != Some(0),
        Value::String(text) => text == "1",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guest_is_reached_at_its_first_outer_address() {
        let interface = |name: &str, addresses: &[&str]| {
            let addresses: Vec<Value> =
                addresses.iter().map(|address| json!({"ip-address": address})).collect();
            json!({"name": name, "ip-addresses": addresses})
        };
        let of = |interfaces: &[Value]| outer_address(&json!({ "result": interfaces }));
        let lo = interface("lo", &["127.0.0.1", "::1"]);
        assert_eq!(
            of(&[lo.clone(), interface("eth0", &["fe80::1", "2001:db8::1", "10.0.0.7"])]).as_deref(),
            Some("10.0.0.7")
        );
        assert_eq!(of(&[interface("eth0", &["fe80::1", "2001:db8::1"])]).as_deref(), Some("2001:db8::1"));
        assert_eq!((of(&[lo]), outer_address(&json!({}))), (None, None));
    }

    #[test]
    fn lists_are_read_and_what_is_of_no_use_is_left_out() {
        let vm = json!({"type": "qemu", "vmid": 100, "node": "a", "name": "n", "status": "running", "tags": "b;virtbench", "template": 1});
        let machine = Machine::read(&vm).unwrap();
        assert_eq!((machine.power, machine.is_template, machine.tags.len()), (Power::On, true, 2));
        assert_eq!(Machine::read(&json!({"type": "lxc", "vmid": 100})), None);
        assert_eq!(Machine::read(&json!({"type": "qemu"})), None);
        assert_eq!(Node::read(&json!({"node": "a", "status": "offline"})), None);
        let node = Node::read(&json!({"node": "a", "status": "online", "mem": 1, "maxmem": 3})).unwrap();
        assert_eq!(node.free_memory, 2);
        let storage = |content: &str, active: u8| {
            Storage::read(
                &json!({"storage": "s", "content": content, "active": active, "shared": 1, "avail": 7}),
            )
        };
        assert!(storage("images,iso", 1).is_some_and(|storage| storage.is_shared && storage.free == 7));
        assert_eq!((storage("iso", 1), storage("images", 0)), (None, None));
    }
}
