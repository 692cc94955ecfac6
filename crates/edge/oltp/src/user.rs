//! A user: chooses, enters, waits, thinks, for as long as the load takes.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use tokio::sync::Notify;
use virtbench_engine::monotonic_ns;
use virtbench_record::OltpKind;
use virtbench_users::{Alarm, Ended, IntendedStarts};

use crate::draws::Draws;
use crate::error::{Fault, no_answer};
use crate::input::{Delivery, Input, Queue, Terminal};
use crate::mix::Choices;
use crate::session::Session;
use crate::statement::{One, bare};
use crate::tally::{EndedTransaction, Shared, TransactionDone};
use crate::transactions::perform;

/// The pause before a second try, in microseconds; it doubles, up to 64 times as much.
const PAUSE_US: u64 = 500;
/// After so many failed transactions in a row a load makes no sense.
const MOST_FAILURES: u32 = 20;
/// How long a transaction may go on after measuring has ended.
pub const GRACE: Duration = Duration::from_secs(10);
/// How long a user waits when the queue of Deliveries is full.
const FULL: Duration = Duration::from_millis(5);

/// What the users of a thread have in common.
pub struct Around<'a> {
    /// The load.
    pub shared: &'a Shared<'a>,
    /// The thread's number.
    pub thread: u32,
    /// The next intended starts, in an open loop.
    pub intended: Option<IntendedStarts>,
    /// Deliveries that wait, where they are deferred.
    pub queue: Option<RefCell<Queue>>,
    /// Tells those who run Deliveries.
    pub more: Notify,
    /// Tells when measuring has ended.
    pub ended: Ended,
}

/// A user with a connection.
pub struct User {
    /// The connection.
    pub session: Session,
    /// Where the user sits.
    pub terminal: Terminal,
    /// What the user does.
    pub choices: Choices,
    /// For pauses before another try.
    pub draws: Draws,
}

impl User {
    /// Works until measuring has ended.
    pub async fn work(mut self, around: &Around<'_>) -> io::Result<()> {
        let factor = around.shared.plan.think_factor;
        let alarm = around.intended.is_some().then(Alarm::new).transpose()?;
        let mut failures = 0;
        while !around.shared.course.has_ended() {
            let kind = self.choices.next();
            let input = self.terminal.enter(kind);
            if let Some(factor) = factor
                && !around.ended.sleep(Choices::keying_ns(kind, factor)).await
            {
                break;
            }
            let start_ns = match (&alarm, &around.intended) {
                (Some(alarm), Some(intended)) => {
                    let begin_ns = around.shared.course.begin_ns().unwrap_or(0);
                    match intended.wait(alarm, &around.ended, begin_ns).await? {
                        Some(at_ns) => at_ns,
                        None => break,
                    }
                }
                _ => monotonic_ns(),
            };
            match (&input, &around.queue) {
                (Input::Delivery(delivery), Some(queue)) => around.defer(queue, *delivery, start_ns).await,
                _ => {
                    let done = attempt(around, &mut self.session, &mut self.draws, &input, kind).await;
                    note(around, kind, (start_ns, true), &done);
                    failures = if done.is_ok() { 0 } else { failures + 1 };
                    if let Err(fault) = done
                        && failures >= MOST_FAILURES
                    {
                        let words = format!(
                            "{MOST_FAILURES} transactions of a user failed one after the other; the last: {fault}"
                        );
                        around.shared.course.fail(Fault { words, ..fault });
                    }
                }
            }
            if let Some(factor) = factor
                && !around.ended.sleep(self.choices.think_ns(kind, factor)).await
            {
                break;
            }
        }
        Ok(())
    }
}

/// Runs deferred Deliveries until measuring has ended.
pub async fn deliver(mut session: Session, mut draws: Draws, around: &Around<'_>, queue: &RefCell<Queue>) {
    while !around.shared.course.has_ended() {
        let waiting = queue.borrow_mut().take();
        match waiting {
            Some(waiting) => {
                let input = Input::Delivery(waiting.delivery);
                let done = attempt(around, &mut session, &mut draws, &input, OltpKind::Delivery).await;
                note(around, OltpKind::Delivery, (waiting.since_ns, false), &done);
            }
            None => {
                if around.ended.unless(around.more.notified()).await.is_none() {
                    break;
                }
            }
        }
    }
}

impl Around<'_> {
    /// Puts a Delivery that is due since `due_ns` into the queue; waits where that is full.
    async fn defer(&self, queue: &RefCell<Queue>, delivery: Delivery, due_ns: u64) {
        while !queue.borrow_mut().offer(delivery, monotonic_ns()) {
            if self.ended.unless(tokio::time::sleep(FULL)).await.is_none() {
                let window = self.shared.course.window();
                self.shared.tally(self.thread).never_begun(window, OltpKind::Delivery, due_ns, true);
                return;
            }
        }
        self.more.notify_one();
        let longest = queue.borrow_mut().take_longest();
        let window = self.shared.course.window();
        if window.contains(monotonic_ns()) {
            let mut tally = self.shared.tally(self.thread);
            tally.queued += 1;
            tally.longest_queue = tally.longest_queue.max(longest);
        }
    }
}

/// Runs a transaction, again if need be, until it ends, or until measuring ended some time ago.
async fn attempt(
    around: &Around<'_>,
    session: &mut Session,
    draws: &mut Draws,
    input: &Input,
    kind: OltpKind,
) -> Result<TransactionDone, Fault> {
    let tried = around.ended.with_grace(tries(around, session, draws, input, kind), GRACE).await;
    tried.unwrap_or_else(|| Err(no_answer(GRACE)))
}

async fn tries(
    around: &Around<'_>,
    session: &mut Session,
    draws: &mut Draws,
    input: &Input,
    kind: OltpKind,
) -> Result<TransactionDone, Fault> {
    let (shared, limit) = (around.shared, Duration::from_nanos(around.shared.plan.timeout_ns));
    let mut tried = 0;
    loop {
        let ended = tokio::time::timeout(limit, perform(session, input)).await;
        let fault = match ended.unwrap_or_else(|_| Err(no_answer(limit))) {
            Ok(done) => return Ok(done),
            Err(fault) => fault,
        };
        if fault.kind.ends_all() {
            shared.course.fail(fault.clone());
            return Err(fault);
        }
        let rolled_back = tokio::time::timeout(limit, session.run(&[bare(One::Rollback)])).await;
        if rolled_back.unwrap_or_else(|_| Err(no_answer(limit))).is_err() {
            // What the server said first is why it does not roll back.
            shared.course.fail(fault.clone());
            return Err(fault);
        }
        let again = fault.kind.may_pass() && tried < shared.plan.retries && !shared.course.has_ended();
        if fault.kind.may_pass() {
            let (window, now_ns) = (shared.course.window(), monotonic_ns());
            shared.tally(around.thread).passing(window, kind, now_ns, fault.kind, again);
        }
        if !again {
            return Err(fault);
        }
        let most = PAUSE_US << tried.min(6);
        let pause_us = draws.between(0, u32::try_from(most).unwrap_or(u32::MAX));
        tokio::time::sleep(Duration::from_micros(pause_us.into())).await;
        tried += 1;
    }
}

fn note(
    around: &Around<'_>,
    kind: OltpKind,
    (due_ns, awaited): (u64, bool),
    done: &Result<TransactionDone, Fault>,
) {
    let ended = EndedTransaction { kind, due_ns, at_ns: monotonic_ns(), awaited };
    let how = done.as_ref().map(|done| *done);
    around.shared.tally(around.thread).ended(around.shared.course.window(), ended, how);
}
