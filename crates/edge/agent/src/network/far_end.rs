//! The end that answers.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::measured_stream::{self, IDLE_LIMIT, kind_of};
use crate::protocol::network::{COUNT, ONCE};

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
pub(super) fn serve(port: u16) -> io::Result<u16> {
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
        return measured_stream::answer(kind, stream);
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
