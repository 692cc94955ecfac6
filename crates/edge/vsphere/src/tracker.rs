//! One thread that follows all tasks for all who wait.
//!
//! The server is asked a few times how a new task is, within a tenth of a second. One that is not over by then goes on a
//! list on the server, which one property collector follows, and its end comes with the updates: nobody asks again and again.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use roxmltree::Node;
use virtbench_https::Limit;

use crate::error::{Fault, VsphereError};
use crate::outage::through_outages;
use crate::properties::{self, Change, Collector, PropertySet};
use crate::reply;
use crate::reply::Reference;
use crate::request::Request;
use crate::session::{self, Session};
use crate::task::{self, Progress, STATE, TASK, Task};

/// Pauses before a task is asked for. What is over by then is not put on the list.
const SHORT: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(4), Duration::from_millis(16), Duration::from_millis(64)];
/// A request for updates stands no longer than this.
const STANDS: Duration = Duration::from_secs(10);
/// Pauses after failures, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Changes of a VM after which it is looked at again.
const MACHINE: PropertySet = PropertySet {
    kind: "VirtualMachine",
    paths: &["runtime.powerState", "runtime.host", "config.changeVersion"],
};

/// What is known of something that is waited for.
#[derive(Debug, Default)]
struct Known {
    /// How often something was said of it.
    news: u64,
    over: bool,
    gone: bool,
    arrived: Option<Instant>,
}

#[derive(Debug, Default)]
struct TaskWatch {
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    watches: HashMap<Reference, Arc<TaskWatch>>,
    added: Vec<Reference>,
    removed: Vec<Reference>,
    /// The list on the server.
    view: Option<Reference>,
    trouble: Option<String>,
    closing: bool,
}

struct Shared {
    session: Arc<Session>,
    table: Mutex<Table>,
    wake: Condvar,
    /// Held while the list on the server is changed, for all whose changes are there by then.
    sending: Mutex<()>,
}

/// Waits for tasks and for changes of VMs.
pub(crate) struct Tracker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The end of a task.
#[derive(Debug)]
pub(crate) struct Ended {
    pub task: Task,
    /// What the server, the network and the waiting took.
    pub waited: Duration,
    pub retries: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tracker {
    /// The thread begins with the first task that takes longer.
    pub fn new(session: Arc<Session>) -> Self {
        let shared =
            Shared { session, table: Mutex::default(), wake: Condvar::new(), sending: Mutex::new(()) };
        Self { shared: Arc::new(shared), thread: Mutex::new(None) }
    }

    /// Waits until a task is over.
    ///
    /// # Errors
    /// It is not over in time, nobody says how it is, or it is gone.
    pub fn end(&self, what: &'static str, task: &Reference, limit: Limit) -> Result<Ended, VsphereError> {
        let vanished = || VsphereError::Fault {
            what,
            fault: Fault::new(
                "ManagedObjectNotFound",
                "the server forgot its task; whether it was done is not known",
            ),
        };
        let mut ended = Ended { task: Task::default(), waited: Duration::ZERO, retries: 0 };
        let look = |ended: &mut Ended| -> Result<bool, VsphereError> {
            let (look, away, failed) = through_outages(limit, || {
                properties::of_one(&self.shared.session, task, TASK, limit, Task::of_object)
            })?;
            ended.waited += away + look.waited;
            ended.retries += look.retries + failed;
            ended.task = look.value.ok_or_else(vanished)?;
            Ok(ended.task.progress != Progress::Open)
        };
        for pause in SHORT {
            let pause = pause.min(limit.left());
            thread::sleep(pause);
            ended.waited += pause;
            if look(&mut ended)? {
                return Ok(ended);
            }
        }
        let begun = Instant::now();
        let following = self.follow(task)?;
        let told =
            following.until(limit, |known| (known.over || known.gone).then_some((known.over, known.arrived)));
        let (over, arrived) = told.ok_or_else(|| self.late(what, limit))?;
        ended.waited +=
            arrived.map_or_else(|| begun.elapsed(), |arrived| arrived.saturating_duration_since(begun));
        if over && look(&mut ended)? { Ok(ended) } else { Err(vanished()) }
    }

    /// Waits until `look` gives a value; it is asked at first and after each change of the VM. With the time that was waited.
    pub fn seen<T>(
        &self,
        machine: &Reference,
        limit: Limit,
        mut look: impl FnMut(Limit) -> Result<(Option<T>, Duration), VsphereError>,
    ) -> Result<(Option<T>, Duration), VsphereError> {
        let (value, mut waited) = look(limit)?;
        if value.is_some() {
            return Ok((value, waited));
        }
        let following = self.follow(machine)?;
        let mut news = 0;
        loop {
            let begun = Instant::now();
            let changed =
                following.until(limit, |known| (known.news > news).then_some((known.news, known.arrived)));
            let Some((now, arrived)) = changed else { return Ok((None, waited)) };
            news = now;
            waited +=
                arrived.map_or_else(|| begun.elapsed(), |arrived| arrived.saturating_duration_since(begun));
            let (value, more) = look(limit)?;
            waited += more;
            if value.is_some() {
                return Ok((value, waited));
            }
        }
    }

    fn late(&self, what: &'static str, limit: Limit) -> VsphereError {
        let last = lock(&self.shared.table).trouble.clone();
        VsphereError::Late {
            what: format!("the task of {what}, which goes on there,"),
            limit: limit.length(),
            last,
        }
    }

    fn follow(&self, object: &Reference) -> Result<Following<'_>, VsphereError> {
        self.begin()?;
        let watch = Arc::new(TaskWatch::default());
        let ready = {
            let mut table = lock(&self.shared.table);
            table.watches.insert(object.clone(), watch.clone());
            table.added.push(object.clone());
            table.view.is_some()
        };
        self.shared.wake.notify_all();
        if ready {
            self.shared.send();
        }
        Ok(Following { shared: &self.shared, object: object.clone(), watch })
    }

