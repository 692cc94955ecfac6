//! A network path is measured between two agents: one answers, the other sends and counts.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_engine::monotonic_ns;

use crate::interface::{set_address, set_mtu, set_up};
use crate::path_cost::{self, CALL_LIMIT, IDLE_LIMIT, connect, kind_of};
use crate::protocol::network::{
    BLOCK_BYTES, COUNT, ECHO, JoinOrder, NetworkOrder, NetworkOutcome, NetworkReply, NetworkRequest, ONCE,
    SINK, SOURCE, Traffic,
};
use crate::protocol::{FailureKind, Reply};

/// Does what takes no time; nothing where something is to be measured.
pub(crate) fn answer_at_once(request: &NetworkRequest) -> Option<Reply> {
    let done = match request {
        NetworkRequest::Join(order) => join(order).map(|()| NetworkReply::Joined),
        NetworkRequest::Serve { port } => serve(*port)
            .map(|port| NetworkReply::Served { port })
            .map_err(|error| format!("port {port} cannot be served: {error}")),
        NetworkRequest::Measure(_) => return None,
    };
    Some(reply(done))
}

/// Measures. `measuring` is called once what passes counts.
pub(crate) fn measure(
    request: &NetworkRequest,
    is_stopped: &dyn Fn() -> bool,
    measuring: impl FnOnce(),
) -> Reply {
    let NetworkRequest::Measure(order) = request else {
        return reply(Err("this is answered at once".to_owned()));
    };
    let [a, b, c, d] = order.address;
    let at = Ipv4Addr::new(a, b, c, d);
    let measured = measure_to(order, is_stopped, measuring);
    reply(measured.map(NetworkReply::Measured).map_err(|error| format!("the path to {at}: {error}")))
}

fn join(order: &JoinOrder) -> Result<(), String> {
    let failed = |error| format!("the interface {} cannot be used: {error}", order.interface);
    if let Some(mtu) = order.mtu {
        set_mtu(&order.interface, mtu).map_err(failed)?;
    }
    set_address(&order.interface, order.address.into(), order.prefix).map_err(failed)?;
    set_up(&order.interface).map_err(failed)
}

fn reply(done: Result<NetworkReply, String>) -> Reply {
    match done {
        Ok(reply) => Reply::Network(reply),
        Err(message) => Reply::Failed { kind: FailureKind::Run, message },
    }
}

/// How long a connection may take to say what it is for.
const KIND_LIMIT: Duration = Duration::from_secs(5);

/// Connections at once that carry a stream.
const MOST_STREAMS: usize = 256;

/// Series of datagrams that are remembered.
const MOST_SERIES: usize = 64;

/// What of the datagrams may wait to be counted, in bytes: a burst while the processor does something else.
const WAITING_BYTES: usize = 4 << 20;

/// Ports that are tried where one is taken.
const TRIES: usize = 20;

/// How many datagrams of each series have arrived.
type Arrived = Arc<Mutex<BTreeMap<u64, u64>>>;

/// Answers on a TCP and a UDP port of one number from now on, until the agent ends: this one, or where it is taken another, which is
/// returned.
///
/// # Errors
/// None is left.
fn serve(port: u16) -> io::Result<u16> {
    let (listener, datagrams) = both(port).or_else(|error| match error.kind() {
        // A free TCP port may be taken for UDP.
        io::ErrorKind::AddrInUse => (0..TRIES).map(|_| both(0)).find(Result::is_ok).unwrap_or(Err(error)),
        _ => Err(error),
    })?;
    let port = listener.local_addr()?.port();
    // What the host allows is enough where it allows less.
    let _ = socket2::SockRef::from(&datagrams).set_recv_buffer_size(WAITING_BYTES);
    let arrived = Arrived::default();
    let counted = Arc::clone(&arrived);
    thread::Builder::new().name("datagrams".into()).spawn(move || count(&datagrams, &counted))?;
    thread::Builder::new().name("far end".into()).spawn(move || accept(&listener, &arrived))?;
    Ok(port)
}

/// Both ports of a number; of any that is free where it is zero.
fn both(port: u16) -> io::Result<(TcpListener, UdpSocket)> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    let datagrams = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, listener.local_addr()?.port()))?;
    Ok((listener, datagrams))
}

fn accept(listener: &TcpListener, arrived: &Arrived) {
    let mut threads: Vec<thread::JoinHandle<()>> = Vec::new();
    for mut stream in listener.incoming().flatten() {
        // Connections one after the other are answered here, so that no thread is part of what they cost.
        let Ok(kind) = kind_of(&mut stream, KIND_LIMIT) else { continue };
        if kind == ONCE {
            let _ = stream.write_all(&[ONCE]);
            continue;
        }
        threads.retain(|thread| !thread.is_finished());
        // One more is hung up on.
        if threads.len() < MOST_STREAMS {
            let arrived = Arc::clone(arrived);
            let answer = move || drop(answer(kind, stream, &arrived));
            threads.extend(thread::Builder::new().spawn(answer));
        }
    }
}

