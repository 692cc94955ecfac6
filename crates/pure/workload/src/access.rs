//! Access specifications: what share of which operations.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_units::{format_bytes, parse_bytes, parse_duration_ns};

use crate::placement::{Placement, parse_placement};

/// The largest single operation, in bytes.
pub const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// The longest trim, which needs no buffer, in bytes.
pub const MAX_TRIM_BYTES: u64 = (4 << 30) - 4096;
/// The longest delay between bursts: an hour. More is a slip of the keyboard.
const MAX_DELAY_NS: u64 = 3_600_000_000_000;

/// An access specification that makes no sense.
#[derive(Debug, Error, PartialEq)]
pub enum AccessError {
    /// A percentage outside 0 to 100.
    #[error("{field} is {value} %: a percentage lies between 0 and 100")]
    Percentage {
        /// The field's name.
        field: &'static str,
        /// What was given.
        value: f64,
    },
    /// Shares of a mix that do not make a whole.
    #[error("the shares of the mix add up to {sum} %, not 100 %")]
    Shares {
        /// What they add up to.
        sum: f64,
    },
    /// No line at all.
    #[error("the access specification has no line")]
    Empty,
    /// A block size of zero or beyond the limit.
    #[error(
        "a block size of {bytes} bytes is outside 1 B to {} (trims: to {})",
        format_bytes(MAX_BLOCK_BYTES),
        format_bytes(MAX_TRIM_BYTES)
    )]
    BlockSize {
        /// What was given.
        bytes: u64,
    },
    /// An alignment of zero.
    #[error("an alignment of 0 bytes is impossible: leave it out to align to the block size")]
    Alignment,
    /// A burst of zero operations.
    #[error("a burst of 0 operations is impossible: 1 is the smallest")]
    Burst,
    /// A delay beyond an hour.
    #[error("a delay of {ns} ns is longer than an hour")]
    Delay {
        /// What was given.
        ns: u64,
    },
    /// A placement of random seeks that makes no sense.
    #[error("placement: {0}")]
    Placement(String),
    /// A line of a mix that cannot be read.
    #[error(
        "{text:?}: {why}; write for example size=4k,share=60,read=70,random=100,delay=0ms,burst=1,align=4k,trim=0,distribution=zipf:1.1"
    )]
    Syntax {
        /// The whole text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
}

/// One line of an access specification, with Iometer's columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessLine {
    /// Size of each operation, in bytes.
    pub size_bytes: u64,
    /// How often this line is drawn when a burst begins, in percent of all bursts.
    pub share_percent: f64,
    /// Probability that an operation is a read, in percent.
    pub read_percent: f64,
    /// Probability that an operation seeks to a random offset, in percent; otherwise it goes on
    /// from where the worker's last operation ended.
    pub random_percent: f64,
    /// Wait after each burst, in nanoseconds (think time).
    pub delay_ns: u64,
    /// Operations in a burst.
    pub burst: u32,
    /// Offsets are multiples of this many bytes.
    pub align_bytes: u64,
    /// Probability that an operation that is not a read is a trim (discard) instead of a write, in
    /// percent.
    #[serde(default)]
    pub trim_percent: f64,
    /// Where random seeks go.
    #[serde(default)]
    pub placement: Placement,
}

impl AccessLine {
    /// A line of `size_bytes` operations that are all of the mix, aligned to their size, without delay.
    #[must_use]
    pub fn new(size_bytes: u64, read_percent: f64, random_percent: f64) -> Self {
        Self {
            size_bytes,
            share_percent: 100.0,
            read_percent,
            random_percent,
            delay_ns: 0,
            burst: 1,
            align_bytes: size_bytes,
            trim_percent: 0.0,
            placement: Placement::Uniform,
        }
    }

    /// Whether no data move.
    #[must_use]
    pub fn only_trims(&self) -> bool {
        self.read_percent <= 0.0 && self.trim_percent >= 100.0
    }

