//! Lines of a trace pipe: the block layer's events and forks.
//!
//! ```text
//!   dd-23503   [001] ..s.. 15973.903196: block_bio_queue: 254,0 RA 12580504 + 32 [bash]
//!   dd-23503   [001] ..... 15973.903466: block_rq_complete: 254,0 RA () 12580504 + 32 be,0,4 [0]
//!   sh-23479   [001] ..... 15973.901240: sched_process_fork: comm=sh pid=23479 child_comm=sh child_pid=23502
//! ```

/// Bytes of a sector in the block layer's events.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceEvent {
    /// When, in seconds of the monotonic clock.
    pub at_s: f64,
    /// Who was running: for an operation that is queued, the thread that asked for it.
    pub thread: u32,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EventKind {
    /// An operation was handed to the block layer.
    Queued {
        /// The device's numbers.
        device: (u32, u32),
        /// Whether it reads.
        read: bool,
        /// Its first sector.
        sector: u64,
        /// Sectors.
        sectors: u64,
    },
    /// A request, in which operations may have been put together, was completed.
    Completed {
        /// The device's numbers.
        device: (u32, u32),
        /// Its first sector.
        sector: u64,
        /// Sectors.
        sectors: u64,
    },
    /// A thread or process was made.
    Forked {
        /// By whom.
        parent: u32,
        /// The new one.
        child: u32,
    },
    /// Events were lost because nobody read them in time.
    Lost {
        /// How many.
        events: u64,
    },
}

/// Reads a line. `None` for what is of no interest, and for what cannot be understood.
#[must_use]
pub fn parse_line(line: &str) -> Option<TraceEvent> {
    if let Some(lost) = line.trim_start().strip_prefix("CPU:") {
        let events = lost.split("LOST ").nth(1)?.split_whitespace().next()?.parse().ok()?;
        return Some(TraceEvent { at_s: 0.0, thread: 0, kind: EventKind::Lost { events } });
    }
    // A command's name may hold blanks, brackets and dashes: the processor's number, in brackets and
    // followed by flags, a time and a name with colons, is what holds the line together.
    let (head, rest) = ["block_bio_queue: ", "block_rq_complete: ", "sched_process_fork: "]
        .into_iter()
        .find_map(|name| line.split_once(name).map(|(head, rest)| (head, (name, rest))))?;
    let (name, rest) = rest;
    let mut words = head.trim_end().rsplit(char::is_whitespace).filter(|word| !word.is_empty());
    let at_s = words.next()?.strip_suffix(':')?.parse().ok()?;
    let processor = head.rfind(" [")?;
    let thread = head[..processor].trim_end().rsplit('-').next()?.parse().ok()?;
    let kind = match name {
        "block_bio_queue: " => queued(rest)?,
        "block_rq_complete: " => completed(rest)?,
        _ => forked(rest)?,
    };
    Some(TraceEvent { at_s, thread, kind })
}

fn device(word: &str) -> Option<(u32, u32)> {
    let (major, minor) = word.split_once(',')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn queued(text: &str) -> Option<EventKind> {
    let mut words = text.split_whitespace();
    let device = device(words.next()?)?;
    let read = is_read(words.next()?)?;
    let (sector, sectors) = extent(words)?;
    Some(EventKind::Queued { device, read, sector, sectors })
}

fn completed(text: &str) -> Option<EventKind> {
    let (front, back) = text.split_once(") ")?;
    let mut words = front.split_whitespace();
    let device = device(words.next()?)?;
    is_read(words.next()?)?;
    let (sector, sectors) = extent(back.split_whitespace())?;
    Some(EventKind::Completed { device, sector, sectors })
}

/// `S + N`; nothing for a flush, which has no sectors.
fn extent<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<(u64, u64)> {
    let sector = words.next()?.parse().ok()?;
    if words.next()? != "+" {
        return None;
    }
    let sectors = words.next()?.parse().ok()?;
    (sectors > 0 && sectors < 1 << 40 && sector < 1 << 60).then_some((sector, sectors))
}

/// The kernel's letters for an operation: a leading F is a flush before it, R and W are what they
/// seem; discards and the rest are no transfers.
fn is_read(letters: &str) -> Option<bool> {
    match letters.strip_prefix('F').unwrap_or(letters).chars().next()? {
        'R' => Some(true),
        'W' => Some(false),
        _ => None,
    }
}

fn forked(text: &str) -> Option<EventKind> {
    // Names come between, and may hold anything but what the kernel writes after them.
    let child = text.rsplit_once(" child_pid=")?.1.trim().parse().ok()?;
    let parent = text.rsplit(" pid=").next()?.split_whitespace().next()?.parse().ok()?;
    Some(EventKind::Forked { parent, child })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_kernel_s_lines_are_understood() {
        let parse = |line| parse_line(line).unwrap();
        let event = parse(
            "            lto cgu.0-x-23503   [001] ..s.. 15973.903196: block_bio_queue: 254,0 RA 12580504 + 32 [bash]",
        );
        assert_eq!((event.thread, event.at_s), (23_503, 15_973.903_196));
        let (device, sector) = ((254, 0), 12_580_504);
        assert_eq!(event.kind, EventKind::Queued { device, read: true, sector, sectors: 32 });
        let event = parse(
            " kworker/u8:4-9482    [001] ..... 15973.919195: block_rq_complete: 254,0 FWS () 12580504 + 32 be,0,4 [0]",
        );
        assert_eq!(event.kind, EventKind::Completed { device, sector, sectors: 32 });
        let event = parse(
            "  <...>-1  [000] ..... 1.5: sched_process_fork: comm=a pid=3 [x] pid=1 child_comm=b child_pid=7 child_pid=9",
        );
        assert_eq!(event.kind, EventKind::Forked { parent: 1, child: 9 });
        assert_eq!(parse("CPU:1 [LOST 12345 EVENTS]").kind, EventKind::Lost { events: 12_345 });
    }

    #[test]
    fn what_moves_no_data_is_passed_over() {
        for line in [
            "# tracer: nop",
            "",
            " a-1 [001] ..... 1.0: block_bio_queue: 254,0 FN 0 + 0 [a]",
            " a-1 [001] ..... 1.0: block_bio_queue: 254,0 FWS 0 + 0 [a]",
            " a-1 [001] ..... 1.0: block_bio_queue: 254,0 DS 178003960 + 8 [rustc]",
            " a-1 [001] ..... 1.0: block_bio_queue: nonsense",
        ] {
            assert_eq!(parse_line(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics_the_reader_of_events(line in "[ -~]{0,120}", tail in ".{0,20}") {
            let _ = parse_line(&line);
            let _ = parse_line(&format!("a-1 [001] ..s.. 1.0: block_bio_queue: {line}{tail}"));
            let _ = parse_line(&format!("a-1 [001] ..s.. 1.0: sched_process_fork: {line}{tail}"));
        }
    }
}