fn answer(kind: u8, mut stream: TcpStream, arrived: &Arrived) -> io::Result<()> {
    if kind != COUNT {
        return path_cost::answer(kind, stream);
    }
    stream.set_read_timeout(Some(IDLE_LIMIT))?;
    stream.set_write_timeout(Some(IDLE_LIMIT))?;
    let mut series = [0; 8];
    stream.read_exact(&mut series)?;
    let series = u64::from_le_bytes(series);
    let count = arrived.lock().unwrap_or_else(PoisonError::into_inner).get(&series).copied();
    stream.write_all(&count.unwrap_or(0).to_le_bytes())
}

fn count(datagrams: &UdpSocket, arrived: &Arrived) {
    let mut block = vec![0; 1 << 16];
    loop {
        // What a firewall refuses on the way back is an error of the next call.
        let Ok(bytes) = datagrams.recv(&mut block) else { continue };
        let Some(series) = block[..bytes].first_chunk() else { continue };
        let mut all = arrived.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry(u64::from_le_bytes(*series)).or_default() += 1;
        while all.len() > MOST_SERIES {
            all.pop_first();
        }
    }
}

/// Ranges between a power of two and the next: each is at most 1/32 of its value wide.
const PARTS: u64 = 32;

/// Times in nanoseconds, counted by range.
#[derive(Debug, Default)]
struct Latencies(BTreeMap<u64, u64>);

impl Latencies {
    fn add(&mut self, ns: u64) {
        *self.0.entry(upper_end(ns)).or_default() += 1;
    }

    /// The upper end of each range that holds something, and how many.
    fn into_counts(self) -> Vec<(u64, u64)> {
        self.0.into_iter().collect()
    }
}

/// The upper end of the range of a time.
fn upper_end(ns: u64) -> u64 {
    let power = 1_u64 << ns.max(1).ilog2();
    let width = (power / PARTS).max(1);
    (ns / width).saturating_add(1).saturating_mul(width) - 1
}

/// The number of the error that the system has no room for another datagram now.
#[cfg(unix)]
const NO_BUFFERS: i32 = rustix::io::Errno::NOBUFS.raw_os_error();

/// `WSAENOBUFS`.
#[cfg(windows)]
const NO_BUFFERS: i32 = 10_055;

/// Between two looks at whether it is over.
const PAUSE: Duration = Duration::from_millis(5);

/// How long datagrams may be on their way after the last was sent.
const ARRIVAL: Duration = Duration::from_millis(300);

/// How often datagrams are sent between two looks at the clock.
const BATCH: u64 = 32;

/// Connections at once.
const MOST_STREAMS_SENT: u32 = 128;

/// Measures the path to the other end.
///
/// # Errors
/// It cannot be reached, hangs up, or does not answer; it was stopped; the order makes no sense.
fn measure_to(
    order: &NetworkOrder,
    is_stopped: &dyn Fn() -> bool,
    measuring: impl FnOnce(),
) -> io::Result<NetworkOutcome> {
    let address = SocketAddr::from((Ipv4Addr::from(order.address), order.port));
    let far = Far { address, order, is_stopped };
    match order.traffic {
        Traffic::To { streams } => far.streams(streams, SINK, measuring),
        Traffic::From { streams } => far.streams(streams, SOURCE, measuring),
        Traffic::Requests => far.requests(measuring),
        Traffic::Connections => far.connections(measuring),
        Traffic::Datagrams { bytes } => far.datagrams(bytes, measuring),
    }
}

