//! The disks of machines that run at one moment.

use virtbench_lab::{Filesystem, GuestDisk};
use virtbench_workload::JobSpec;

use super::study::Colocation;
use crate::disks::backing::Backing;
use crate::disks::images::{Images, ImagesError};
use crate::fence::{FenceDisks, FenceRequest};
use crate::runner::event::Event;
use crate::runner::run::Run;
use crate::setup::Setup;

/// A disk for each machine, and what keeps them.
pub(super) struct Disks {
    pub(super) guests: Vec<GuestDisk>,
    images: Vec<Images>,
    _fence: Option<FenceDisks>,
}

impl Disks {
    /// Makes the disks of a study's machines, in the configuration that they have.
    ///
    /// # Errors
    /// Files or devices cannot be had, or it was to stop.
    pub(super) fn make(
        study: &Colocation,
        setup: &Setup,
        filesystem: Option<Filesystem>,
        run: &mut Run<'_>,
    ) -> Result<Self, ImagesError> {
        let (contents, size_bytes) = study.contents(filesystem);
        let (folder, run_name, vms) = (study.disks_folder(run), run.name(), study.vms());
        let observer = &mut *run.observer;
        let mut show = |what: &str, done, total| observer.event(Event::Making { what, done, total });
        if let Backing::Fence(fence) = &setup.backing {
            // One daemon for all: that is what they share.
            let written = run.out.join("fence.toml");
            let access = study.jobs.iter().find_map(|job| match &job.spec {
                JobSpec::Load(load) => Some(&load.access),
                JobSpec::Workload(_) => None,
            });
            let request = FenceRequest {
                folder,
                run_name: &run_name,
                adapter: setup.adapter,
                settings: &setup.settings,
                options: fence,
                names: &vms,
                size_bytes,
                contents,
                images: &[],
                warm: access,
                configuration: Some(&written),
            };
            let fence = FenceDisks::prepare(&request, run.stop, &mut show)?;
            return Ok(Self { guests: fence.disks().to_vec(), images: Vec::new(), _fence: Some(fence) });
        }
        Images::check_room(folder, &run_name, vms.len(), setup, size_bytes)?;
        let mut images = Vec::with_capacity(vms.len());
        for vm in &vms {
            let (name, setup) = (format!("{run_name}-{vm}"), std::slice::from_ref(setup));
            let mut show = |what: &str, done, total| show(&format!("{vm}: {what}"), done, total);
            images.push(Images::prepare(folder, &name, setup, size_bytes, contents, run.stop, &mut show)?);
        }
        let first = |images: &Images| images.disks().first().map(|(disk, _)| disk.clone());
        Ok(Self { guests: images.iter().filter_map(first).collect(), images, _fence: None })
    }

    /// What a reader of the results should know about them.
    pub(super) fn notes(&self) -> Vec<String> {
        self.images.iter().flat_map(|images| images.notes().to_vec()).collect()
    }
}
