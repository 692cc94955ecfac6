//! A run of a platform, analysed: what its report card is written from.

use virtbench_model::platform::{
    Advice, DomainScore, Insight, PlatformScore, advice, insights, score_platform,
};
use virtbench_record::{PlatformPlan, Provenance, SamplesRecord};

/// The score, what rules have found, and what to change first.
pub(crate) struct Card<'a> {
    pub(crate) provenance: &'a Provenance,
    pub(crate) plan: &'a PlatformPlan,
    pub(crate) found: PlatformScore,
    pub(crate) insights: Vec<Insight>,
    pub(crate) advice: Vec<Advice>,
}

impl<'a> Card<'a> {
    pub(crate) fn new(provenance: &'a Provenance, plan: &'a PlatformPlan, records: &[SamplesRecord]) -> Self {
        let found = score_platform(plan, records);
        let insights = insights(provenance, records, &found);
        let advice = advice(records, &insights);
        Self { provenance, plan, found, insights, advice }
    }

    /// What executed the guests, such as `KVM`; nothing where none was measured.
    pub(crate) fn executed_by(&self) -> Option<String> {
        Some(self.provenance.guest.as_ref()?.accelerator.name.to_uppercase())
    }

    /// The domains that were measured, in the plan's order.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &DomainScore> {
        self.found.domains.iter().filter(|domain| domain.ratio.is_some() || !domain.figures.is_empty())
    }
}