/// The other end, and what is measured of the way to it.
struct Far<'a> {
    address: SocketAddr,
    order: &'a NetworkOrder,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Far<'_> {
    fn connect(&self, kind: u8) -> io::Result<TcpStream> {
        connect(self.address, kind)
    }

    fn ramp(&self) -> Duration {
        Duration::from_nanos(self.order.ramp_ns)
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.order.time_ns)
    }

    fn check(&self) -> io::Result<()> {
        if (self.is_stopped)() {
            Err(io::Error::new(ErrorKind::Interrupted, "it was stopped"))
        } else {
            Ok(())
        }
    }

    /// Waits until a moment, or until it is stopped.
    fn wait_until(&self, moment: Instant) -> io::Result<()> {
        while Instant::now() < moment {
            self.check()?;
            thread::sleep(PAUSE.min(moment.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Bytes by so many connections at once. To the other end what its sinks have counted would hold what passed before and what was
    /// still in buffers, so both directions are counted where the bytes are handed over, in the middle of a steady flow.
    fn streams(&self, streams: u32, kind: u8, measuring: impl FnOnce()) -> io::Result<NetworkOutcome> {
        if !(1..=MOST_STREAMS_SENT).contains(&streams) {
            let why = format!("{streams} streams: 1 to {MOST_STREAMS_SENT} are possible");
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        let connections: Vec<TcpStream> =
            (0..streams).map(|_| self.connect(kind)).collect::<io::Result<_>>()?;
        let (moved, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let flow = if kind == SINK { write_on } else { read_on };
        thread::scope(|scope| {
            let threads: Vec<_> = connections
                .into_iter()
                .map(|stream| scope.spawn(|| flow(stream, &moved, &is_over)))
                .collect();
            let ended = || threads.iter().any(thread::ScopedJoinHandle::is_finished);
            let counted = self.wait_until(Instant::now() + self.ramp()).and_then(|()| {
                measuring();
                let (before, begun) = (moved.load(Ordering::Relaxed), Instant::now());
                self.wait_until(begun + self.time())?;
                let (bytes, elapsed) = (moved.load(Ordering::Relaxed) - before, begun.elapsed());
                Ok(NetworkOutcome { elapsed_ns: nanoseconds(elapsed), bytes, ..NetworkOutcome::default() })
            });
            let broke = ended();
            is_over.store(true, Ordering::Relaxed);
            let ends: Vec<io::Result<()>> = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread failed"))))
                .collect();
            if broke {
                ends.into_iter().collect::<io::Result<()>>()?;
            }
            counted
        })
    }

    /// One byte there and back, again and again.
    fn requests(&self, measuring: impl FnOnce()) -> io::Result<NetworkOutcome> {
        let mut stream = self.connect(ECHO)?;
        let mut byte = [0x5a];
        self.one_by_one(measuring, || {
            stream.write_all(&byte)?;
            stream.read_exact(&mut byte)
        })
    }

    /// A connection for each byte there and back. The other end closes first, so that its side waits for late packets and this one
    /// does not run out of ports.
    fn connections(&self, measuring: impl FnOnce()) -> io::Result<NetworkOutcome> {
        self.one_by_one(measuring, || {
            let mut stream = self.connect(ONCE)?;
            let mut answer = Vec::with_capacity(1);
            match stream.read_to_end(&mut answer)? {
                1 => Ok(()),
                _ => Err(ErrorKind::UnexpectedEof.into()),
            }
        })
    }

    /// Does one thing after the other, and notes how long each of those took that count.
    fn one_by_one(
        &self,
        measuring: impl FnOnce(),
        mut act: impl FnMut() -> io::Result<()>,
    ) -> io::Result<NetworkOutcome> {
        let ramp_until = Instant::now() + self.ramp();
        while Instant::now() < ramp_until {
            self.check()?;
            act()?;
        }
        measuring();
        let begun = monotonic_ns();
        let until = begun.saturating_add(self.order.time_ns);
        let (mut latencies, mut completed, mut last) = (Latencies::default(), 0, begun);
        while last < until {
            self.check()?;
            act()?;
            let now = monotonic_ns();
            latencies.add(now - last);
            (completed, last) = (completed + 1, now);
        }
        Ok(NetworkOutcome {
            elapsed_ns: last - begun,
            bytes: completed,
            completed,
            sent: completed,
            latencies: latencies.into_counts(),
        })
    }

    /// As many datagrams as can be sent. Those of the ramp are a series of their own.
    fn datagrams(&self, bytes: u32, measuring: impl FnOnce()) -> io::Result<NetworkOutcome> {
        let bytes = bytes as usize;
        if !(8..=65_507).contains(&bytes) {
            let why = format!("datagrams of {bytes} bytes: 8 to 65507 are possible");
            return Err(io::Error::new(ErrorKind::InvalidInput, why));
        }
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((self.address.ip(), self.order.datagram_port))?;
        socket.set_write_timeout(Some(CALL_LIMIT))?;
        self.send_series(&socket, monotonic_ns(), bytes, self.ramp())?;
        measuring();
        let series = monotonic_ns();
        let begun = Instant::now();
        let sent = self.send_series(&socket, series, bytes, self.time())?;
        let elapsed = begun.elapsed();
        let until = Instant::now() + ARRIVAL;
        self.wait_until(until)?;
        let mut stream = self.connect(COUNT)?;
        stream.write_all(&series.to_le_bytes())?;
        let mut arrived = [0; 8];
        stream.read_exact(&mut arrived)?;
        let arrived = u64::from_le_bytes(arrived).min(sent);
        Ok(NetworkOutcome {
            elapsed_ns: nanoseconds(elapsed),
            bytes: arrived.saturating_mul(bytes as u64),
            completed: arrived,
            sent,
            latencies: Vec::new(),
        })
    }

    /// How many the kernel has taken.
    fn send_series(&self, socket: &UdpSocket, series: u64, bytes: usize, time: Duration) -> io::Result<u64> {
        let mut datagram = vec![0x5a; bytes];
        datagram[..8].copy_from_slice(&series.to_le_bytes());
        let (begun, mut sent) = (Instant::now(), 0);
        while begun.elapsed() < time {
            self.check()?;
            for _ in 0..BATCH {
                match socket.send(&datagram) {
                    Ok(_) => sent += 1,
                    // The device's queue is full, or the other end was not there a moment ago.
                    Err(error)
                        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused)
                            || error.raw_os_error() == Some(NO_BUFFERS) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(sent)
    }
}

fn write_on(mut stream: TcpStream, moved: &AtomicU64, is_over: &AtomicBool) -> io::Result<()> {
    let block = vec![0x5a; BLOCK_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        let count = stream.write(&block)?;
        moved.fetch_add(count as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn read_on(mut stream: TcpStream, moved: &AtomicU64, is_over: &AtomicBool) -> io::Result<()> {
    let mut block = vec![0; BLOCK_BYTES];
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut block)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => moved.fetch_add(count as u64, Ordering::Relaxed),
        };
    }
    Ok(())
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::serve;

    #[test]
    fn a_range_holds_what_is_in_it_and_is_narrow() {
        for ns in [0, 1, 31, 32, 33, 63, 64, 1_000, 123_456_789, u64::MAX / 2] {
            let end = upper_end(ns);
            assert!(end >= ns && end - ns <= ns / PARTS, "{ns}: {end}");
            assert_eq!(upper_end(end), end, "the end is in its own range");
        }
        let mut all = Latencies::default();
        for ns in [100_000, 100_001, 5_000] {
            all.add(ns);
        }
        assert_eq!(all.into_counts().iter().map(|(_, count)| count).sum::<u64>(), 3);
    }

    fn never() -> bool {
        false
    }

    fn order(port: u16, traffic: Traffic) -> NetworkOrder {
        let (ramp_ns, time_ns) = (20_000_000, 200_000_000);
        NetworkOrder { address: [127, 0, 0, 1], port, datagram_port: port, traffic, ramp_ns, time_ns }
    }

    /// A far end in this process, on a port that nobody has.
    fn far_end() -> u16 {
        serve(0).unwrap()
    }

    #[test]
    fn each_kind_of_traffic_passes_and_is_counted() {
        let port = far_end();
        let kinds = [
            Traffic::To { streams: 1 },
            Traffic::From { streams: 3 },
            Traffic::Requests,
            Traffic::Connections,
            Traffic::Datagrams { bytes: 64 },
        ];
        for traffic in kinds {
            let mut calls = 0;
            let outcome = measure_to(&order(port, traffic), &never, || calls += 1).unwrap();
            assert!(calls == 1 && outcome.bytes > 0 && outcome.elapsed_ns >= 200_000_000, "{outcome:?}");
            let times: u64 = outcome.latencies.iter().map(|(_, count)| count).sum();
            match traffic {
                Traffic::To { .. } | Traffic::From { .. } => assert_eq!((outcome.completed, times), (0, 0)),
                Traffic::Datagrams { .. } => assert!(outcome.completed <= outcome.sent && times == 0),
                _ => assert!(outcome.completed > 0 && times == outcome.completed, "{outcome:?}"),
            }
        }
    }

    #[test]
    fn what_cannot_be_reached_or_makes_no_sense_is_an_error() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let error = measure_to(&order(closed, Traffic::Requests), &never, || ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let port = far_end();
        for traffic in
            [Traffic::To { streams: 0 }, Traffic::From { streams: 1000 }, Traffic::Datagrams { bytes: 7 }]
        {
            let error = measure_to(&order(port, traffic), &never, || ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{traffic:?}");
        }
        let most = format!("1 to {MOST_STREAMS_SENT} are");
        let error = measure_to(&order(port, Traffic::To { streams: MOST_STREAMS_SENT + 1 }), &never, || ());
        assert!(error.unwrap_err().to_string().contains(&most));
    }

    #[test]
    fn a_port_that_is_taken_gives_way_to_another() {
        let port = far_end();
        let other = serve(port).unwrap();
        assert_ne!(port, other);
        assert!(measure_to(&order(other, Traffic::Requests), &never, || ()).unwrap().completed > 0);
    }

    #[test]
    fn a_far_end_that_hangs_up_and_a_stop_end_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let hang_up = thread::spawn(move || drop(listener.accept().unwrap()));
        assert!(measure_to(&order(port, Traffic::From { streams: 1 }), &never, || ()).is_err());
        hang_up.join().unwrap();
        for traffic in [Traffic::To { streams: 1 }, Traffic::Requests, Traffic::Datagrams { bytes: 64 }] {
            let error = measure_to(&order(far_end(), traffic), &|| true, || ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Interrupted, "{traffic:?}");
        }
    }
}
