//! Figures of a running daemon: counted by its thread, read by others, served as OpenMetrics on loopback.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use virtbench_fence::cache::CacheCounts;

use crate::frontend::Action;

/// A client of the endpoint that takes longer is given up.
const CLIENT_LIMIT: Duration = Duration::from_secs(2);
/// The longest question that is read.
const MOST_QUESTION_BYTES: usize = 4096;

/// Kinds of requests, in the order in which they are counted.
const KINDS: [&str; 4] = ["read", "write", "flush", "discard"];

/// One writer, any number of readers: a sum needs no locked instruction.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    #[inline]
    fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct DiskFigures {
    name: String,
    requests: [Count; 4],
    bytes: [Count; 4],
    errors: Count,
    response_ns: [Count; 4],
    under_way: Count,
}

#[derive(Debug, Default)]
struct CacheFigures {
    counts: [Count; 9],
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Figures {
    disks: Vec<DiskFigures>,
    caches: Vec<CacheFigures>,
}

const fn kind(action: Action) -> usize {
    match action {
        Action::Read => 0,
        Action::Write { .. } | Action::WriteZeroes { .. } => 1,
        Action::Flush => 2,
        Action::Discard => 3,
    }
}

impl Figures {
    /// For disks of these names and so many partitions of the cache.
    #[must_use]
    pub fn new(disks: impl Iterator<Item = String>, caches: usize) -> Arc<Self> {
        let disks = disks.map(|name| DiskFigures { name, ..DiskFigures::default() }).collect();
        Arc::new(Self { disks, caches: (0..caches).map(|_| CacheFigures::default()).collect() })
    }

    /// A request is done.
    #[inline]
    pub(crate) fn completed(&self, disk: usize, action: Action, bytes: u64, response_ns: u64, well: bool) {
        let Some(figures) = self.disks.get(disk) else { return };
        let kind = kind(action);
        figures.requests[kind].add(1);
        figures.response_ns[kind].add(response_ns);
        if well {
            figures.bytes[kind].add(bytes);
        } else {
            figures.errors.add(1);
        }
    }

    /// How a disk and the partitions of the cache stand.
    pub(crate) fn stand(
        &self,
        under_way: impl Iterator<Item = usize>,
        caches: impl Iterator<Item = CacheCounts>,
    ) {
        for (disk, count) in self.disks.iter().zip(under_way) {
            disk.under_way.set(count as u64);
        }
        for (cache, now) in self.caches.iter().zip(caches) {
            let blocks = [now.blocks, now.free, now.used, now.writing, now.retiring].map(u64::from);
            let [a, b, c, d, e] = blocks;
            let values = [a, b, c, d, e, now.halted as u64, now.hits, now.misses, now.read_only.into()];
            for (count, value) in cache.counts.iter().zip(values) {
                count.set(value);
            }
        }
    }

    /// The figures as OpenMetrics text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, what: &str, help: &str, lines: &[(String, String)]| {
            let _ =
                write!(text, "# TYPE virtbench_fence_{name} {what}\n# HELP virtbench_fence_{name} {help}\n");
            let suffix = if what == "counter" { "_total" } else { "" };
            for (labels, value) in lines {
                let _ = writeln!(text, "virtbench_fence_{name}{suffix}{{{labels}}} {value}");
            }
        };
        let by_kind = |pick: fn(&DiskFigures, usize) -> String| {
            let each = |disk: &DiskFigures| {
                let name = disk.name.clone();
                (0..KINDS.len())
                    .map(|kind| (format!("disk=\"{name}\",kind=\"{}\"", KINDS[kind]), pick(disk, kind)))
                    .collect::<Vec<_>>()
            };
            self.disks.iter().flat_map(each).collect::<Vec<_>>()
        };
        let by_disk = |pick: fn(&DiskFigures) -> u64| {
            let one = |disk: &DiskFigures| (format!("disk=\"{}\"", disk.name), pick(disk).to_string());
            self.disks.iter().map(one).collect::<Vec<_>>()
        };
        let by_cache = |first: usize, names: &[&str]| {
            let mut lines = Vec::new();
            for (partition, cache) in self.caches.iter().enumerate() {
                for (at, name) in names.iter().enumerate() {
                    let labels = format!("partition=\"{partition}\",state=\"{name}\"");
                    lines.push((labels, cache.counts[first + at].get().to_string()));
                }
            }
            lines
        };
        let requests = by_kind(|disk, kind| disk.requests[kind].get().to_string());
        family("requests", "counter", "Requests answered.", &requests);
        let bytes = by_kind(|disk, kind| disk.bytes[kind].get().to_string());
        family("bytes", "counter", "Bytes of requests answered well.", &bytes);
        let seconds = by_kind(|disk, kind| format!("{:.9}", disk.response_ns[kind].get() as f64 / 1e9));
        family("response_seconds", "counter", "Response times, summed.", &seconds);
        family("errors", "counter", "Requests that failed.", &by_disk(|disk| disk.errors.get()));
        family("under_way", "gauge", "Requests under way.", &by_disk(|disk| disk.under_way.get()));
        let states = ["all", "free", "used", "writing", "retiring"];
        family("cache_blocks", "gauge", "Blocks of 4 KiB by state.", &by_cache(0, &states));
        family("cache_waiting", "gauge", "Requests that wait for free blocks.", &by_cache(5, &["halted"]));
        family("cache_reads", "counter", "Blocks read.", &by_cache(6, &["hit", "miss"]));
        let read_only = by_cache(8, &["read_only"]);
        family("cache_degraded", "gauge", "1 where writes are refused after a device failed.", &read_only);
        text.push_str("# EOF\n");
        text
    }
}

