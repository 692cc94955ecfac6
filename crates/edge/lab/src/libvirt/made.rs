//! What a run has made on a hypervisor: domains whose metadata say so, and the volumes that these list; and what it has left there.
//!
//! A domain's element holds the run's mark, the domain's UUID and the paths of its volumes. A copy of a domain has the element and
//! another UUID, so it is somebody else's. A volume is listed before it is made: whenever a run is killed, all that it made is found.

use std::collections::BTreeMap;

use quick_xml::escape::escape;
use roxmltree::{Document, Node};
use virtbench_mark::{Mark, RunId};

use super::sign::{Sign, Standing, now_s};

/// The namespace of the element by which a domain is known to be a run's.
pub const MADE_NAMESPACE: &str = "urn:virtbench:made";

/// The prefix of its names.
pub const MADE_PREFIX: &str = "virtbench";

/// What a domain is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A guest that is measured. It ends with the connection of the run that started it.
    Guest,
    /// A VM whose management is measured.
    Vm,
    /// It is never started, and lists the volumes that all guests of a run share.
    Shared,
}

impl Purpose {
    /// As a mark has it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Guest => "guest",
            Self::Vm => "vm",
            Self::Shared => "shared",
        }
    }
}

/// What a domain says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The run and the process that made it.
    pub mark: Mark,
    /// The domain's own UUID.
    pub uuid: String,
    /// Where and when it was made.
    pub sign: Sign,
    /// Paths on the hypervisor's machine.
    pub volumes: Vec<String>,
}

impl Made {
    /// Of a domain that this process makes now, with a UUID that nothing has had before.
    #[must_use]
    pub fn new(run: &RunId, purpose: Purpose, volumes: Vec<String>) -> Self {
        let mark = Mark::new(run.clone(), purpose.word());
        Self { mark, uuid: new_uuid(), sign: Sign::now(), volumes }
    }

    /// What the domain is for.
    #[must_use]
    pub fn is_for(&self, purpose: Purpose) -> bool {
        self.mark.purpose() == purpose.word()
    }

    /// Reads it from a domain's description; nothing where virtbench did not make that domain.
    #[must_use]
    pub fn read(xml: &str) -> Option<Self> {
        let document = Document::parse(xml).ok()?;
        let root = document.root_element();
        let uuid = child(root, "uuid")?.text()?.trim().to_owned();
        let metadata = child(root, "metadata")?;
        let element = metadata.children().find(|node| node.has_tag_name((MADE_NAMESPACE, "made")))?;
        if element.attribute("uuid") != Some(uuid.as_str()) {
            return None;
        }
        let mark = Mark::parse(element.attribute("mark")?)?;
        let sign = Sign::read(|name| element.attribute(name));
        let volumes = element.children().filter(|node| node.has_tag_name((MADE_NAMESPACE, "volume")));
        let volumes = volumes.filter_map(|node| node.attribute("path").map(str::to_owned)).collect();
        Some(Self { mark, uuid, sign, volumes })
    }

    /// As the element of the domain.
    #[must_use]
    pub fn element(&self) -> String {
        self.written(&format!("{MADE_PREFIX}:"), &format!(" xmlns:{MADE_PREFIX}='{MADE_NAMESPACE}'"))
    }

    /// The same within a domain that is defined already, which knows the namespace.
    #[must_use]
    pub fn bare_element(&self) -> String {
        self.written("", "")
    }

    fn written(&self, prefix: &str, namespace: &str) -> String {
        let Self { mark, uuid, sign, .. } = self;
        let volume = |path: &String| format!("<{prefix}volume path='{}'/>", escape(path.as_str()));
        let volumes: String = self.volumes.iter().map(volume).collect();
        let sign: String =
            sign.attributes().iter().map(|(name, value)| format!(" {name}='{}'", escape(value))).collect();
        format!("<{prefix}made{namespace} mark='{mark}' uuid='{uuid}'{sign}>{volumes}</{prefix}made>")
    }
}

/// A UUID that nothing has had before.
#[must_use]
pub fn new_uuid() -> String {
    let digits = format!("{}{}", RunId::new_random(), RunId::new_random());
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    parts.join("-")
}

/// What a disk of a domain is made of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Path(String),
    /// A pool's and a volume's name.
    Volume(String, String),
}

/// All that a domain's disks are made of.
pub(super) fn sources(xml: &str) -> Vec<Source> {
    let Ok(document) = Document::parse(xml) else { return Vec::new() };
    let sources = document.descendants().filter(|node| node.has_tag_name("source"));
    let read = |node: Node<'_, '_>| {
        let of = |name: &str| node.attribute(name).map(str::to_owned);
        let path = of("file").or_else(|| of("dev")).map(Source::Path);
        path.or_else(|| Some(Source::Volume(of("pool")?, of("volume")?)))
    };
    sources.filter_map(read).collect()
}

/// The path within the target of a pool's description, or of what a volume's is backed by.
pub(super) fn path_in(xml: &str, tag: &str) -> Option<String> {
    let document = Document::parse(xml).ok()?;
    let node = child(child(document.root_element(), tag)?, "path")?;
    node.text().map(|path| path.trim().to_owned())
}

