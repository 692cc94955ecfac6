//! Counting what a thread of the driver completes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use virtbench_record::{OltpKind, OltpPlan, OltpSecond};
use virtbench_units::{Counted, Ending, Responses, Window};
use virtbench_users::{LoadCourse, Seconds, percentile};

use crate::address::Connect;
use crate::error::{Fault, FaultKind};
use crate::population::Population;
use crate::schema::Schema;

/// One of the five transactions.
#[derive(Debug, Clone, Default)]
pub struct OfKind {
    /// Response times.
    pub responses: Responses,
    /// Rolled back on purpose.
    pub rolled_back: u64,
    /// Tries that failed in a way that may pass: deadlocks, serialization failures, lock waits.
    pub passing: [u64; 3],
    /// Tries beyond the first.
    pub retries: u64,
}

/// What ended in a second; in the last one also what had not.
#[derive(Debug, Clone, Default)]
pub struct Second {
    transactions: u64,
    new_orders: u64,
    /// Response times, in microseconds.
    response_us: Vec<u32>,
}

/// What a thread has counted.
#[derive(Debug, Default)]
pub struct Tally {
    /// Each of the five.
    pub kinds: [OfKind; 5],
    /// Failed transactions by what the server said.
    pub errors: BTreeMap<String, u64>,
    /// Deliveries put into the queue.
    pub queued: u64,
    /// Orders delivered.
    pub orders: u64,
    /// Districts without an order to deliver.
    pub skipped: u64,
    /// The longest queue.
    pub longest_queue: usize,
    /// What nobody has taken yet.
    pub seconds: Seconds<Second>,
}

/// A transaction that ended, or that nobody waits for any more.
#[derive(Debug, Clone, Copy)]
pub struct EndedTransaction {
    /// Which of the five.
    pub kind: OltpKind,
    /// Since when it was due, in nanoseconds of the monotonic clock.
    pub due_ns: u64,
    /// When it ended.
    pub at_ns: u64,
    /// Whether a user waited for it.
    pub awaited: bool,
}

impl Tally {
    /// Counts a transaction that ended, as it should or because of what the server said.
    pub fn ended(&mut self, window: Window, ended: EndedTransaction, how: Result<TransactionDone, &Fault>) {
        let EndedTransaction { kind, due_ns, at_ns, awaited } = ended;
        let ending = match how {
            Ok(_) => Ending::Completed,
            Err(fault) if fault.kind == FaultKind::Timeout => Ending::GivenUp,
            Err(_) => Ending::Failed,
        };
        let of_kind = &mut self.kinds[kind.index()];
        let counted = of_kind.responses.ended(window, due_ns, at_ns, ending);
        let second = match counted {
            Counted::Within => self.seconds.at(window.second(at_ns)),
            Counted::Unfinished => self.seconds.at(window.last_second()),
            Counted::Outside => return,
        };
        if awaited && (counted == Counted::Unfinished || ending != Ending::Failed) {
            let took_us = at_ns.saturating_sub(due_ns) / 1_000;
            second.response_us.push(u32::try_from(took_us).unwrap_or(u32::MAX));
        }
        match how {
            _ if counted == Counted::Unfinished => {}
            Ok(done) => {
                of_kind.rolled_back += u64::from(done.rolled_back);
                self.orders += u64::from(done.orders);
                self.skipped += u64::from(done.skipped);
                second.transactions += 1;
                second.new_orders += u64::from(kind == OltpKind::NewOrder && !done.rolled_back);
            }
            Err(fault) => *self.errors.entry(fault.words.clone()).or_insert(0) += 1,
        }
    }

    /// Counts a transaction that has not begun.
    pub fn never_begun(&mut self, window: Window, kind: OltpKind, due_ns: u64, awaited: bool) {
        let ended = EndedTransaction { kind, due_ns, at_ns: window.end_ns, awaited };
        self.ended(window, ended, Ok(TransactionDone::default()));
    }

    /// Counts a try that failed and may succeed.
    pub fn passing(&mut self, window: Window, kind: OltpKind, at_ns: u64, fault: FaultKind, again: bool) {
        if !window.contains(at_ns) {
            return;
        }
        let of_kind = &mut self.kinds[kind.index()];
        let place = match fault {
            FaultKind::Deadlock => 0,
            FaultKind::Serialization => 1,
            _ => 2,
        };
        of_kind.passing[place] += 1;
        of_kind.retries += u64::from(again);
    }

    /// Adds what another thread has counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.responses.merge(&theirs.responses);
            mine.rolled_back += theirs.rolled_back;
            mine.passing.iter_mut().zip(theirs.passing).for_each(|(mine, theirs)| *mine += theirs);
            mine.retries += theirs.retries;
        }
        for (words, count) in &other.errors {
            *self.errors.entry(words.clone()).or_insert(0) += count;
        }
        self.queued += other.queued;
        self.orders += other.orders;
        self.skipped += other.skipped;
        self.longest_queue = self.longest_queue.max(other.longest_queue);
    }
}

