//! A server at the far end of a network: what goes to it and comes back arrives later, and nothing else changes.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::pin::pin;
use std::thread::{self, JoinHandle};

use anyhow::Result;
use futures_util::future::select;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use virtbench_desktop::carry;
use virtbench_desktops::Link;

/// A port of loopback that leads to a server over a slow link. It ends with this.
pub struct Distant {
    port: u16,
    /// Gone when nobody needs the port any more.
    needed: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Distant {
    /// The server that listens on `port` of loopback, at the end of this link.
    ///
    /// # Errors
    /// There is no port, or no thread.
    pub fn from(port: u16, link: Link) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let own = listener.local_addr()?.port();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (needed, unneeded) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("distance".into()).spawn(move || {
            runtime.block_on(select(pin!(accept(listener, port, link)), unneeded));
        })?;
        Ok(Self { port: own, needed: Some(needed), thread: Some(thread) })
    }

    /// The port by which it is reached.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Distant {
    fn drop(&mut self) {
        drop(self.needed.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

/// Carries connections for as long as they last.
async fn accept(listener: TcpListener, port: u16, link: Link) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (near, _) = listener.accept().await?;
        tokio::spawn(async move {
            let far = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            near.set_nodelay(true)?;
            far.set_nodelay(true)?;
            carry(near, far, link, 0).await;
            io::Result::Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_comes_back_has_come_both_ways() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let echo = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut byte = [0];
            while stream.read_exact(&mut byte).is_ok() {
                stream.write_all(&byte).unwrap();
            }
        });
        let link = Link { delay_ns: 20_000_000, rate: None, loss_ppm: 0 };
        let distant = Distant::from(port, link).unwrap();
        let mut stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, distant.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        for byte in 0..3 {
            let begun = Instant::now();
            stream.write_all(&[byte]).unwrap();
            let mut answer = [9];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [byte]);
            assert!(begun.elapsed() >= Duration::from_millis(40), "{:?}", begun.elapsed());
        }
        drop(distant);
        echo.join().unwrap();
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
}
