//! A run of a platform, analysed: what its report card is written from.

use virtbench_model::platform::{
    Advice, DomainScore, Insight, PlatformScore, advice, insights, score_platform,
};
use virtbench_record::{HostUse, PlatformPlan, Provenance, SamplesRecord};

/// The score, what rules have found, and what to change first.
pub(crate) struct Card<'a> {
    pub(crate) provenance: &'a Provenance,
    pub(crate) plan: &'a PlatformPlan,
    pub(crate) found: PlatformScore,
    pub(crate) insights: Vec<Insight>,
    pub(crate) advice: Vec<Advice>,
    /// The host in each part.
    hosts: Vec<HostUse>,
}

/// So large a part of the processors may be used by others.
const OTHERS: f64 = 0.1;

impl<'a> Card<'a> {
    pub(crate) fn new(provenance: &'a Provenance, plan: &'a PlatformPlan, records: &[SamplesRecord]) -> Self {
        let found = score_platform(plan, records);
        let insights = insights(provenance, records, &found);
        let advice = advice(records, &insights);
        let measured = records.iter().filter_map(SamplesRecord::measured);
        let hosts = measured.filter_map(|measured| measured.host.clone()).collect();
        Self { provenance, plan, found, insights, advice, hosts }
    }

    /// Processors that other programs used on average while something was measured, and how many there are; nothing where they used next
    /// to none, or nobody looked.
    pub(crate) fn others(&self) -> Option<(f64, u32)> {
        let used: Vec<f64> = self.hosts.iter().filter_map(|host| host.others_percent).collect();
        let mean = used.iter().sum::<f64>() / 100.0 / used.len().max(1) as f64;
        let processors = self.hosts.first()?.processors;
        (mean > OTHERS * f64::from(processors)).then_some((mean, processors))
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