/// Second number `number` of the series, from what each thread has of it.
pub fn second(number: u64, length_ns: u64, parts: impl IntoIterator<Item = Second>) -> OltpSecond {
    let mut all = Second::default();
    for part in parts {
        all.transactions += part.transactions;
        all.new_orders += part.new_orders;
        all.response_us.extend(part.response_us);
    }
    let p90_ns = percentile(&mut all.response_us, 90).map(|us| u64::from(us) * 1_000);
    OltpSecond {
        start_ns: number * 1_000_000_000,
        length_ns,
        transactions: all.transactions,
        new_orders: all.new_orders,
        p90_ns,
    }
}

/// A load that runs.
pub struct Shared<'a> {
    /// The load.
    pub plan: &'a OltpPlan,
    /// Where to.
    pub connect: &'a Connect,
    /// Where the tables are.
    pub schema: Schema,
    /// On what.
    pub population: Population,
    /// When it begins and ends.
    pub course: LoadCourse<Fault>,
    tallies: Vec<Mutex<Tally>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Shared<'a> {
    /// A load that has not begun.
    pub fn new(plan: &'a OltpPlan, connect: &'a Connect, (schema, population): (Schema, Population)) -> Self {
        Self {
            plan,
            connect,
            schema,
            population,
            course: LoadCourse::new(plan.ramp_up_ns, plan.time_ns),
            tallies: (0..plan.threads).map(|_| Mutex::new(Tally::default())).collect(),
        }
    }

    /// What thread number `thread` counts.
    pub fn tally(&self, thread: u32) -> MutexGuard<'_, Tally> {
        held(&self.tallies[thread as usize])
    }

    /// What all threads count.
    pub fn tallies(&self) -> impl Iterator<Item = MutexGuard<'_, Tally>> {
        self.tallies.iter().map(held)
    }
}

/// A transaction that ended as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionDone {
    /// Whether it was rolled back because of an unused item.
    pub rolled_back: bool,
    /// Orders delivered.
    pub orders: u32,
    /// Districts without an order to deliver.
    pub skipped: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { start_ns: 5_000_000_000, end_ns: 8_000_000_000 };

    fn ended(kind: OltpKind, at_ms: u64, took_ms: u64) -> EndedTransaction {
        EndedTransaction {
            kind,
            due_ns: (at_ms - took_ms) * 1_000_000,
            at_ns: at_ms * 1_000_000,
            awaited: kind != OltpKind::Delivery,
        }
    }

    #[test]
    fn what_ends_before_the_window_does_not_count_and_what_ends_after_it_does_with_its_time() {
        let mut tally = Tally::default();
        let fault = Fault::new(FaultKind::Other, "no");
        for at_ms in [4_999, 5_000, 7_999, 8_009] {
            tally.ended(WINDOW, ended(OltpKind::Payment, at_ms, 10), Ok(TransactionDone::default()));
            tally.passing(WINDOW, OltpKind::Payment, at_ms * 1_000_000, FaultKind::Deadlock, true);
            tally.ended(WINDOW, ended(OltpKind::Payment, at_ms, 10), Err(&fault));
        }
        let payment = &tally.kinds[OltpKind::Payment.index()];
        let responses = &payment.responses;
        assert_eq!((responses.completed(), responses.failed(), responses.unfinished()), (2, 2, 2));
        assert_eq!((payment.passing, payment.retries), ([2, 0, 0], 2));
        assert_eq!(tally.errors.values().sum::<u64>(), 2);
        tally.never_begun(WINDOW, OltpKind::Payment, 6_000_000_000, true);
        let last = second(2, 1_000_000_000, tally.seconds.take(9).remove(&2));
        assert_eq!((last.transactions, last.p90_ns), (1, Some(2_000_000_000)));
    }

    #[test]
    fn seconds_have_the_90th_percentile_of_what_users_waited_for() {
        let (mut one, mut other) = (Tally::default(), Tally::default());
        let done = Ok(TransactionDone::default());
        (1..=10).for_each(|took| one.ended(WINDOW, ended(OltpKind::NewOrder, 5_500, took), done));
        (11..=20).for_each(|took| other.ended(WINDOW, ended(OltpKind::Payment, 5_600, took), done));
        let delivered = TransactionDone { orders: 9, skipped: 1, ..TransactionDone::default() };
        other.ended(WINDOW, ended(OltpKind::Delivery, 5_700, 900), Ok(delivered));
        let rolled_back = TransactionDone { rolled_back: true, ..TransactionDone::default() };
        one.ended(WINDOW, ended(OltpKind::NewOrder, 6_100, 5), Ok(rolled_back));
        let parts = [&mut one, &mut other].map(|tally| tally.seconds.take(1).remove(&0).unwrap());
        let first = second(0, 1_000_000_000, parts);
        assert_eq!((first.transactions, first.new_orders, first.p90_ns), (21, 10, Some(18_000_000)));
        let rest = second(1, 1_000_000_000, one.seconds.take(9).into_values());
        assert_eq!((rest.transactions, rest.new_orders), (1, 0), "what is rolled back is no new order");
        one.merge(&other);
        assert_eq!(
            (one.kinds[0].responses.completed(), one.kinds[0].rolled_back, one.orders, one.skipped),
            (11, 1, 9, 1)
        );
        assert_eq!(second(2, 1, []).p90_ns, None);
    }
}
