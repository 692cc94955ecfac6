//! Removes what runs have left that were killed.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use roxmltree::Document;
use virtbench_libvirt::{Domain, ErrorKind, Hypervisor, LibvirtError, Pool, Volume};

use super::domain_xml::NAMESPACE;
use super::label::{Label, Owner};

/// How long the volumes of another machine's run must have lain still until they count as left. Where a run lives its
/// domain does, but for the seconds in which it is started.
const STALE: Duration = Duration::from_secs(3600);

/// Removes domains and volumes that carry a label whose controller is gone, and nothing else; returns how many.
pub(super) fn sweep(hypervisor: &Hypervisor, pool: &Pool) -> Result<usize, LibvirtError> {
    let (mut running, mut removed) = (BTreeSet::new(), 0);
    for domain in hypervisor.domains()? {
        // A domain ends with its owner's connection: of one that cannot be looked for, it proves that the owner lives.
        let Some(Made { label, shares }) = made(&domain)? else { continue };
        if label.owner() == Owner::Gone {
            gone(domain.destroy(), ErrorKind::NoDomain)?;
            tracing::info!(%label, "a domain of a run that was killed is ended");
            removed += 1;
        } else {
            running.extend([label].into_iter().chain(shares));
        }
    }
    for volume in pool.volumes()? {
        let name = volume.name()?;
        let Some(label) = Label::of_volume(&name) else { continue };
        let left = match label.owner() {
            Owner::Lives => false,
            Owner::Gone => true,
            Owner::Elsewhere => !running.contains(&label) && is_stale(&volume),
        };
        if left {
            // Another run may be sweeping as well.
            gone(volume.delete(), ErrorKind::NoVolume)?;
            tracing::info!(name, "a volume of a run that was killed is removed");
            removed += 1;
        }
    }
    Ok(removed)
}

/// What is gone already is as good as removed.
fn gone(removed: Result<(), LibvirtError>, as_well: ErrorKind) -> Result<(), LibvirtError> {
    removed.or_else(|error| if error.kind() == as_well { Ok(()) } else { Err(error) })
}

/// What is said of a domain of ours.
struct Made {
    label: Label,
    /// Whose volumes it has beside its own.
    shares: Option<Label>,
}

/// What a domain is made as, if it is ours: it has our element, and the label for its name.
fn made(domain: &Domain) -> Result<Option<Made>, LibvirtError> {
    let name = domain.name()?;
    let Some(label) = Label::parse(&name) else { return Ok(None) };
    // It may have ended meanwhile, or somebody gave a domain of his own such a name.
    let element = domain.metadata(NAMESPACE).unwrap_or_default();
    let is_ours = attribute(&element, "label") == Some(name);
    let shares = attribute(&element, "shares").and_then(|label| Label::parse(&label));
    Ok(is_ours.then_some(Made { label, shares }))
}

/// An attribute of an element of ours.
fn attribute(element: &str, name: &str) -> Option<String> {
    let document = Document::parse(element).ok()?;
    document.root_element().attribute(name).map(str::to_owned)
}

/// Whether it was not written to for long, as far as the pool says when that was.
fn is_stale(volume: &Volume) -> bool {
    let written = volume.xml().ok().and_then(|xml| written_at(&xml));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    written.is_some_and(|written| now.saturating_sub(written) > STALE)
}

/// When a volume was written to, since 1970.
fn written_at(xml: &str) -> Option<Duration> {
    let document = Document::parse(xml).ok()?;
    let time = document.descendants().find(|node| node.has_tag_name("mtime"))?.text()?;
    Some(Duration::from_secs(time.trim().split('.').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_times_are_read_as_libvirt_writes_them() {
        let made =
            "<virtbench:made xmlns:virtbench=\"urn:virtbench:made\" label=\"virtbench-x\" shares=\"y\"/>";
        assert_eq!(attribute(made, "label").as_deref(), Some("virtbench-x"));
        assert_eq!(attribute(made, "shares").as_deref(), Some("y"));
        assert_eq!(attribute("<made", "label"), None);
        let volume = "<volume type='file'><target><timestamps><atime>1.5</atime><mtime>1341933637.273190990</mtime>\
                      </timestamps></target></volume>";
        assert_eq!(written_at(volume), Some(Duration::from_secs(1_341_933_637)));
        assert_eq!(written_at("<volume/>"), None);
    }
}
