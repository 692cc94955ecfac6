//! Pages that are merged while something is measured.

use super::rule::{Evidence, Finding, Outcome, Seen};

const PAGE_BYTES: f64 = 4096.0;

pub(super) fn merging(seen: &Seen<'_>) -> Outcome {
    let Some(ksm) = seen.tuning().and_then(|tuning| tuning.ksm) else {
        return Outcome::unavailable("this kernel does not merge equal pages (KSM), or does not tell");
    };
    if !ksm.runs || ksm.sharing_pages == 0 {
        return Outcome::Silent;
    }
    let mib = ksm.sharing_pages as f64 * PAGE_BYTES / f64::from(1 << 20);
    Outcome::Fires(Finding {
        evidence: vec![Evidence::new("memory that KSM spares", mib, "MiB")],
        sentence: "The kernel merges equal pages of guests: it spares memory, looks through all of it, and copies a page at its first write.".into(),
        change: "Stop KSM if memory suffices without it, and measure again.".into(),
        gain: None,
    })
}
