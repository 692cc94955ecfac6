//! Streams of consecutive writes of one disk, several at a time.
//!
//! What is remembered is where each stream began and where its next write belongs, as bcache does for the I/Os of late
//! (`sequential_cutoff`). A write that overtakes the one before it begins a stream of its own, which joins the other once the
//! gap between them is closed.

/// Streams that are followed at most: of more, those that have not grown for longest are forgotten.
const MOST: usize = 8;

/// Bytes from `from` to `to` were written, each write behind the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stream {
    from: u64,
    to: u64,
}

/// The streams of one disk, those that grew last at the end.
#[derive(Debug, Default)]
pub(super) struct Streams(Vec<Stream>);

impl Streams {
    /// A write of the bytes from `from` to `to`. How long its stream was before.
    pub(super) fn write(&mut self, from: u64, to: u64) -> u64 {
        let mut stream = self.take(|stream| stream.to == from).unwrap_or(Stream { from, to: from });
        let before = stream.to - stream.from;
        stream.to = self.take(|stream| stream.from == to).map_or(to, |next| next.to);
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push(stream);
        before
    }

    fn take(&mut self, is_it: impl Fn(&Stream) -> bool) -> Option<Stream> {
        let place = self.0.iter().position(is_it)?;
        Some(self.0.remove(place))
    }

    /// What comes next begins anew.
    pub(super) fn end(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1024;

    #[test]
    fn a_stream_is_as_long_as_its_writes_behind_each_other() {
        let mut streams = Streams::default();
        let lengths: Vec<u64> = (0..4).map(|n| streams.write(n * 64 * K, (n + 1) * 64 * K)).collect();
        assert_eq!(lengths, [0, 64 * K, 128 * K, 192 * K]);
        assert_eq!(streams.write(1024 * K, 1028 * K), 0, "elsewhere");
        assert_eq!(streams.write(256 * K, 260 * K), 256 * K, "the first goes on");
        assert_eq!(streams.write(256 * K, 260 * K), 0, "the same place once more");
    }

    #[test]
    fn streams_that_take_turns_are_told_apart_and_those_left_alone_are_forgotten() {
        let mut streams = Streams::default();
        let begins = |stream: u64| stream << 30;
        for step in 0..10 {
            for stream in 0..MOST as u64 {
                let from = begins(stream) + step * 4 * K;
                assert_eq!(streams.write(from, from + 4 * K), step * 4 * K, "stream {stream}");
            }
        }
        // One more is too many: the first has not grown for longest.
        assert_eq!(streams.write(begins(99), begins(99) + 4 * K), 0);
        let next = |stream: u64| (begins(stream) + 40 * K, begins(stream) + 44 * K);
        assert_eq!(streams.write(next(1).0, next(1).1), 40 * K);
        assert_eq!(streams.write(next(0).0, next(0).1), 0);
        assert_eq!(streams.0.len(), MOST);
    }

    #[test]
    fn writes_that_overtake_each_other_are_one_stream() {
        let mut streams = Streams::default();
        streams.write(0, 8 * K);
        assert_eq!(streams.write(16 * K, 24 * K), 0, "it has overtaken one");
        assert_eq!(streams.write(8 * K, 16 * K), 8 * K, "which closes the gap");
        assert_eq!(streams.write(24 * K, 32 * K), 24 * K);
    }

    #[test]
    fn a_flush_ends_streams() {
        let mut streams = Streams::default();
        streams.write(0, 8 * K);
        streams.end();
        assert_eq!(streams.write(8 * K, 16 * K), 0);
    }
}
