//! NBD: each export is a virtual disk, each connection a client of one.
//!
//! What is said and understood is `virtbench_nbd`'s; here bytes and buffers move. Payload is received into the buffer
//! from which the device writes, and sent from the one into which it has read. All that is ready for a client leaves
//! with one system call.

mod budget;
mod client;
mod export;
mod listener;
mod setup;
mod stream;

use std::os::fd::AsFd;

use virtbench_fence::{DiskId, Time};
use virtbench_nbd::server::{Export, ServerConfig};

use self::budget::{Budget, Departed, Shared, name, tag, untag};
use self::client::Client;
use self::stream::Stream;
use super::{Done, FrontEnd, Host, Served};
use crate::ring::{Interest, WatchId};

pub use listener::{Listen, Listener, NbdListenError};
pub use setup::{NbdSetupError, from_config, served};
pub use stream::{TlsError, TlsFiles, TlsServer};

/// Bytes received ahead of knowing what they are: the requests of a deep queue, or a few with their payload.
const STAGING_BYTES: usize = 256 << 10;
/// Clients admitted in one turn.
const MOST_ACCEPTED: usize = 16;
/// How long a listener rests when the process has no descriptor left, in nanoseconds.
const REST_NS: u64 = 100_000_000;
/// Tokens of listeners begin here, beyond those of clients.
const LISTENERS: u64 = 1 << 32;

/// An export and the disk that it is.
#[derive(Debug, Clone)]
pub struct NbdDisk {
    /// The disk.
    pub disk: DiskId,
    /// What clients see of it.
    pub export: Export,
}

/// What the front end is made of.
pub struct NbdParts {
    /// What is served.
    pub disks: Vec<NbdDisk>,
    /// Where clients connect.
    pub listeners: Vec<Listener>,
    /// Bounds of a connection, and whether TLS is wanted.
    pub server: ServerConfig,
    /// What TLS needs, if it is offered.
    pub tls: Option<TlsServer>,
    /// Connections at once at most.
    pub max_connections: usize,
    /// Payload of all connections together at most, in bytes, and room for two requests of the longest kind in any case.
    /// Above it, no requests are taken from clients. Half of it is kept for the disks, the same for each.
    pub max_memory_bytes: u64,
}

/// A place for a client, used again.
#[derive(Default)]
struct ClientSlot {
    client: Option<Client>,
    /// Told apart from earlier clients at the same place.
    serial: u32,
}

/// The NBD front end.
pub struct NbdFrontEnd {
    shared: Shared,
    listeners: Vec<(Listener, Option<WatchId>)>,
    slots: Vec<ClientSlot>,
    /// Places of clients with something to send, to hand in or to look at.
    touched: Vec<usize>,
    /// Places of clients that may have said more than their sockets tell.
    hungry: Vec<usize>,
    /// A connection is over, or a request of one that is, since waiting clients were looked at.
    has_ended: bool,
    resting_until: Option<Time>,
    is_stopping: bool,
}

impl NbdFrontEnd {
    /// Serves these disks at these listeners.
    #[must_use]
    pub fn new(parts: NbdParts) -> Self {
        let NbdParts { disks, listeners, mut server, tls, max_connections, max_memory_bytes } = parts;
        server.limits.max_requests = server.limits.max_requests.clamp(1, 0xffff);
        let (disks, exports): (Vec<_>, Vec<_>) =
            disks.into_iter().map(|disk| (disk.disk, disk.export)).unzip();
        let memory = Budget::new(max_memory_bytes, exports.len(), server.limits.max_payload_bytes);
        let departed = Departed::default();
        let staging = vec![0; STAGING_BYTES].into_boxed_slice();
        Self {
            shared: Shared { exports, disks, server, tls, memory, departed, staging },
            listeners: listeners.into_iter().map(|listener| (listener, None)).collect(),
            slots: (0..max_connections.clamp(1, 0xffff)).map(|_| ClientSlot::default()).collect(),
            touched: Vec::new(),
            hungry: Vec::new(),
            has_ended: false,
            resting_until: None,
            is_stopping: false,
        }
    }

