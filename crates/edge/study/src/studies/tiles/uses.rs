//! Which members of a tile use which: what is valid, who starts before whom, and where members are that run on machines of others.

use virtbench_record::TileMemberPlan;
use virtbench_users::Address;

use crate::appliances::joined::{Use, is_host_name};
use crate::environments::{ClusterGuest, is_cluster};

/// The most cables of one member, to those that it uses and to those that use it: each is a network interface.
const MOST_CABLES: usize = 16;

/// Who reaches whom, each by its place among the members.
pub(super) fn uses(members: &[TileMemberPlan]) -> Vec<Use> {
    let place = |name: &str| members.iter().position(|member| member.name == name);
    let of = |(from, member): (usize, &TileMemberPlan)| {
        let each = member
            .uses
            .iter()
            .filter_map(|(name, other)| Some(Use { from, to: place(other)?, name: name.clone() }));
        each.collect::<Vec<_>>()
    };
    members.iter().enumerate().flat_map(of).collect()
}

/// How members start: those of each stage at once, after all that they use. Each is a place among the members.
pub(super) fn stages(members: &[TileMemberPlan]) -> Vec<Vec<usize>> {
    let uses = uses(members);
    let (mut stages, mut left): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), (0..members.len()).collect());
    while !left.is_empty() {
        let waits = |place: &usize| uses.iter().any(|one| one.from == *place && left.contains(&one.to));
        let (waiting, ready): (Vec<usize>, Vec<usize>) = left.iter().partition(|place| waits(place));
        if ready.is_empty() {
            // A circle, which no file has that was read.
            stages.push(waiting);
            break;
        }
        stages.push(ready);
        left = waiting;
    }
    stages
}

/// Whether what members use, and by whom their data are prepared, is valid.
///
/// # Errors
/// The first member of which it cannot; in words.
pub(super) fn check(members: &[TileMemberPlan]) -> Result<(), String> {
    let is_there = |name: &str| members.iter().any(|member| member.name == name);
    for member in members {
        let no = |why: String| Err(format!("member {}: {why}", member.name));
        for (name, other) in &member.uses {
            if !is_host_name(name) {
                return no(format!("uses: {name:?}: a host's name of a-z, 0-9 and -"));
            }
            if !is_there(other) {
                return no(format!("uses: there is no member {other}"));
            }
        }
        let Some(by) = &member.prepare_by else { continue };
        if member.prepare.is_empty() {
            return no("prepare_by: there are no commands: add prepare".into());
        }
        if !members
            .iter()
            .any(|other| other.name == *by && other.uses.values().any(|used| *used == member.name))
        {
            return no(format!("prepare_by: no member {by} uses it"));
        }
    }
    check_cables(members)?;
    check_circles(members)
}

fn check_cables(members: &[TileMemberPlan]) -> Result<(), String> {
    let uses = uses(members);
    for (place, member) in members.iter().enumerate() {
        let cables = uses.iter().filter(|one| one.from == place || one.to == place).count();
        if cables > MOST_CABLES {
            let name = &member.name;
            return Err(format!(
                "member {name}: uses: it is joined to others {cables} times: {MOST_CABLES} at most"
            ));
        }
    }
    Ok(())
}

fn check_circles(members: &[TileMemberPlan]) -> Result<(), String> {
    let (uses, mut seen) = (uses(members), Vec::new());
    let in_order: Vec<usize> = stages(members).concat();
    let is_before = |one: &Use| {
        let at = |place: usize| in_order.iter().position(|other| *other == place);
        at(one.to) < at(one.from)
    };
    let Some(wrong) = uses.iter().find(|one| !is_before(one)) else { return Ok(()) };
    // Everyone of the last stage uses somebody of it, so that the walk comes back to where it has been.
    let last = stages(members).pop().unwrap_or_default();
    let mut at = Some(wrong.from);
    while let Some(place) = at.filter(|place| !seen.contains(place)) {
        seen.push(place);
        at = uses.iter().find(|one| one.from == place && last.contains(&one.to)).map(|one| one.to);
    }
    let from = seen.iter().position(|place| Some(*place) == at).unwrap_or(0);
    let names: Vec<&str> =
        seen[from..].iter().chain(&at).map(|place| members[*place].name.as_str()).collect();
    Err(format!("member {}: uses: members use each other in a circle: {}", names[0], names.join(", ")))
}

/// The setting of a template's address that says where its service listens.
const SERVICE_PORT: &str = "service-port=";

/// Where a member of each tile is.
#[derive(Debug)]
pub(super) enum MemberAt {
    /// At an address for each tile, in words: `HOST` or `HOST:PORT`.
    Addresses(Vec<String>),
    /// In a VM for each tile, made of a template of a cluster or an image of a cloud that has its software in it.
    Template(Box<Template>),
}

/// What VMs are made of, and where their service listens, if not at the recipe's port.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) guest: ClusterGuest,
    pub(super) port: Option<u16>,
}

impl MemberAt {
    /// Reads what a tile's file has.
    ///
    /// # Errors
    /// One is no address, or a template stands among others; in words.
    pub(super) fn parse(at: &[String]) -> Result<Self, String> {
        let Some(text) = at.iter().find(|text| is_cluster(text)) else {
            return at
                .iter()
                .try_for_each(|text| Address::parse(text, 1).map(drop))
                .map(|()| Self::Addresses(at.to_vec()));
        };
        if at.len() > 1 {
            return Err(format!("{text} is a template of which each tile has a VM: name it alone"));
        }
        let (server, query) = text.split_once('?').unwrap_or((text, ""));
        let (ports, others): (Vec<&str>, Vec<&str>) =
            query.split('&').filter(|one| !one.is_empty()).partition(|one| one.starts_with(SERVICE_PORT));
        let port = ports.first().map(|port| {
            port[SERVICE_PORT.len()..].parse().map_err(|_| format!("{server}: {port}: no such port"))
        });
        let guest = ClusterGuest::parse(&format!("{server}?{}", others.join("&")))?;
        Ok(Self::Template(Box::new(Template { guest, port: port.transpose()? })))
    }

    /// How many tiles it is enough for.
    pub(super) fn tiles(&self) -> u32 {
        match self {
            Self::Addresses(addresses) => u32::try_from(addresses.len()).unwrap_or(u32::MAX),
            Self::Template(_) => u32::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_enough_for_all_tiles_and_addresses_for_one_each() {
        let of = |texts: &[&str]| {
            MemberAt::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["10.0.0.1", "10.0.0.2:6380"]).unwrap().tiles(), 2);
        let template = of(&["proxmox:pve?template=redis&service-port=6380&node=one"]).unwrap();
        assert_eq!(template.tiles(), u32::MAX);
        let MemberAt::Template(template) = template else { panic!("{template:?}") };
        assert_eq!(template.port, Some(6380));
        assert!(template.guest.to_string().contains("template=redis&node=one"), "{}", template.guest);
        for (texts, word) in [
            (&["10.0.0.1:x"][..], "no address"),
            (&["proxmox:pve?template=redis", "10.0.0.1"], "name it alone"),
            (&["proxmox:pve"], "template"),
            (&["openstack:here"], "flavor"),
            (&["proxmox:pve?template=redis&service-port=x"], "no such port"),
        ] {
            let why = of(texts).unwrap_err();
            assert!(why.contains(word), "{texts:?}: {why}");
        }
    }
}