fn child<'a, 'input>(node: Node<'a, 'input>, tag: &str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| child.tag_name().name() == tag)
}

/// A run that has something on a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftRun {
    /// The run.
    pub run: RunId,
    /// The name of the machine that it ran on; empty where that is not known.
    pub host: String,
    /// When the first of it was made, in seconds since 1970.
    pub made_s: u64,
    /// When it last gave a sign of life.
    pub seen_s: u64,
    /// Whether it still needs it.
    pub standing: Standing,
    /// Names of VMs and paths of volumes.
    pub things: Vec<String>,
}

/// One thing that says whose it is.
#[derive(Debug, Clone)]
pub struct MarkedThing {
    /// Whose it is.
    pub mark: Mark,
    /// Where and when it was made.
    pub sign: Sign,
    /// Whether it is a guest that runs now and ends with its run's connection.
    pub guest_runs: bool,
    /// Its name, and what goes with it.
    pub names: Vec<String>,
}

impl LeftRun {
    /// The runs of these things, each with all that it has, the oldest first.
    #[must_use]
    pub fn gather(things: impl IntoIterator<Item = MarkedThing>) -> Vec<Self> {
        let mut runs: BTreeMap<RunId, Vec<MarkedThing>> = BTreeMap::new();
        for thing in things {
            runs.entry(thing.mark.run.clone()).or_default().push(thing);
        }
        let mut left: Vec<Self> =
            runs.into_iter().filter_map(|(run, things)| Self::of(run, things)).collect();
        left.sort_by_key(|run| run.made_s);
        left
    }

    fn of(run: RunId, things: Vec<MarkedThing>) -> Option<Self> {
        let seen_s = things.iter().map(|thing| thing.sign.seen_s).max()?;
        let made_s = things.iter().map(|thing| thing.sign.made_s).min()?;
        let guest_runs = things.iter().any(|thing| thing.guest_runs);
        let standing = |thing: &MarkedThing| Standing::of(&thing.mark, seen_s, guest_runs, now_s());
        let (mut standings, host) = (things.iter().map(standing), things[0].sign.host.clone());
        let first = standings.next()?;
        let standing = if first.is_dead() {
            standings.find(|standing| !standing.is_dead()).unwrap_or(first)
        } else {
            first
        };
        let mut names: Vec<String> = things.into_iter().flat_map(|thing| thing.names).collect();
        names.sort();
        Some(Self { run, host, made_s, seen_s, standing, things: names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(uuid: &str, element: &str) -> String {
        format!("<domain><name>n</name><uuid>{uuid}</uuid><metadata>{element}</metadata></domain>")
    }

    #[test]
    fn a_domain_is_ours_by_what_we_wrote_and_its_copy_is_not() {
        let volumes = vec!["/pool/a & b".into(), "/pool/c".into()];
        let made = Made::new(&RunId::new_random(), Purpose::Vm, volumes);
        assert_eq!(Made::read(&domain(&made.uuid, &made.element())), Some(made.clone()));
        // virt-clone gives a copy another UUID.
        assert_eq!(Made::read(&domain(&new_uuid(), &made.element())), None);
        assert_eq!(Made::read(&domain(&made.uuid, "")), None);
        let unmarked = made.element().replace(&made.mark.to_string(), "virtbench");
        assert_eq!(Made::read(&domain(&made.uuid, &unmarked)), None);
        assert_ne!(new_uuid(), new_uuid());
        assert_eq!(new_uuid().len(), 36);
    }

    #[test]
    fn paths_are_read_from_descriptions() {
        let pool = "<pool><target><path>/p</path></target></pool>";
        assert_eq!(path_in(pool, "target").as_deref(), Some("/p"));
        assert_eq!(path_in(pool, "backingStore"), None);
        let xml = "<domain><devices><disk><source file='/p/a'/></disk><disk><source dev='/dev/b'/></disk>\
                   <disk><source pool='p' volume='v'/></disk></devices></domain>";
        let path = |path: &str| Source::Path(path.into());
        assert_eq!(sources(xml), [path("/p/a"), path("/dev/b"), Source::Volume("p".into(), "v".into())]);
    }

    #[test]
    fn things_are_gathered_by_their_run_and_one_that_lives_is_enough() {
        let (one, two) = (RunId::new_random(), RunId::new_random());
        let thing = |run: &RunId, made_s, name: &str| MarkedThing {
            mark: Mark::new(run.clone(), "vm"),
            sign: Sign { made_s, ..Sign::now() },
            guest_runs: false,
            names: vec![name.into()],
        };
        let mut dead = thing(&one, 5, "b");
        let gone = dead.mark.to_string().replace("began=", "began=1");
        dead.mark = Mark::parse(&gone).unwrap();
        let runs = LeftRun::gather([dead.clone(), thing(&two, 3, "c"), thing(&one, 7, "a")]);
        let names: Vec<_> = runs.iter().map(|run| (run.made_s, run.things.join(" "))).collect();
        assert_eq!(names, [(3, "c".to_owned()), (5, "a b".to_owned())]);
        assert!(runs.iter().all(|run| !run.standing.is_dead()), "{runs:?}");
        assert!(LeftRun::gather([dead])[0].standing.is_dead());
    }
}
