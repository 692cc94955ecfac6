//! The loop: one thread, one ring, one fence over one pair of devices, and any number of front ends.

mod change;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use virtbench_fence::{Fence, Time};

pub use crate::requests::{Core, Full};

use crate::device::{Backend, Facts};
use crate::frontend::{FrontEnd, Host};
use crate::metrics::Metrics;
use crate::requests::Devices;
use crate::ring::{Event, Interest, Ring, Watcher};

/// Entries of the ring.
const RING_ENTRIES: u32 = 1024;

/// Events taken in one turn at most.
const MOST_EVENTS: usize = 512;

/// Device I/Os that are put together before the kernel gets them: more, and the device idles meanwhile.
const SUBMIT_AT: usize = 8;

/// Turns that may pass meanwhile.
const MOST_HELD: usize = 4;

/// Pauses of the processor's between two looks at what may have come: together about a third of a microsecond.
const PAUSES: u32 = 32;

/// The watcher of the stop signal.
const STOP: Watcher = Watcher { front_end: usize::MAX, token: 0 };

/// How often the figures are brought up to date under load.
const PUBLISH_NS: u64 = 100_000_000;

/// Memory that is kept for requests to come while there are none for so long.
const KEPT_AT_REST: usize = 1 << 20;

const REST: Duration = Duration::from_secs(2);

const REST_NS: u64 = 1_900_000_000;

/// How long requests in flight are waited for at the end.
const DRAIN: Duration = Duration::from_secs(10);

/// What the loop is made of.
pub struct Parts {
    /// The core.
    pub fence: Fence,
    /// For each virtual disk that it serves, whether every write is stable before it is answered.
    pub write_through: Vec<bool>,
    /// The slow and the fast device, where they are there.
    pub devices: [Option<Box<dyn Backend>>; 2],
    /// How clients get in.
    pub front_ends: Vec<Box<dyn FrontEnd>>,
    /// Requests of one disk that are in flight at most.
    pub requests_per_disk: usize,
    /// The longest request that the fence takes; longer ones are handed over in parts.
    pub max_request_bytes: u32,
    /// How long to look for work before sleeping, as long as what came last came within that time.
    pub spin: Duration,
    /// Where requests are counted.
    pub figures: Arc<Metrics>,
}

/// Ends a [`Runtime`] from another thread.
#[derive(Debug, Clone)]
pub struct Stopper {
    flag: Arc<AtomicBool>,
    event: Arc<OwnedFd>,
}

impl Stopper {
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { flag: Arc::default(), event: Arc::new(event) })
    }

    /// Asks it to end: requests in flight are finished first.
    pub fn stop(&self) {
        self.flag.store(true, Ordering::Release);
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }

    fn is_set(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }
}

/// The daemon's loop, to be run on the thread that makes it.
pub struct Runtime {
    core: Core,
    ring: Ring,
    devices: Devices,
    front_ends: Vec<Box<dyn FrontEnd>>,
    origin: Instant,
    spin: Duration,
    stopper: Stopper,
    events: Vec<Event>,
    published: Time,
    /// Requests taken in the last turn from shared memory.
    handed: usize,
    /// Turns since the kernel was last looked after.
    held: usize,
    /// Somebody waits for it to rest.
    rest: Option<Rest>,
    /// A change was begun that cannot be completed here.
    has_given_up: bool,
}

impl Runtime {
    /// Puts the parts together; time begins.
    ///
    /// # Errors
    /// The kernel has no ring for us.
    pub fn new(parts: Parts, stopper: Stopper) -> io::Result<Self> {
        let none = Facts { size_bytes: 0, block_bytes: 512, memory_alignment: 1 };
        let facts = [0, 1].map(|device: usize| parts.devices[device].as_ref().map_or(none, |d| d.facts()));
        let Parts {
            fence,
            write_through,
            devices,
            front_ends,
            requests_per_disk,
            max_request_bytes,
            spin,
            figures,
        } = parts;
        Ok(Self {
            core: Core::new(fence, write_through, requests_per_disk, max_request_bytes, facts, figures),
            ring: Ring::new(RING_ENTRIES)?,
            devices,
            front_ends,
            origin: Instant::now(),
            spin,
            stopper,
            events: Vec::with_capacity(MOST_EVENTS),
            published: Time::ZERO,
            handed: 0,
            held: 0,
            rest: None,
            has_given_up: false,
        })
    }