    fn accept(&mut self, index: usize, host: &mut Host<'_>) {
        for _ in 0..MOST_ACCEPTED {
            let socket = match self.listeners[index].0.accept() {
                Ok(Some(socket)) => socket,
                Ok(None) => return,
                // Nothing that waiting a little would make worse: it is asked for again.
                Err(_) => return self.rest(host),
            };
            // Without a place the client finds the connection closed, rather than wait for ever.
            let Some(place) = self.slots.iter().position(|place| place.client.is_none()) else { continue };
            let serial = self.slots[place].serial.wrapping_add(1);
            self.slots[place].serial = serial;
            let watch = host.watch(socket.as_fd(), Interest::READ, place as u64);
            let client = Client::new(Stream::plain(socket), watch, &self.shared.server, host.now());
            self.slots[place].client = Some(client);
            self.touched.push(place);
            tracing::debug!(place, "an NBD client has connected");
        }
    }

    /// Stops listening for a moment.
    fn rest(&mut self, host: &mut Host<'_>) {
        self.resting_until = Some(host.now().after(REST_NS));
        for watch in self.listeners.iter().filter_map(|(_, watch)| *watch) {
            host.set_interest(watch, Interest::NONE);
        }
    }

    /// Lets a client's requests in once nothing of those who left before it came is in flight.
    fn admit(&mut self, place: usize, host: &mut Host<'_>) {
        let waiting = |client: &mut Client| !client.is_admitted();
        let client = self.slots.get_mut(place).and_then(|place| place.client.take_if(waiting));
        let Some(mut client) = client else { return };
        if let Some(export) = client.asks_for() {
            client.admit_after(self.leaving(export, host));
        }
        let departed = &self.shared.departed;
        let is_there = |name: u64| {
            let (serial, number, _) = untag(name);
            let place = self.slots.get(number);
            let is_open = place.is_some_and(|place| place.client.is_some() && place.serial == serial);
            is_open || departed.has(name)
        };
        client.wait_for(is_there);
        self.slots[place].client = Some(client);
    }

    /// Connections of an export that are over, or will be as soon as what was said on them is done.
    fn leaving(&mut self, export: usize, host: &mut Host<'_>) -> Vec<u64> {
        let mut names: Vec<u64> = self.shared.departed.on_export(export).collect();
        for number in 0..self.slots.len() {
            let ClientSlot { client, serial } = &self.slots[number];
            match client {
                Some(other) if !other.has_hung_up(export) => {}
                Some(other) if other.is_admitted() => names.push(tag(*serial, number, 0)),
                // Nothing of it was begun. A row of such clients would take every place.
                Some(_) => self.close(number, host),
                None => {}
            }
        }
        names
    }

    fn close(&mut self, number: usize, host: &mut Host<'_>) {
        let ClientSlot { client, serial } = &mut self.slots[number];
        if let Some(client) = client.take() {
            tracing::info!(place = number, "an NBD client has gone");
            client.close(tag(*serial, number, 0), &mut self.shared, host);
            self.has_ended = true;
        }
    }

    /// Does something with a client, which is gone if that fails.
    fn with(
        &mut self,
        place: usize,
        host: &mut Host<'_>,
        act: impl FnOnce(&mut Client, u64, &mut Shared, &mut Host<'_>) -> Result<(), client::Gone>,
    ) {
        let Some(ClientSlot { client: Some(client), serial }) = self.slots.get_mut(place) else { return };
        let base = tag(*serial, place, 0);
        match act(client, base, &mut self.shared, host) {
            Ok(()) => self.touched.push(place),
            Err(client::Gone) => self.close(place, host),
        }
    }
}

impl FrontEnd for NbdFrontEnd {
    fn start(&mut self, host: &mut Host<'_>) {
        for (token, (listener, watch)) in (LISTENERS..).zip(&mut self.listeners) {
            *watch = Some(host.watch(listener.as_fd(), Interest::READ, token));
        }
    }

    fn ready(&mut self, token: u64, host: &mut Host<'_>) {
        match token.checked_sub(LISTENERS).and_then(|index| usize::try_from(index).ok()) {
            Some(index) if index < self.listeners.len() && !self.is_stopping => self.accept(index, host),
            Some(_) => {}
            None => {
                let place = usize::try_from(token).unwrap_or(usize::MAX);
                self.with(place, host, Client::receive);
            }
        }
    }

