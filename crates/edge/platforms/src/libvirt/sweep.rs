//! Removes what runs have made: killed ones', by the next run, and a run's own.

use std::time::{Duration, Instant};

use virtbench_lab::{Label, Owner};
use virtbench_libvirt::{Domain, ErrorKind, Hypervisor, LibvirtError, Pool};

use super::labels::label_of;
use super::xml::{NAMESPACE, label_in};

/// How long one removal may take.
const EACH: Duration = Duration::from_secs(60);

/// Removes domains and volumes whose label is `wanted`, and nothing else; how many. Volumes whose names begin with `kept` stay.
pub(super) fn remove(
    hypervisor: &Hypervisor,
    pool: &Pool,
    wanted: &dyn Fn(&Label) -> bool,
    kept: Option<&str>,
    deadline: Instant,
) -> Result<usize, LibvirtError> {
    let mut removed = 0;
    for domain in hypervisor.domains()? {
        if made_by(&domain)?.is_some_and(|label| wanted(&label)) {
            gone(domain.destroy_if_running())?;
            gone(domain.undefine(EACH))?;
            removed += 1;
        }
        in_time(deadline)?;
    }
    for volume in pool.volumes()? {
        let name = volume.name()?;
        let is_kept = kept.is_some_and(|kept| name.starts_with(kept));
        if !is_kept && label_of(&name).is_some_and(|label| wanted(&label)) {
            gone(volume.delete())?;
            removed += 1;
        }
        in_time(deadline)?;
    }
    Ok(removed)
}

/// Whether the process that made something is gone. One on another machine cannot be looked for.
pub(super) fn is_left_over(label: &Label) -> bool {
    label.owner() == Owner::Gone
}

/// The label of a domain that is a run's: it has our element, and its name begins with the label in it.
pub(super) fn made_by(domain: &Domain) -> Result<Option<Label>, LibvirtError> {
    let Some(label) = label_of(&domain.name()?) else { return Ok(None) };
    let said = domain.metadata(NAMESPACE).ok().and_then(|made| label_in(&made));
    Ok((said.as_deref() == Some(label.to_string().as_str())).then_some(label))
}

fn in_time(deadline: Instant) -> Result<(), LibvirtError> {
    let late = LibvirtError::Late { what: "remove everything that carries the label", limit: EACH };
    if Instant::now() < deadline { Ok(()) } else { Err(late) }
}

/// What is gone already is as good as removed.
fn gone(removed: Result<(), LibvirtError>) -> Result<(), LibvirtError> {
    removed.or_else(|error| match error.kind() {
        ErrorKind::NoDomain | ErrorKind::NoVolume => Ok(()),
        _ => Err(error),
    })
}