    /// Lets front ends begin to listen: once, before the first [`turn`](Self::turn). [`run`](Self::run) does it itself.
    pub fn begin(&mut self) {
        self.ring.watch(self.stopper.event.as_fd(), Interest::READ, STOP);
        self.tell_time();
        self.each(|front_end, host| front_end.start(host));
    }

    /// Requests in flight.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.core.pending()
    }

    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// The ring fails, or a change of disks was begun and cannot be completed: nothing mends that here.
    pub fn run(mut self) -> io::Result<()> {
        let spin_ns = u64::try_from(self.spin.as_nanos()).unwrap_or(u64::MAX);
        self.begin();
        let mut busy_at = self.core.now;
        // What comes more slowly than that is not worth looking for: it is slept through at once.
        let mut quick = true;
        while !self.stopper.is_set() {
            if self.turn()? {
                busy_at = self.core.now;
            } else if (!quick || self.core.now.since(busy_at) >= spin_ns)
                && !self.any(|front_end, host| front_end.before_sleep(host))
            {
                self.core.publish();
                let rests = self.core.pending() == 0 && self.core.pool.kept_bytes() > KEPT_AT_REST;
                let limit = self.until_deadline();
                let limit = if rests { Some(limit.unwrap_or(REST).min(REST)) } else { limit };
                self.ring.wait(limit)?;
                self.tell_time();
                if rests && self.core.now.since(busy_at) >= REST_NS {
                    self.core.pool.release();
                }
                quick = self.core.now.since(busy_at) < spin_ns;
                busy_at = self.core.now;
            } else {
                // Polling without pause takes the cache line away from the writer.
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            }
        }
        let has_given_up = self.has_given_up;
        self.drain()?;
        if has_given_up {
            let why = "a change of disks was begun and failed: the same command completes it";
            return Err(io::Error::other(why));
        }
        Ok(())
    }

    /// Takes what has come and hands out what is ready, without waiting. False if nothing has come.
    ///
    /// # Errors
    /// The ring fails.
    pub fn turn(&mut self) -> io::Result<bool> {
        // What comes in one turn after another goes to the kernel together, as each call may wake a device; but a client
        // that never rests must not keep others' I/Os from it.
        if self.handed > 0 && self.held < MOST_HELD && self.ring.queued() < SUBMIT_AT {
            self.held += 1;
        } else {
            self.held = 0;
            self.ring.submit()?;
        }
        self.tell_time();
        if self.core.now.since(self.published) > PUBLISH_NS {
            self.published = self.core.now;
            self.core.publish();
        }
        let mut busy = self.take_events();
        self.on_timers();
        busy |= self.collect();
        self.handed = 0;
        for place in 0..self.front_ends.len() {
            let mut host = Host { front_end: place, core: &mut self.core, ring: &mut self.ring };
            self.handed += self.front_ends[place].poll(&mut host);
            self.carry_out();
            if self.ring.queued() >= SUBMIT_AT {
                self.ring.submit()?;
            }
        }
        self.each(|front_end, host| front_end.settle(host));
        busy |= self.look_after_wishes();
        busy |= self.carry_out();
        Ok(busy || self.handed > 0)
    }

    fn tell_time(&mut self) {
        let ns = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.core.now = Time::from_ns(ns);
    }

    fn take_events(&mut self) -> bool {
        let mut events = std::mem::take(&mut self.events);
        self.ring.reap(MOST_EVENTS, &mut events);
        let busy = !events.is_empty();
        for event in events.drain(..) {
            match event {
                Event::Device { device, slot, result } => {
                    if let Some(backend) = &mut self.devices[device.index()] {
                        backend.on_ring(self.core.now, slot, result, &mut self.ring);
                    }
                }
                Event::Ready(watcher) => {
                    let mut host =
                        Host { front_end: watcher.front_end, core: &mut self.core, ring: &mut self.ring };
                    if let Some(front_end) = self.front_ends.get_mut(watcher.front_end) {
                        front_end.ready(watcher.token, &mut host);
                    }
                    while let Some((disk, size_bytes)) = self.core.resized() {
                        self.each(|front_end, host| front_end.resized(disk, size_bytes, host));
                    }
                }
            }
        }
        self.events = events;
        busy
    }

    /// Brings finished device I/Os to the fence, and completions to front ends, until there are none.
    fn collect(&mut self) -> bool {
        let mut busy = false;
        loop {
            let mut any = false;
            for device in 0..self.devices.len() {
                while let Some(finished) = self.devices[device].as_mut().and_then(|device| device.finished())
                {
                    any = true;
                    self.core.finished(finished);
                }
            }
            while let Some(finished) = self.core.refused() {
                any = true;
                self.core.finished(finished);
            }
            any |= self.carry_out();
            busy |= any;
            if !any {
                return busy;
            }
        }
    }

    /// Carries out what the fence wants and tells front ends what is done. True if anything was.
    fn carry_out(&mut self) -> bool {
        let mut any = self.core.carry_out(&mut self.devices, &mut self.ring);
        let mut done = std::mem::take(self.core.done());
        for (place, done) in done.drain(..) {
            any = true;
            let mut host = Host { front_end: place, core: &mut self.core, ring: &mut self.ring };
            if let Some(front_end) = self.front_ends.get_mut(place) {
                front_end.completed(done, &mut host);
            }
        }
        // A front end may hand in more from within; that is carried out with the next call.
        let newer = std::mem::replace(self.core.done(), done);
        self.core.done().extend(newer);
        any
    }

    fn on_timers(&mut self) {
        let now = self.core.now;
        let due = |deadline: Option<Time>| deadline.is_some_and(|deadline| deadline <= now);
        if due(self.core.next_deadline()) {
            self.core.on_timer();
        }
        for device in self.devices.iter_mut().flatten() {
            if due(device.next_deadline()) {
                device.on_timer(now, &mut self.ring);
            }
        }
        for place in 0..self.front_ends.len() {
            if due(self.front_ends[place].next_deadline()) {
                let mut host = Host { front_end: place, core: &mut self.core, ring: &mut self.ring };
                self.front_ends[place].on_timer(&mut host);
            }
        }
    }

    /// How long nothing has to be done, if nothing happens; `None` for ever.
    fn until_deadline(&mut self) -> Option<Duration> {
        let devices = self.devices.iter().flatten().filter_map(|device| device.next_deadline());
        let front_ends = self.front_ends.iter().filter_map(|front_end| front_end.next_deadline());
        let rest = self.rest.as_ref().map(|rest| rest.until);
        let first = devices.chain(front_ends).chain(self.core.next_deadline()).chain(rest).min()?;
        self.tell_time();
        Some(Duration::from_nanos(first.since(self.core.now)))
    }

    fn each(&mut self, mut act: impl FnMut(&mut dyn FrontEnd, &mut Host<'_>)) {
        for (place, front_end) in self.front_ends.iter_mut().enumerate() {
            let mut host = Host { front_end: place, core: &mut self.core, ring: &mut self.ring };
            act(front_end.as_mut(), &mut host);
        }
    }

    fn any(&mut self, mut act: impl FnMut(&mut dyn FrontEnd, &mut Host<'_>) -> bool) -> bool {
        let mut any = false;
        self.each(|front_end, host| any |= act(front_end, host));
        any
    }

    /// No new requests; those in flight are finished, for a limited time, and made stable: clients that go on with the
    /// next daemon find whatever was answered.
    fn drain(mut self) -> io::Result<()> {
        self.each(|front_end, host| front_end.stop(host));
        let until = Instant::now() + DRAIN;
        self.finish(until)?;
        if self.core.pending() == 0 {
            self.core.flush_all();
            self.finish(until)?;
        }
        if self.core.pending() > 0 {
            // The kernel may still write to memory of ours: it must not be used for anything else until the process ends.
            std::mem::forget(self);
        }
        Ok(())
    }

    fn finish(&mut self, until: Instant) -> io::Result<()> {
        while self.core.pending() > 0 && Instant::now() < until {
            if !self.turn()? {
                let left = until.saturating_duration_since(Instant::now());
                let limit = self.until_deadline().unwrap_or(left).min(left);
                self.ring.wait(Some(limit))?;
            }
        }
        Ok(())
    }
}

/// Somebody who waits until nothing is under way.
struct Rest {
    answer: SyncSender<Result<(), String>>,
    until: Time,
    /// All disks have been asked to make stable what they have.
    is_flushed: bool,
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
