//! Whether a measurement has the host to itself: said once while it runs, and kept for its record.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use virtbench_lab::CpuSample;
use virtbench_model::{busy_host, is_busy};
use virtbench_record::HostUse;

use crate::claim;
use crate::say::tell;

/// Shorter than this, the processors' accounts, kept in ticks of 10 ms, tell little.
const LOOK_FOR: Duration = Duration::from_secs(1);
/// How often other measurements are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is known of who else uses the host.
pub struct Company {
    others: BTreeSet<String>,
    looked: Instant,
    /// The beginning of the stretch that is looked at, until it has been judged.
    since: Option<(Instant, CpuSample)>,
}

/// What has been said already: a search applies many loads.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static BUSY_SAID: AtomicBool = AtomicBool::new(false);

impl Company {
    /// From now on. Another measurement that runs already is said at once.
    pub fn new() -> Self {
        let since = CpuSample::take().ok().map(|sample| (Instant::now(), sample));
        let mut company = Self { others: BTreeSet::new(), looked: Instant::now(), since };
        company.find_others();
        company
    }

    /// Looks again, now and then; cheap enough to be called at every turn.
    pub fn look(&mut self) {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            self.find_others();
        }
        if let Some((_, sample)) = self.since.take_if(|(since, _)| since.elapsed() >= LOOK_FOR)
            && let Ok(now) = CpuSample::take()
        {
            self.judge(&sample.until(&now));
        }
    }

    /// Says, once, that other programs use the host, if they did.
    pub fn judge(&self, host: &HostUse) {
        if is_busy(host) && !BUSY_SAID.swap(true, Ordering::Relaxed) {
            let used = host.others_percent.unwrap_or(0.0) / 100.0;
            tell!(
                "note: other programs use {used:.1} of this host's {} processors: the figures will show that as well",
                host.processors
            );
        }
    }

    /// What a record says of it: other measurements, and other programs over the measuring times given.
    pub fn notes<'a>(&mut self, hosts: impl IntoIterator<Item = &'a HostUse>) -> Vec<String> {
        self.find_others();
        let others = (!self.others.is_empty()).then(|| claim::beside(self.others.iter()));
        others.into_iter().chain(busy_host(hosts).map(|busy| busy.words())).collect()
    }

    fn find_others(&mut self) {
        let others: Vec<String> = claim::others().iter().map(claim::Other::words).collect();
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<&String> = others.iter().filter(|words| said.insert((*words).clone())).collect();
        if !new.is_empty() {
            tell!("note: {}", claim::beside(new.into_iter()));
        }
        self.others.extend(others);
    }
}
