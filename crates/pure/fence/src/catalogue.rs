//! All ways of storing virtual disks that share devices: the variants of [VirtualFence 2013], Table 1, what they are
//! compared with, and our own.
//!
//! The simulator, the daemon's configuration, studies, help and pages take their lists and settings from here. Nothing
//! depends on how a name is spelt.

use std::fmt;

use crate::paced::PacedConfig;
use crate::peers::{Cap, CfqConfig, FairConfig, Shares};
use crate::scheduler::Parameters;
use crate::schedulers::SchedulerConfig;
use crate::slots::SlotsConfig;

/// Length of a time slot where none is given ([VirtualFence 2013], section 7.3.2), milliseconds.
pub const SLOT_MS: f64 = 20.0;
/// I/Os in a batch at most where nothing is given: as many as were benchmarked.
pub const MAX_BATCH: u32 = 100;
/// The hit rate that caches are sized for in most figures of [VirtualFence 2013], percent.
pub const HIT_PERCENT: f64 = 50.0;

/// Where virtual disks live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On the slow device.
    Slow,
    /// On the fast device.
    Fast,
    /// On the slow device behind one cache on the fast one for all of them.
    Shared,
    /// On the slow device behind a cache on the fast one for each.
    Partitioned,
}

impl Placement {
    /// Whether the fast device caches the slow one.
    #[must_use]
    pub const fn is_cached(self) -> bool {
        matches!(self, Self::Shared | Self::Partitioned)
    }
}

/// What a variant is beside the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Disks without a fence, in virtual time under the host's scheduler. The daemon does not serve them.
    Unfenced,
    /// A scheduler of others.
    Peer,
    /// A row of [VirtualFence 2013], Table 1.
    Table1,
    /// Ours.
    Own,
}

/// The rates of each disk that a variant gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rates {
    /// None.
    None,
    /// A limit.
    Limit,
    /// A reservation and a limit.
    ReservationAndLimit,
}

/// What the daemon or the simulator makes a scheduler's configuration with.
type Configure = fn(&Parameters) -> SchedulerConfig;

/// A way of storing virtual disks.
#[derive(Clone, Copy)]
pub struct Variant {
    /// Its name in configurations, options and tables.
    pub name: &'static str,
    /// What it is, in a few words.
    pub description: &'static str,
    /// What it is beside the others.
    pub kind: Kind,
    /// Where disks live when variants are compared.
    pub placement: Placement,
    /// Whether they live nowhere else. The daemon puts those of another variant where it has a device.
    pub fixed: bool,
    /// The scheduler's configuration.
    pub scheduler: Configure,
    /// The scheduler's configuration where the host below the fence is modelled too; [`scheduler`](Self::scheduler) elsewhere.
    pub modelled_host: Option<Configure>,
    /// Length of its time slots where none is given, milliseconds; nothing of one without slots.
    pub slot_ms: Option<f64>,
    /// The rates of each disk that it gets.
    pub rates: Rates,
    /// Whether a disk that is alone may use the time or the rate that the others leave.
    pub work_conserving: bool,
    /// Whether devices get as much at once as there is, whatever depth they are configured with.
    pub unlimited_depth: bool,
}

impl Variant {
    /// First in, first out on the slow device.
    const PLAIN: Self = Self {
        name: "",
        description: "",
        kind: Kind::Peer,
        placement: Placement::Slow,
        fixed: false,
        scheduler: |_| SchedulerConfig::Fifo,
        modelled_host: None,
        slot_ms: None,
        rates: Rates::None,
        work_conserving: true,
        unlimited_depth: false,
    };
    /// A row of Table 1 without slots: nothing shares time but the host.
    const TABLE_1: Self = Self { kind: Kind::Table1, fixed: true, modelled_host: Some(host), ..Self::PLAIN };
    /// One with slots.
    const SLOTS: Self = Self {
        scheduler: |parameters| SchedulerConfig::Slots(SlotsConfig::new(parameters)),
        modelled_host: None,
        slot_ms: Some(SLOT_MS),
        work_conserving: false,
        ..Self::TABLE_1
    };

    /// Whether the daemon serves it.
    #[must_use]
    pub const fn is_served(&self) -> bool {
        !matches!(self.kind, Kind::Unfenced)
    }

