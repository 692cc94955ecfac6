//! Which VMs run appliances, as a user chooses them.

use std::path::PathBuf;

use crate::guests::{ApplianceGuests, WantedAccelerator};
use crate::runner::event::Event;
use crate::runner::run::Run;
use crate::study_error::StudyError;

/// What runs the VMs of a study of appliances.
#[derive(Debug, Clone, Default)]
pub struct GuestChoice {
    /// What executes their instructions.
    pub accelerator: WantedAccelerator,
    /// Their kernel, instead of the one that is found.
    pub kernel: Option<PathBuf>,
}

impl GuestChoice {
    /// What VMs with appliances need, that have up to so many processors and, where said so, a screen.
    ///
    /// # Errors
    /// Something is missing, or no accelerator works.
    pub(crate) fn find(&self, needs: (u32, bool), run: &mut Run<'_>) -> Result<ApplianceGuests, StudyError> {
        let remark = &mut |what: &str| run.observer.event(Event::Remark(what));
        Ok(ApplianceGuests::find_for_study(self.accelerator, self.kernel.as_deref(), needs, remark)?)
    }

    /// The accelerator as a plan names it.
    pub(crate) fn accelerator_name(&self) -> String {
        self.accelerator.name().to_owned()
    }
}