/// Serves the figures over HTTP until the process ends, from a thread of its own, to one client after another.
///
/// # Errors
/// The address cannot be had.
pub fn serve(address: SocketAddr, figures: Arc<Figures>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let bound = listener.local_addr()?;
    thread::Builder::new().name("metrics".into()).spawn(move || {
        for client in listener.incoming() {
            match client {
                Ok(client) => drop(answer(client, &figures)),
                // Out of descriptors, most likely: not again at once.
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    })?;
    Ok(bound)
}

fn answer(mut client: TcpStream, figures: &Figures) -> io::Result<()> {
    client.set_read_timeout(Some(CLIENT_LIMIT))?;
    client.set_write_timeout(Some(CLIENT_LIMIT))?;
    let mut question = Vec::new();
    let mut piece = [0; 512];
    while !question.windows(4).any(|end| end == b"\r\n\r\n") && question.len() < MOST_QUESTION_BYTES {
        match client.read(&mut piece)? {
            0 => return Ok(()),
            len => question.extend_from_slice(&piece[..len]),
        }
    }
    let asks = question.starts_with(b"GET /metrics ") || question.starts_with(b"GET / ");
    let (status, body) = if asks {
        ("200 OK", figures.text())
    } else {
        ("404 Not Found", "only /metrics is here\n".to_owned())
    };
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

/// Asks a running daemon for its figures.
///
/// # Errors
/// Nobody answers, or not so.
pub fn fetch(address: SocketAddr) -> io::Result<String> {
    let mut server = TcpStream::connect_timeout(&address, CLIENT_LIMIT)?;
    server.set_read_timeout(Some(CLIENT_LIMIT))?;
    server.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    server.take(16 << 20).read_to_string(&mut text)?;
    match text.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no fence answers there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_served_as_they_are_counted() {
        let figures = Figures::new(["web".to_owned()].into_iter(), 1);
        figures.completed(0, Action::Read, 4096, 1_500_000, true);
        figures.completed(0, Action::Write { fua: false }, 4096, 1_000, false);
        let cache = CacheCounts { blocks: 9, free: 4, hits: 7, ..CacheCounts::default() };
        figures.stand([3].into_iter(), [cache].into_iter());
        let address = serve("127.0.0.1:0".parse().unwrap(), figures).unwrap();
        let text = fetch(address).unwrap();
        for line in [
            "virtbench_fence_requests_total{disk=\"web\",kind=\"read\"} 1",
            "virtbench_fence_bytes_total{disk=\"web\",kind=\"write\"} 0",
            "virtbench_fence_response_seconds_total{disk=\"web\",kind=\"read\"} 0.001500000",
            "virtbench_fence_errors_total{disk=\"web\"} 1",
            "virtbench_fence_under_way{disk=\"web\"} 3",
            "virtbench_fence_cache_blocks{partition=\"0\",state=\"free\"} 4",
            "virtbench_fence_cache_reads_total{partition=\"0\",state=\"hit\"} 7",
            "virtbench_fence_cache_degraded{partition=\"0\",state=\"read_only\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