    fn validate(&self) -> Result<(), AccessError> {
        let most_bytes = if self.only_trims() { MAX_TRIM_BYTES } else { MAX_BLOCK_BYTES };
        if self.size_bytes == 0 || self.size_bytes > most_bytes {
            return Err(AccessError::BlockSize { bytes: self.size_bytes });
        }
        for (field, value) in [
            ("share", self.share_percent),
            ("read", self.read_percent),
            ("random", self.random_percent),
            ("trim", self.trim_percent),
        ] {
            if !(0.0..=100.0).contains(&value) {
                return Err(AccessError::Percentage { field, value });
            }
        }
        if self.align_bytes == 0 {
            return Err(AccessError::Alignment);
        }
        if self.burst == 0 {
            return Err(AccessError::Burst);
        }
        if self.delay_ns > MAX_DELAY_NS {
            return Err(AccessError::Delay { ns: self.delay_ns });
        }
        self.placement.validate(self.align_bytes).map_err(AccessError::Placement)
    }
}

/// A mix of operations: one or more lines whose shares add up to 100 %.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessSpec {
    /// The lines of the mix.
    pub lines: Vec<AccessLine>,
}

impl AccessSpec {
    /// A mix of one line.
    #[must_use]
    pub fn single(line: AccessLine) -> Self {
        Self { lines: vec![line] }
    }

    /// Checks every field and that the shares add up to 100 % (to 0.01).
    ///
    /// # Errors
    /// The first field found wrong, by name.
    pub fn validate(&self) -> Result<(), AccessError> {
        if self.lines.is_empty() {
            return Err(AccessError::Empty);
        }
        self.lines.iter().try_for_each(AccessLine::validate)?;
        let sum: f64 = self.lines.iter().map(|line| line.share_percent).sum();
        if (sum - 100.0).abs() > 0.01 {
            return Err(AccessError::Shares { sum });
        }
        Ok(())
    }

    /// The largest operation that moves data, in bytes: what each buffer must hold. Trims move none.
    #[must_use]
    pub fn largest_block_bytes(&self) -> u64 {
        let moving = self.lines.iter().filter(|line| !line.only_trims());
        moving.map(|line| line.size_bytes).max().unwrap_or(0)
    }

    /// The longest operation, in bytes, whether it moves data or not.
    #[must_use]
    pub fn longest_bytes(&self) -> u64 {
        self.lines.iter().map(|line| line.size_bytes).max().unwrap_or(0)
    }

    /// Whether any operation changes the target: a write or a trim.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.lines.iter().any(|line| line.share_percent > 0.0 && line.read_percent < 100.0)
    }

    /// Whether any operation can be a read.
    #[must_use]
    pub fn reads(&self) -> bool {
        self.lines.iter().any(|line| line.share_percent > 0.0 && line.read_percent > 0.0)
    }
}

/// The keys of a line of a mix.
const MIX_KEYS: [&str; 9] =
    ["size", "share", "read", "random", "delay", "burst", "align", "trim", "distribution"];

