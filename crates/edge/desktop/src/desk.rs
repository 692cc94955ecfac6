//! The way to a desktop.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::pin::pin;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::future::{join_all, select};
use tokio::net::TcpStream as Stream;
use tokio::time::{Instant, sleep_until, timeout_at};
use virtbench_desktops::{Link, OneWay};

/// The way to a desktop.
#[derive(Debug)]
pub struct Desk {
    /// To its VNC server; why there is none is the error of its user.
    pub screen: io::Result<TcpStream>,
    /// To the program inside its session. Where nobody is inside, operations end with the last change of the picture.
    pub control: Option<TcpStream>,
    /// What the VNC server asks for, if it does.
    pub password: Option<String>,
}

const BUFFER_BYTES: usize = 64 << 10;

/// As good as for ever.
const IDLE: Duration = Duration::from_secs(86_400);

/// The thread between users and desktops. It ends when one side of each connection has gone; dropping this waits for it, so it has to
/// be dropped after the connections.
#[derive(Debug)]
pub struct SlowLinks {
    thread: Option<JoinHandle<()>>,
}

impl Drop for SlowLinks {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

/// Puts a link between each user and the VNC server; the way to the program inside stays as it is. The seed says what the links lose.
///
/// # Errors
/// There is no port of the loopback, or no thread.
pub fn slow_down(desks: Vec<Desk>, link: Link, seed: u64) -> io::Result<(Vec<Desk>, SlowLinks)> {
    let (mut slow, mut pairs) = (Vec::new(), Vec::new());
    for desk in desks {
        let screen = match desk.screen {
            Err(error) => Err(error),
            Ok(server) => {
                let (user, near) = loopback()?;
                pairs.push((near, server));
                Ok(user)
            }
        };
        slow.push(Desk { screen, ..desk });
    }
    for stream in pairs.iter().flat_map(|(near, server)| [near, server]) {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let thread = thread::Builder::new().name("links".into()).spawn(move || {
        let links = (0..).zip(pairs).map(|(pair, (near, server))| async move {
            let streams = Stream::from_std(near).and_then(|near| Ok((near, Stream::from_std(server)?)));
            let Ok((near, server)) = streams else { return };
            carry(near, server, link, seed.wrapping_add(2 * pair)).await;
        });
        runtime.block_on(join_all(links.collect::<Vec<_>>()));
    })?;
    Ok((slow, SlowLinks { thread: Some(thread) }))
}

/// Two ends of one connection.
fn loopback() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    let (there, from) = listener.accept()?;
    // Somebody else on this host was faster.
    if from != here.local_addr()? { Err(ErrorKind::ConnectionRefused.into()) } else { Ok((here, there)) }
}

/// Carries bytes over a link, both ways, until one side has gone; the other one is closed then, and sees it. The seed says what the way
/// out loses, and the number after it what the way back does.
pub async fn carry(near: Stream, server: Stream, link: Link, seed: u64) {
    let [out, back] = [seed, seed.wrapping_add(1)].map(|seed| OneWay::new(link, seed));
    select(pin!(carry_one_way(&near, &server, out)), pin!(carry_one_way(&server, &near, back))).await;
}

async fn carry_one_way(from: &Stream, to: &Stream, mut way: OneWay) -> io::Result<()> {
    let begun = Instant::now();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut has_ended = false;
    loop {
        let now_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        write(to, &way.take(now_ns)).await?;
        let wake = way.next_ns().map_or_else(|| Instant::now() + IDLE, |ns| begun + Duration::from_nanos(ns));
        if has_ended && way.next_ns().is_none() {
            return Ok(());
        }
        let room = way.room().min(buffer.len());
        if has_ended || room == 0 {
            sleep_until(wake).await;
            continue;
        }
        let Ok(ready) = timeout_at(wake, from.readable()).await else { continue };
        ready?;
        match from.try_read(buffer.get_mut(..room).unwrap_or(&mut [])) {
            Ok(0) => has_ended = true,
            Ok(count) => {
                let now_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                way.put(buffer.get(..count).unwrap_or(&[]), now_ns);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn write(to: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.try_write(bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or(&[]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => to.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
