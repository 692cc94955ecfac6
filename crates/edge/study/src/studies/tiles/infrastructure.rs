//! The infrastructure load: management operations at a fixed pace on VMs of the run's own, beside the tiles.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use virtbench_engine::monotonic_ns;
use virtbench_platforms::Platform;
use virtbench_record::{OperationsMeasured, OperationsPlan, TilesPlan};

use super::generator::{Moments, wait_until};
use super::tiles_place::TilesPlace;
use crate::runner::progress::Progress;
use crate::studies::operations::{Fleet, PieceLoad, REMOVE_LIMIT, Starts, measure_piece};
use crate::study_error::StudyError;

/// What the platform has of this run goes when this is dropped.
struct Removal<'a>(&'a dyn Platform);

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.remove_all(Instant::now() + REMOVE_LIMIT) {
            tracing::warn!(%error, "VMs of this run are left for the next one to remove");
        }
    }
}

/// VMs that operations are done on.
pub(super) struct Infrastructure<'a> {
    fleet: Fleet<'a>,
    plan: &'a OperationsPlan,
    _removal: Removal<'a>,
}

impl<'a> Infrastructure<'a> {
    /// Makes the VMs; nothing where none are asked for.
    ///
    /// # Errors
    /// One cannot be made or started, or it was to stop.
    pub(super) fn prepare<'b: 'a>(
        plan: &'a TilesPlan,
        place: &'a TilesPlace,
        progress: &mut Progress<'b>,
    ) -> Result<Option<Self>, StudyError> {
        let Some((plan, platform)) = plan.infrastructure.as_ref().zip(place.platform.as_deref()) else {
            return Ok(None);
        };
        let vms = plan.vms.first().copied().unwrap_or(2);
        progress.doing(&format!("making {vms} VMs for the infrastructure load"));
        let removal = Removal(platform);
        let fleet = Fleet::prepare(platform, plan, vms, progress.stop)?;
        Ok(Some(Self { fleet, plan, _removal: removal }))
    }

    /// Operates from the common beginning to the common end. Those that are meant to start before measuring begins do not count.
    ///
    /// # Errors
    /// It was to stop.
    pub(super) fn run(
        &self,
        moments: Moments,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<OperationsMeasured, StudyError> {
        let short =
            || StudyError::input("the mix of management operations has no room in the measuring time");
        let (rounds, gap_ns) = self.plan.pace().ok_or_else(short)?;
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let total = u64::from(self.plan.mix.values().sum::<u32>());
        let counted = rounds.saturating_mul(total);
        let ramp_up_ns = moments.measure_ns.saturating_sub(moments.begin_ns);
        let starts = Starts::Paced {
            gap: Duration::from_nanos(gap_ns),
            // Whole rounds, so that counting begins with VMs that are ready for one.
            uncounted: number(ramp_up_ns / (gap_ns * total).max(1) * total),
            counted: number(counted),
        };
        wait_until(moments.begin_ns, stop);
        if stop.load(Ordering::Relaxed) {
            return Err(StudyError::Stopped);
        }
        // From measuring on it takes as long as the gaps do, which is the measuring time but for what divides unevenly.
        let begin_ns = monotonic_ns();
        let length_ns = moments.measure_ns.saturating_sub(begin_ns).saturating_add(gap_ns * counted);
        let length = Duration::from_nanos(length_ns);
        let load = PieceLoad { starts, clients: self.plan.most_at_once, length, seed };
        measure_piece(&self.fleet, &load, None, stop)
    }
}
