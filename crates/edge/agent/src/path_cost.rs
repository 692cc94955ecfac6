//! What the path to an appliance costs by itself, measured between the caller and the agent there.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use virtbench_record::PathCost;

use crate::protocol::network::{BLOCK_BYTES, ECHO, SINK, SOURCE};

/// What is echoed, in bytes: as much as a short statement.
const MESSAGE_BYTES: usize = 64;

/// Round trips at most, those first that do not count, the time for those that count, and how many are made whatever the time.
const MOST_TRIPS: usize = 2000;

const WARM_TRIPS: usize = 20;

const TRIPS_LIMIT: Duration = Duration::from_millis(500);

const FEWEST_TRIPS: usize = 30;

/// How long bytes flow in each direction unless a caller has another time: within it, two values next to each other differ by a tenth.
pub const PATH_FLOW: Duration = Duration::from_millis(500);

/// How long bytes come before they count.
const WARM_FLOW: Duration = Duration::from_millis(100);

/// Measures the path to `address`, where an agent answers: round trips for half a second at most, then bytes for `flow` in each direction.
///
/// # Errors
/// It cannot be reached, or does not answer.
pub fn measure_path_cost(address: SocketAddr, flow: Duration) -> io::Result<PathCost> {
    let mut trips = round_trips(address)?;
    trips.sort_unstable();
    let at = |part: f64| {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index of a short list"
        )]
        let index = (part * trips.len() as f64) as usize;
        trips.get(index.min(trips.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    Ok(PathCost {
        round_trips: trips.len() as u64,
        round_trip_min_ns: at(0.0),
        round_trip_median_ns: at(0.5),
        round_trip_p99_ns: at(0.99),
        to_bytes_per_s: to(address, flow)?,
        from_bytes_per_s: from(address, flow)?,
    })
}

/// Nanoseconds of each.
fn round_trips(address: SocketAddr) -> io::Result<Vec<u64>> {
    let mut stream = connect(address, ECHO)?;
    let mut message = [0x5a; MESSAGE_BYTES];
    let mut trip = || {
        let sent = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        Ok::<u64, io::Error>(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX))
    };
    for _ in 0..WARM_TRIPS {
        trip()?;
    }
    let (begun, mut trips) = (Instant::now(), Vec::with_capacity(MOST_TRIPS));
    while trips.len() < MOST_TRIPS && (trips.len() < FEWEST_TRIPS || begun.elapsed() < TRIPS_LIMIT) {
        trips.push(trip()?);
    }
    Ok(trips)
}

/// Bytes a second that arrive there. What is in flight at the end is waited for, so that no buffer on the way counts as the path.
fn to(address: SocketAddr, flow: Duration) -> io::Result<f64> {
    let mut stream = connect(address, SINK)?;
    let block = vec![0x5a; BLOCK_BYTES];
    let begun = Instant::now();
    while begun.elapsed() < flow {
        stream.write_all(&block)?;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut total = [0; 8];
    stream.read_exact(&mut total)?;
    Ok(u64::from_le_bytes(total) as f64 / begun.elapsed().as_secs_f64())
}

/// Bytes a second that arrive here.
fn from(address: SocketAddr, flow: Duration) -> io::Result<f64> {
    let mut stream = connect(address, SOURCE)?;
    let mut block = vec![0; BLOCK_BYTES];
    let warm = Instant::now();
    while warm.elapsed() < WARM_FLOW {
        take(&mut stream, &mut block)?;
    }
    let (begun, mut total) = (Instant::now(), 0);
    while begun.elapsed() < flow {
        total += take(&mut stream, &mut block)?;
    }
    Ok(total as f64 / begun.elapsed().as_secs_f64())
}

/// How many bytes came at once; that none will is an error.
fn take(stream: &mut TcpStream, block: &mut [u8]) -> io::Result<usize> {
    match stream.read(block)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => Ok(count),
    }
}

/// How long one call of the side that measures may wait.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(10);

/// How long the side that measures may do nothing.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(20);

/// A connection to the side that answers, which has been told what it is for.
///
/// # Errors
/// It cannot be reached.
pub(crate) fn connect(address: SocketAddr, kind: u8) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, CALL_LIMIT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CALL_LIMIT))?;
    stream.set_write_timeout(Some(CALL_LIMIT))?;
    stream.write_all(&[kind])?;
    Ok(stream)
}

/// What a connection is for, once it has said so within the limit.
///
/// # Errors
/// It has not.
pub(crate) fn kind_of(stream: &mut TcpStream, limit: Duration) -> io::Result<u8> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    Ok(kind[0])
}

/// Echoes, swallows or gives bytes until the other side has had enough; a kind that is none of these is hung up on.
///
/// # Errors
/// The other side has hung up in the middle, or done nothing for [`IDLE_LIMIT`].
pub(crate) fn answer(kind: u8, mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_LIMIT))?;
    stream.set_write_timeout(Some(IDLE_LIMIT))?;
    let mut block = vec![0; BLOCK_BYTES];
    match kind {
        ECHO => loop {
            match stream.read(&mut block)? {
                0 => return Ok(()),
                count => stream.write_all(&block[..count])?,
            }
        },
        SINK => {
            let mut total = 0_u64;
            while let count @ 1.. = stream.read(&mut block)? {
                total += count as u64;
            }
            stream.write_all(&total.to_le_bytes())
        }
        SOURCE => loop {
            stream.write_all(&block)?;
        },
        _ => Ok(()),
    }
}