    fn begin(&self) -> Result<(), VsphereError> {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let shared = self.shared.clone();
            let begun = thread::Builder::new().name("vsphere-updates".to_owned()).spawn(move || shared.run());
            *thread =
                Some(begun.map_err(|error| VsphereError::Settings(format!("no thread is left: {error}")))?);
        }
        Ok(())
    }

    /// Ends the thread. The session is broken off before, so that its request ends.
    pub fn close(&self) {
        lock(&self.shared.table).closing = true;
        self.shared.wake.notify_all();
        self.shared.session.close(session::soon());
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

/// Something that is waited for, until this is dropped.
struct Following<'a> {
    shared: &'a Shared,
    object: Reference,
    watch: Arc<TaskWatch>,
}

impl Following<'_> {
    fn until<T>(&self, limit: Limit, mut done: impl FnMut(&Known) -> Option<T>) -> Option<T> {
        let mut known = lock(&self.watch.known);
        loop {
            if let Some(value) = done(&known) {
                return Some(value);
            }
            let left = limit.left();
            if left.is_zero() {
                return None;
            }
            known = self.watch.changed.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        let mut table = lock(&self.shared.table);
        // Who waits for the same object later has the entry by now.
        if table.watches.get(&self.object).is_some_and(|watch| Arc::ptr_eq(watch, &self.watch)) {
            table.watches.remove(&self.object);
            table.removed.push(self.object.clone());
        }
    }
}

impl Shared {
    /// Tells the server what else is waited for, and what not any more. Many threads' changes go in one call.
    fn send(&self) {
        let _one = lock(&self.sending);
        let (view, added, removed) = {
            let mut table = lock(&self.table);
            let Some(view) = table.view.clone().filter(|_| !table.added.is_empty()) else { return };
            (view, std::mem::take(&mut table.added), std::mem::take(&mut table.removed))
        };
        let request = Request::new("ModifyListView", &view, |xml| {
            added.iter().for_each(|object| xml.reference("add", object));
            removed.iter().for_each(|object| xml.reference("remove", object));
        });
        let limit = Limit::at(Instant::now() + STANDS);
        let unresolved = self.session.call(&request, limit, |response| {
            reply::children(response, "returnval").map(reply::reference).collect::<Result<Vec<_>, _>>()
        });
        match unresolved {
            Ok(answer) => answer.value.iter().for_each(|object| self.tell(object, |known| known.gone = true)),
            Err(error) => self.trouble(&error),
        }
    }

    /// The list is made anew, with all that is waited for.
    fn trouble(&self, error: &VsphereError) {
        let mut table = lock(&self.table);
        table.view = None;
        table.trouble = Some(error.to_string());
    }

    fn tell(&self, object: &Reference, change: impl FnOnce(&mut Known)) {
        let Some(watch) = lock(&self.table).watches.get(object).cloned() else { return };
        let mut known = lock(&watch.known);
        known.news += 1;
        known.arrived = Some(Instant::now());
        change(&mut known);
        watch.changed.notify_all();
    }

    fn run(&self) {
        let mut collector = None;
        let mut pause = PAUSES.0;
        while self.is_wanted() {
            match self.turn(&mut collector) {
                Ok(()) => pause = PAUSES.0,
                Err(error) => {
                    self.trouble(&error);
                    let table = lock(&self.table);
                    if !table.closing {
                        drop(self.wake.wait_timeout(table, pause));
                    }
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// Waits until somebody waits for something.
    fn is_wanted(&self) -> bool {
        let mut table = lock(&self.table);
        while table.watches.is_empty() && !table.closing {
            table = self.wake.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        !table.closing
    }

    fn turn(&self, collector: &mut Option<Collector>) -> Result<(), VsphereError> {
        let limit = Limit::at(Instant::now() + 3 * STANDS);
        let current = |collector: &Collector| collector.login == self.session.number();
        if lock(&self.table).view.is_none() || !collector.as_ref().is_some_and(current) {
            // That of an earlier login has ended with it.
            collector.take().filter(current).into_iter().for_each(|old| old.destroy(&self.session, limit));
            *collector = Some(self.build(limit)?);
        }
        let Some(following) = collector else { return Ok(()) };
        let (changes, _) = following.wait(&self.session, STANDS, limit, read)?.value;
        for news in changes {
            self.tell(&news.object, |known| {
                known.gone |= news.gone;
                known.over |= news.over;
            });
        }
        Ok(())
    }

    /// A list with all that is waited for, and a collector that follows it.
    fn build(&self, limit: Limit) -> Result<Collector, VsphereError> {
        let request = Request::new("CreateListView", &self.session.content().views, |_| {});
        let view = self.session.call(&request, limit, reply::returned)?.value;
        let collector = Collector::create(&self.session, &[STATE, MACHINE], &view, limit)?;
        {
            let mut table = lock(&self.table);
            table.view = Some(view);
            table.added = table.watches.keys().cloned().collect();
            table.removed.clear();
        }
        self.send();
        Ok(collector)
    }
}

struct News {
    object: Reference,
    gone: bool,
    over: bool,
}

fn read(object: Reference, change: Change, node: Node<'_, '_>) -> Result<News, String> {
    let state = properties::changed(node).find(|(path, _)| *path == "info.state");
    let state = state.and_then(|(_, state)| state?.text());
    Ok(News { object, gone: change == Change::Gone, over: state.is_some_and(task::is_over) })
}