/// Reads one line of a mix such as
/// `size=4k,share=60,read=70,random=100,delay=0ms,burst=1,align=4k,trim=10,distribution=zipf:1.1`.
/// `size` and `share` must be given; the others default to 100 % read, 100 % random, no delay,
/// bursts of one, alignment to the size, no trims, uniform seeks.
///
/// # Errors
/// An unknown, repeated or missing key, or a value that cannot be read; the message quotes the text.
pub fn parse_mix_line(text: &str) -> Result<AccessLine, AccessError> {
    let syntax = |why: String| AccessError::Syntax { text: text.to_owned(), why };
    let mut values: Vec<(&str, &str)> = Vec::new();
    for part in text.split(',') {
        let (key, value) = part
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
            .ok_or_else(|| syntax(format!("{part:?} is not key=value")))?;
        if !MIX_KEYS.contains(&key) {
            return Err(syntax(format!("unknown key {key:?}")));
        }
        if values.iter().any(|(known, _)| *known == key) {
            return Err(syntax(format!("{key:?} is given twice")));
        }
        values.push((key, value));
    }
    let get = |key: &str| values.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    let bytes = |text: &str| parse_bytes(text).map_err(|error| syntax(error.to_string()));
    let number = |text: &str| text.parse::<f64>().map_err(|_| syntax(format!("{text:?} is not a number")));
    let size_bytes = bytes(get("size").ok_or_else(|| syntax("size= is missing".into()))?)?;
    let share_percent = number(get("share").ok_or_else(|| syntax("share= is missing".into()))?)?;
    let line = AccessLine {
        size_bytes,
        share_percent,
        read_percent: get("read").map_or(Ok(100.0), number)?,
        random_percent: get("random").map_or(Ok(100.0), number)?,
        delay_ns: get("delay")
            .map_or(Ok(0), |text| parse_duration_ns(text).map_err(|error| syntax(error.to_string())))?,
        burst: get("burst").map_or(Ok(1), |text| {
            text.parse().map_err(|_| syntax(format!("{text:?} is not a whole number of operations")))
        })?,
        align_bytes: get("align").map_or(Ok(size_bytes), bytes)?,
        trim_percent: get("trim").map_or(Ok(0.0), number)?,
        placement: get("distribution").map_or(Ok(Placement::Uniform), |text| {
            parse_placement(text).map_err(|error| syntax(error.to_string()))
        })?,
    };
    line.validate()?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_mix_line_is_read() {
        let line = parse_mix_line("size=8k,share=60,read=70,random=25,delay=2ms,burst=4,align=512").unwrap();
        assert_eq!(
            line,
            AccessLine {
                size_bytes: 8192,
                share_percent: 60.0,
                read_percent: 70.0,
                random_percent: 25.0,
                delay_ns: 2_000_000,
                burst: 4,
                align_bytes: 512,
                trim_percent: 0.0,
                placement: Placement::Uniform,
            }
        );
    }

    #[test]
    fn each_line_can_trim_and_seek_in_its_own_way() {
        let line = parse_mix_line("size=4k,share=50,read=0,trim=25,distribution=hot:10/90").unwrap();
        assert!((line.trim_percent - 25.0).abs() < 1e-9);
        assert_eq!(line.placement, Placement::Hot { data_percent: 10.0, access_percent: 90.0 });
        assert_eq!(parse_mix_line("size=4k,share=100").unwrap().placement, Placement::Uniform);
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (text, word) in [
            ("size=4k", "share"),
            ("share=100", "size"),
            ("size=4k,share=100,speed=9", "speed"),
            ("size=4k,share=100,read=170", "read"),
            ("size=4k,share=100,size=8k", "twice"),
            ("size=4k,share=100,burst=0", "burst"),
            ("size=0,share=100", "block size"),
            ("size=4k,share=nan", "percentage"),
            ("hello", "key=value"),
            ("size=4k,share=100,trim=101", "trim"),
            ("size=4k,share=100,distribution=zipf:9", "zipf"),
            ("size=4k,share=100,distribution=normal", "normal"),
        ] {
            let message = parse_mix_line(text).unwrap_err().to_string();
            assert!(message.contains(word), "{text}: {message}");
        }
    }

    #[test]
    fn shares_must_make_a_whole() {
        let mut line = AccessLine::new(4096, 100.0, 100.0);
        line.share_percent = 40.0;
        let spec = AccessSpec { lines: vec![line.clone(), line] };
        assert_eq!(spec.validate(), Err(AccessError::Shares { sum: 80.0 }));
        assert_eq!(AccessSpec { lines: vec![] }.validate(), Err(AccessError::Empty));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = parse_mix_line(&text);
        }

        #[test]
        fn a_line_that_is_read_is_valid(size in 1u64..1 << 22, share in 0.0..=100.0f64, read in 0.0..=100.0f64) {
            let line = parse_mix_line(&format!("size={size},share={share},read={read}")).unwrap();
            prop_assert_eq!(line.validate(), Ok(()));
        }
    }
}
