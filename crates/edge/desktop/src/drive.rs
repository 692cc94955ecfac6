//! Many users at once.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join_all, select};
use tokio::time::Instant;
use virtbench_desktops::{Day, Itinerary, Step};
use virtbench_rfb::Rectangle;

use crate::control::{Control, Fault, FaultKind};
use crate::desk::Desk;
use crate::operation::Seat;
use crate::outcome::{OperationDone, Screenshot, UsersEvent};
use crate::screen::Screen;

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

/// Whom users tell what they see.
pub(crate) type Tell<'a> = RefCell<&'a mut dyn FnMut(UsersEvent)>;

/// What all users share.
pub(crate) struct Shared<'a> {
    pub(crate) day: &'a Day,
    pub(crate) seed: u64,
    pub(crate) begun: Instant,
    /// When users begin nothing any more.
    pub(crate) until: Instant,
    pub(crate) stop: &'a AtomicBool,
    /// What is left out of every picture.
    pub(crate) masks: &'a [Rectangle],
    pub(crate) tell: Tell<'a>,
    /// The longest operation so far beside its limit, of which a picture is kept.
    pub(crate) worst: Cell<u64>,
}

/// How often a user who thinks looks whether it is all over.
const USER_LOOK: Duration = Duration::from_millis(100);

impl Shared<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.until
    }

    fn tell(&self, event: UsersEvent) {
        (self.tell.borrow_mut())(event);
    }
}

/// Works until the time is over or the desktop is of no use any more, which is told.
pub(crate) async fn work(shared: &Shared<'_>, user: u32, desk: Desk) {
    let mut seat = None;
    if let Err(fault) = day(shared, user, desk, &mut seat).await {
        let screenshot = seat.as_ref().and_then(|seat: &Seat| Screenshot::of(seat.screen.frame()));
        shared.tell(UsersEvent::Gone { user, why: fault.to_string(), screenshot });
    }
}

async fn day(shared: &Shared<'_>, user: u32, desk: Desk, place: &mut Option<Seat>) -> Result<(), Fault> {
    let server = |error| Fault::Lost("the VNC server", error);
    let session = |error| Fault::Lost("the program inside the session", error);
    let stream = desk.screen.map_err(Fault::Unreached)?;
    let stream = tokio::net::TcpStream::from_std(stream).map_err(server)?;
    let control = desk
        .control
        .map(|control| tokio::net::TcpStream::from_std(control).map_err(session).and_then(Control::new));
    let control = control.transpose()?;
    let is_unaided = control.is_none();
    let screen = Screen::open(stream, desk.password, !is_unaided, shared.masks.to_vec()).await?;
    let seat = place.insert(Seat::new(screen, control));
    seat.find_marker().await?;
    seat.screen.measure_round_trip().await?;
    if is_unaided {
        let parts = seat.leave_out_restless(shared.begun).await?;
        if !parts.is_empty() {
            shared.tell(UsersEvent::Restless { user, parts });
        }
    } else {
        seat.think(shared.begun).await?;
    }
    let (mut applications, mut has_failed) = (0_u64, false);
    for step in Itinerary::new(shared.day, shared.seed, user) {
        if step.operation == 0 {
            applications += 1;
            has_failed = false;
        }
        if has_failed {
            continue;
        }
        let is_storm = applications == 1;
        think(shared, seat, step, is_storm && step.operation == 0).await?;
        if shared.is_over() {
            break;
        }
        has_failed = !operation(shared, user, seat, step, is_storm).await?;
    }
    seat.clear().await
}

/// Users do not think before the first operation: they all begin at once.
async fn think(shared: &Shared<'_>, seat: &mut Seat, step: Step, is_first: bool) -> Result<(), Fault> {
    if is_first {
        return Ok(());
    }
    let until = (Instant::now() + Duration::from_nanos(step.think_ns)).min(shared.until);
    while Instant::now() < until && !shared.is_over() {
        seat.think(until.min(Instant::now() + USER_LOOK)).await?;
    }
    Ok(())
}

/// One operation, and its report; false if it has failed and the desktop can still be used.
async fn operation(
    shared: &Shared<'_>,
    user: u32,
    seat: &mut Seat,
    step: Step,
    is_storm: bool,
) -> Result<bool, Fault> {
    let Some(application) = shared.day.applications.get(step.application) else { return Ok(true) };
    let Some(operation) = application.operations.get(step.operation) else { return Ok(true) };
    let begun = shared.begun.elapsed().as_nanos();
    let done = |result| OperationDone {
        user,
        operation: step.number,
        begun_ns: u64::try_from(begun).unwrap_or(u64::MAX),
        is_storm,
        result,
    };
    let timed = seat.perform(shared.day, application, operation, step.number).await;
    let settled = match timed {
        Ok(timed) => {
            if let Some(echo) = timed.echo {
                shared.tell(UsersEvent::Echo(echo));
            }
            let share = timed.times.latency_ns.saturating_mul(1000) / shared.day.limits.of(operation.group);
            let screenshot = (share > shared.worst.get()).then(|| Screenshot::of(seat.screen.frame()));
            shared.worst.set(share.max(shared.worst.get()));
            let least = Duration::from_nanos(shared.day.think.least);
            let times = seat.settle(timed, Instant::now() + least).await?;
            shared.tell(UsersEvent::Done(done(Ok(times)), screenshot.flatten()));
            return Ok(true);
        }
        Err(fault) => fault,
    };
    let why = format!("{} {}: {settled}", application.name, operation.name);
    shared.tell(UsersEvent::Done(done(Err(why)), Screenshot::of(seat.screen.frame())));
    match settled.kind() {
        FaultKind::Desktop => Err(settled),
        FaultKind::Operation => seat.clear().await.map(|()| false),
    }
}