    /// Whether it has nothing to do without the slow device; the fast one takes its place where the variant is not fixed.
    #[must_use]
    pub const fn needs_slow(&self) -> bool {
        !matches!(self.placement, Placement::Fast)
    }

    /// Whether it has nothing to do without the fast device.
    #[must_use]
    pub const fn needs_fast(&self) -> bool {
        self.fixed && !matches!(self.placement, Placement::Slow)
    }
}

impl fmt::Debug for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Names differ.
impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Variant {}

/// Linux's CFQ, the host's scheduler of [VirtualFence 2013], section 4.4.
#[allow(clippy::cast_possible_truncation)] // at most 65535 disks
fn host(parameters: &Parameters) -> SchedulerConfig {
    SchedulerConfig::Cfq(CfqConfig::per_disk(parameters.disks.len() as u16))
}

/// Makes each row a constant, and the list of all.
macro_rules! rows {
    ($($id:ident = { $name:literal, $description:literal, $($field:ident: $value:expr,)* .. $base:ident })*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $description, ".")]
            pub const $id: Variant =
                Variant { name: $name, description: $description, $($field: $value,)* ..Variant::$base };
        )*

        /// All of them, in the order of tables.
        pub const CATALOGUE: [&Variant; [$($name),*].len()] = [$(&$id),*];
    };
}

rows! {
    HDD = {
        "HDD", "no fence: the slow device under the host's scheduler",
        kind: Kind::Unfenced, .. TABLE_1
    }
    SSD = {
        "SSD", "no fence: the fast device under the host's scheduler",
        kind: Kind::Unfenced, placement: Placement::Fast, .. TABLE_1
    }
    PASS_THROUGH = {
        "pass-through", "no fence: everything at once to the devices",
        unlimited_depth: true, .. PLAIN
    }
    FIFO = { "fifo", "first in, first out", .. PLAIN }
    ELEVATOR = {
        "elevator", "the circular elevator",
        scheduler: |_| SchedulerConfig::Elevator, .. PLAIN
    }
    TOKEN_BUCKET = {
        "token-bucket", "a cap for each",
        scheduler: |parameters| SchedulerConfig::TokenBucket(Cap::each(parameters)),
        rates: Rates::Limit, work_conserving: false, .. PLAIN
    }
    MCLOCK = {
        "mclock", "mClock, reservation = limit",
        scheduler: |parameters| SchedulerConfig::MClock(Shares::each(parameters)),
        rates: Rates::ReservationAndLimit, work_conserving: false, .. PLAIN
    }
    FAIR_QUEUE = {
        "fair-queue", "budgets of sectors, as BFQ",
        scheduler: |parameters| SchedulerConfig::FairQueue(FairConfig::new(parameters)), .. PLAIN
    }
    HDD_SLOTS = { "HDD+NWC", "Table 1: slots on the slow device", .. SLOTS }
    SSD_SLOTS = {
        "SSD+NWC", "Table 1: slots on the fast device",
        placement: Placement::Fast, .. SLOTS
    }
    HYBRID_SHARED = {
        "Hybrid/Shared", "Table 1: one cache",
        placement: Placement::Shared, .. TABLE_1
    }
    HYBRID_SHARED_SLOTS = {
        "Hybrid/Shared+NWC", "Table 1: one cache, slots",
        placement: Placement::Shared, .. SLOTS
    }
    HYBRID_PARTITIONED = {
        "Hybrid/Partitioned", "Table 1: a cache for each",
        placement: Placement::Partitioned, .. TABLE_1
    }
    VIRTUAL_FENCE = {
        "VirtualFence", "Table 1: a cache for each, slots",
        placement: Placement::Partitioned, .. SLOTS
    }
    PACED = {
        "paced", "our own: virtual devices",
        kind: Kind::Own, placement: Placement::Partitioned,
        scheduler: |parameters| SchedulerConfig::Paced(PacedConfig::new(parameters)),
        work_conserving: false, .. PLAIN
    }
}

/// Those that the daemon serves.
pub fn served() -> impl Iterator<Item = &'static Variant> {
    CATALOGUE.into_iter().filter(|variant| variant.is_served())
}

/// The one of that name, in whatever case.
#[must_use]
pub fn find(name: &str) -> Option<&'static Variant> {
    CATALOGUE.into_iter().find(|variant| variant.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
