//! A thread of the driver: its users as tasks.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::mpsc::Sender;
use std::time::Duration;

use futures_util::future::{FutureExt, join, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::Notify;
use virtbench_record::{OltpKind, OltpPlan};
use virtbench_users::{Ended, IntendedStarts, ThreadUse};
use virtbench_users::{observe, runtime, until_begin, within_grace};

use crate::address::Manner;
use crate::draws::{Constants, Draws};
use crate::error::OltpError;
use crate::input::{Queue, Terminal};
use crate::mix::Choices;
use crate::session::{Session, connected};
use crate::tally::Shared;
use crate::user::{Around, GRACE, User, deliver};

/// Connections that are made at the same time.
const AT_ONCE: usize = 16;
/// Of a thread: users for each connection that runs deferred Deliveries.
const USERS_EACH: u32 = 10;
/// Deliveries that may wait, for each user.
const WAITING_EACH: u32 = 20;
/// How long a user may take to notice that a transaction was given up after the end.
const NOTICE: Duration = Duration::from_secs(1);

/// What a user or a connection for Deliveries does.
type Task<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + 'a>>;

/// What a thread has used and left over.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// CPU time while measuring.
    pub thread: ThreadUse,
    /// Deliveries that still waited at the end.
    pub left: u64,
    /// Intended starts while measuring.
    pub offered: u64,
    /// Those that were due and not started at the end.
    pub backlog: u64,
}

/// Users of a thread.
fn users(plan: &OltpPlan, thread: u32) -> impl Iterator<Item = u32> {
    (thread..plan.users).step_by(plan.threads.max(1) as usize)
}

/// Connections of a thread that run deferred Deliveries.
fn deliverers(plan: &OltpPlan, thread: u32) -> u32 {
    let users = u32::try_from(users(plan, thread).count()).unwrap_or(u32::MAX);
    let has_deliveries = plan.deferred_delivery && plan.mix.shares[OltpKind::Delivery.index()] > 0;
    if has_deliveries { users.div_ceil(USERS_EACH) } else { 0 }
}

/// Connections of all threads that run deferred Deliveries.
pub fn all_deliverers(plan: &OltpPlan) -> u32 {
    (0..plan.threads).map(|thread| deliverers(plan, thread)).sum()
}

/// Connects the thread's users, says so, and has them work once all threads are ready.
///
/// # Errors
/// The driver itself failed; what fails of the server is said through `ready` or the load.
pub fn drive(shared: &Shared<'_>, thread: u32, ready: &Sender<Result<(), OltpError>>) -> io::Result<Used> {
    runtime()?.block_on(async {
        let plan = shared.plan;
        let numbers: Vec<u32> = users(plan, thread).collect();
        let wanted = numbers.len() + deliverers(plan, thread) as usize;
        let sessions = match open(shared, wanted).await {
            Ok(sessions) => sessions,
            Err(error) => {
                let _ = ready.send(Err(error));
                return Ok(Used::default());
            }
        };
        let _ = ready.send(Ok(()));
        if !until_begin(&shared.course).await {
            return Ok(Used::default());
        }
        work(shared, thread, &numbers, sessions).await
    })
}

async fn open(shared: &Shared<'_>, wanted: usize) -> Result<Vec<Session>, OltpError> {
    let manner = Manner { isolation: shared.plan.isolation, keeps: shared.plan.prepared };
    let mut sessions = Vec::with_capacity(wanted);
    while sessions.len() < wanted {
        let count = AT_ONCE.min(wanted - sessions.len());
        for opened in join_all((0..count).map(|_| connected(shared.connect, manner))).await {
            let mut session = opened?;
            session.set_schema(&shared.schema);
            sessions.push(session);
        }
    }
    Ok(sessions)
}

/// Lets users and those who run Deliveries work until measuring has ended.
async fn work(
    shared: &Shared<'_>,
    thread: u32,
    numbers: &[u32],
    mut sessions: Vec<Session>,
) -> io::Result<Used> {
    let plan = shared.plan;
    let deliverers = sessions.split_off(numbers.len());
    let (end, ended) = Ended::new();
    let room = numbers.len() * WAITING_EACH as usize;
    let around = Around {
        shared,
        thread,
        intended: plan.rate.map(|rate| IntendedStarts::new(rate, plan.seed, thread, plan.threads)),
        queue: (!deliverers.is_empty()).then(|| RefCell::new(Queue::new(room))),
        more: Notify::new(),
        ended,
    };
    let constants = Constants::of_population(shared.population.seed).of_run(plan.seed);
    let users = numbers.iter().zip(sessions).map(|(number, session)| User {
        session,
        terminal: Terminal::new(plan.seed, *number, shared.population.warehouses, constants),
        choices: Choices::new(plan.mix, plan.seed, *number),
        draws: Draws::new(plan.seed, (1 << 41) + u64::from(*number)),
    });
    let mut tasks: FuturesUnordered<Task<'_>> =
        users.map(|user| Box::pin(user.work(&around)) as Task<'_>).collect();
    for (number, session) in deliverers.into_iter().enumerate() {
        let draws = Draws::new(plan.seed, (1 << 42) + (u64::from(thread) << 32) + number as u64);
        if let Some(queue) = &around.queue {
            tasks.push(Box::pin(deliver(session, draws, &around, queue).map(Ok)));
        }
    }
    let all = async {
        while let Some(done) = tasks.next().await {
            done.inspect_err(|_| shared.course.end_now())?;
        }
        Ok(())
    };
    let grace = GRACE + NOTICE;
    let (used, worked) = join(observe(&shared.course, &end), within_grace(all, &around.ended, grace)).await;
    worked?;
    drop(tasks);
    Ok(with_what_is_left(used, &around))
}

/// What a thread has used and left over; counts what was due and has not begun.
fn with_what_is_left(thread: ThreadUse, around: &Around<'_>) -> Used {
    let shared = around.shared;
    let (window, begin_ns) = (shared.course.window(), shared.course.begin_ns().unwrap_or(0));
    let mut tally = shared.tally(around.thread);
    let mut left = 0;
    while let Some(waiting) = around.queue.as_ref().and_then(|queue| queue.borrow_mut().take()) {
        tally.never_begun(window, OltpKind::Delivery, waiting.since_ns, false);
        left += 1;
    }
    let mut used = Used { thread, left, ..Used::default() };
    if let Some(intended) = &around.intended {
        let mut choices = Choices::new(shared.plan.mix, shared.plan.seed, u32::MAX - around.thread);
        for due_ns in intended.left(window, begin_ns) {
            let kind = choices.next();
            let awaited = kind != OltpKind::Delivery || around.queue.is_none();
            tally.never_begun(window, kind, due_ns, awaited);
            used.backlog += 1;
        }
        used.thread.late_starts = intended.late();
        used.offered = intended.offered(window, begin_ns);
    }
    used
}
