//! Many users at once.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join_all, select};
use tokio::time::Instant;
use virtbench_desktops::Day;
use virtbench_rfb::Rectangle;

use crate::desk::Desk;
use crate::outcome::UsersEvent;
use crate::user::{Shared, work};

/// How long users have to sit down: all begin at one moment.
const SIT_DOWN: Duration = Duration::from_secs(3);
/// Where nobody is inside, users look for what changes all the time: a clock shows four seconds in that.
const LOOK_AROUND: Duration = Duration::from_secs(5);
/// How often somebody looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

/// What users do, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct UsersPlan<'a> {
    /// What they do.
    pub day: &'a Day,
    /// Seed of their orders and think times.
    pub seed: u64,
    /// For how long.
    pub time: Duration,
    /// Parts of every picture whose changes say nothing of an operation.
    pub masks: &'a [Rectangle],
}

/// Has a user sit down before each desktop and work there, all in this thread. Every user's first application begins at one moment.
/// A user whose desktop fails is reported; the others go on.
///
/// # Errors
/// The system gives no means to wait for connections.
pub fn drive(
    desks: Vec<Desk>,
    plan: UsersPlan<'_>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(UsersEvent),
) -> io::Result<()> {
    for stream in desks.iter().flat_map(|desk| desk.screen.iter().chain(&desk.control)) {
        stream.set_nonblocking(true)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let is_unaided = desks.iter().any(|desk| desk.control.is_none());
        let begun = Instant::now() + if is_unaided { LOOK_AROUND } else { SIT_DOWN };
        let shared = Shared {
            day: plan.day,
            seed: plan.seed,
            begun,
            until: begun + plan.time,
            stop,
            masks: plan.masks,
            tell: RefCell::new(tell),
            worst: Cell::new(0),
        };
        let shared = &shared;
        let users = join_all((0..).zip(desks).map(|(user, desk)| work(shared, user, desk)));
        select(pin!(users), pin!(told_to_stop(stop))).await;
    });
    Ok(())
}

/// Whatever users wait for, they leave then.
async fn told_to_stop(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(LOOK).await;
    }
}
