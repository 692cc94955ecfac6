//! What else the hosts of a run were busy with.

use virtbench_record::{HostUse, Records};

use crate::host_load::LoadSample;

/// On average beside all that was measured; nothing where nobody looked.
#[must_use]
pub fn run_load(records: &Records) -> Option<LoadSample> {
    let hosts: Vec<&HostUse> = match records {
        Records::Points(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Sets(all) => all.iter().filter_map(|one| one.host.as_ref()).collect(),
        Records::Trials(all) => all.iter().filter_map(|one| one.machine_host.as_ref()).collect(),
        Records::Oltp(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Operations(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Application(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Desktops(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
        Records::Samples(all) => all.iter().filter_map(|one| one.measured()?.host.as_ref()).collect(),
        Records::Tiles(all) => all.iter().filter_map(|one| Some(&one.measured()?.host)).collect(),
    };
    LoadSample::mean(&hosts.into_iter().filter_map(LoadSample::of).collect::<Vec<_>>())
}