    fn completed(&mut self, done: Done, host: &mut Host<'_>) {
        let (serial, place, slot) = untag(done.tag);
        if self.slots.get(place).is_none_or(|place| place.client.is_none() || place.serial != serial) {
            // The client has left; its request was finished all the same.
            if let Some(export) = self.shared.departed.done(name(done.tag))
                && let Some(buffer) = done.buffer
            {
                self.shared.memory.give(export, buffer, host);
            }
            self.has_ended = true;
            return;
        }
        self.with(place, host, |client, base, shared, host| client.completed(slot, base, done, shared, host));
    }

    /// For those who connect from now on: the protocol cannot tell the others.
    fn resized(&mut self, disk: DiskId, size_bytes: u64, _host: &mut Host<'_>) {
        let Shared { disks, exports, .. } = &mut self.shared;
        let of_it = |(one, export): &(&DiskId, &mut Export)| **one == disk && !export.is_withdrawn;
        for (_, export) in disks.iter().zip(exports).filter(of_it) {
            export.size_bytes = size_bytes;
        }
    }

    fn settle(&mut self, host: &mut Host<'_>) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        self.has_ended = false;
        for place in &touched {
            self.admit(*place, host);
            self.with(*place, host, Client::settle);
        }
        // A client that waits for others is looked at again in the next turn.
        self.touched.clear();
        for place in touched {
            match &self.slots[place].client {
                Some(client) if client.is_waiting() => self.touched.push(place),
                Some(client) if client.has_more() => self.hungry.push(place),
                _ => {}
            }
        }
    }

    fn poll(&mut self, host: &mut Host<'_>) -> usize {
        let hungry = std::mem::take(&mut self.hungry);
        for place in &hungry {
            self.with(*place, host, Client::receive);
        }
        hungry.len()
    }

    fn before_sleep(&mut self, _host: &mut Host<'_>) -> bool {
        // What came free while waiting clients were looked at may be what an earlier one waits for.
        !self.hungry.is_empty() | self.shared.memory.take_news() | std::mem::take(&mut self.has_ended)
    }

    fn next_deadline(&self) -> Option<Time> {
        let clients = self.slots.iter().filter_map(|place| place.client.as_ref()?.next_deadline());
        clients.chain(self.resting_until).min()
    }

    fn on_timer(&mut self, host: &mut Host<'_>) {
        if self.resting_until.is_some_and(|until| until <= host.now()) {
            self.resting_until = None;
            for watch in self.listeners.iter().filter_map(|(_, watch)| *watch) {
                host.set_interest(watch, Interest::READ);
            }
        }
        for place in 0..self.slots.len() {
            self.with(place, host, |client, _, _, host| client.on_timer(host.now()));
        }
    }

    fn has_client(&self, disk: DiskId) -> bool {
        let of = |export: usize| {
            let Shared { disks, exports, .. } = &self.shared;
            disks.get(export) == Some(&disk) && exports.get(export).is_some_and(|one| !one.is_withdrawn)
        };
        self.slots.iter().filter_map(|place| place.client.as_ref()?.export()).any(of)
    }

    fn renumber(&mut self, moved: &[Option<DiskId>], _host: &mut Host<'_>) {
        let Shared { disks, exports, .. } = &mut self.shared;
        for (disk, export) in disks.iter_mut().zip(exports).filter(|(_, export)| !export.is_withdrawn) {
            match moved.get(disk.index()).copied().flatten() {
                Some(now) => *disk = now,
                None => export.is_withdrawn = true,
            }
        }
    }

    fn disk_added(&mut self, added: &Served) {
        let Served { disk, size_bytes, block_bytes, read_only, export, .. } = added;
        if let Some(name) = export {
            self.shared.disks.push(*disk);
            self.shared.exports.push(export::export(name, *size_bytes, *read_only, *block_bytes));
            self.shared.memory.add_export();
        }
    }

    fn stop(&mut self, host: &mut Host<'_>) {
        self.is_stopping = true;
        for (listener, watch) in self.listeners.drain(..) {
            if let Some(watch) = watch {
                host.forget(watch);
            }
            drop(listener);
        }
        for place in &mut self.slots {
            if let Some(client) = &mut place.client {
                client.shut_down();
            }
        }
    }
}
