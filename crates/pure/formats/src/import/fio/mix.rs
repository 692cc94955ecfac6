//! What a job reads and writes, in which sizes and where: the mix of its load.

use virtbench_workload::{AccessLine, AccessSpec, Placement};

use super::super::common_alignment;
use super::values::{by_direction, bytes, integer};

/// fio's block size where none is given, in bytes.
const DEFAULT_BLOCK_BYTES: u64 = 4096;
/// The most sizes of one direction (of `bssplit`, fio's own limit is 64).
const MAX_SIZES: usize = 256;
/// The most lines of a mix: sizes times zones.
pub const MAX_LINES: usize = 1024;
pub const READ: usize = 0;
const WRITE: usize = 1;
pub const TRIM: usize = 2;

/// The `rw` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// Whether operations seek.
    pub random: bool,
    reads: bool,
    writes: bool,
    /// Whether what is not a read is a trim.
    pub trims: bool,
    /// Bytes left out after each sequential operation; back where negative.
    hole_bytes: i64,
}

impl Pattern {
    /// Reads `randrw`, `write:4k`, `read:-8k` and the like.
    pub fn read(text: &str) -> Result<Self, String> {
        let (name, modifier) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let (random, kind) = name.strip_prefix("rand").map_or((false, name), |kind| (true, kind));
        let (reads, writes, trims) = match kind {
            "read" => (true, false, false),
            "write" => (false, true, false),
            "rw" | "readwrite" => (true, true, false),
            "trim" => (false, false, true),
            _ => return Err("this pattern is not known here".into()),
        };
        let hole_bytes = match modifier {
            None => 0,
            Some("1") if random => 0,
            Some(_) if random => {
                return Err("several operations at one random place cannot be asked for".into());
            }
            Some(hole) => {
                let size = bytes(hole.trim_start_matches('-')).and_then(|size| i64::try_from(size).ok());
                let size = size.ok_or("the hole is not a size in bytes")?;
                if hole.starts_with('-') { -size } else { size }
            }
        };
        Ok(Self { random, reads, writes, trims, hole_bytes })
    }

    /// Whether it does nothing but write.
    pub fn only_writes(self) -> bool {
        self.writes && !self.reads
    }

    /// Whether it does anything but read.
    fn others(self) -> bool {
        self.writes || self.trims
    }

    /// Whether it goes on from one operation to the next with reads among the writes.
    pub fn mixes_in_sequence(self) -> bool {
        self.reads && (self.writes || self.trims) && self.hole_bytes == 0
    }
}

/// Sizes with their shares, in percent.
type Split = Vec<(u64, f64)>;

/// The options that make the mix, with fio's defaults.
#[derive(Debug, Clone)]
pub struct Mix {
    /// `rw`.
    pub pattern: Pattern,
    /// `rwmixread`.
    pub read_percent: f64,
    splits: [Split; 3],
    /// `blockalign`, in bytes.
    pub align_bytes: Option<u64>,
    /// `percentage_random`, of reads, writes and trims.
    pub random_percents: [f64; 3],
    /// Where random operations go: placements with their shares, in percent.
    pub placements: Vec<(f64, Placement)>,
    /// `norandommap`.
    pub repeats_blocks: bool,
    /// `zonesize` and `zoneskip` of `zonemode=strided`, in bytes.
    pub zones: Option<(u64, u64)>,
    /// `thinktime`, in nanoseconds.
    pub think_ns: u64,
    /// `thinktime_blocks`.
    pub think_blocks: u32,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            pattern: Pattern { random: false, reads: true, writes: false, trims: false, hole_bytes: 0 },
            read_percent: 50.0,
            splits: [(); 3].map(|()| vec![(DEFAULT_BLOCK_BYTES, 100.0)]),
            align_bytes: None,
            random_percents: [100.0; 3],
            placements: vec![(100.0, Placement::Uniform)],
            repeats_blocks: false,
            zones: None,
            think_ns: 0,
            think_blocks: 1,
        }
    }
}

impl Mix {
    /// Sets the block size of reads, writes and trims.
    pub fn set_block_sizes(&mut self, sizes: [Option<u64>; 3]) {
        self.splits = sizes.map(|size| vec![(size.unwrap_or(DEFAULT_BLOCK_BYTES), 100.0)]);
    }

    /// Sets the mix of block sizes, such as `4k/10:64k/50:32k/`.
    pub fn set_split(&mut self, text: &str) -> Result<(), String> {
        self.set_sizes(text, read_split)
    }

    /// Sets ranges of block sizes, such as `4k-64k`.
    pub fn set_range(&mut self, text: &str) -> Result<(), String> {
        self.set_sizes(text, read_range)
    }

    fn set_sizes(&mut self, text: &str, read: fn(&str) -> Result<Split, String>) -> Result<(), String> {
        let parts = by_direction(text).ok_or("more than three values")?;
        for (split, part) in self.splits.iter_mut().zip(parts) {
            if let Some(part) = part {
                *split = read(part)?;
            }
        }
        Ok(())
    }

    /// Operations of a direction in a second, where they are limited, as fio 3.33 does it: a limit in
    /// operations is one in bytes, of the smallest size. Bytes pass at that rate, unless operations arrive
    /// at random: then the distance between two is that of the smallest.
    #[allow(clippy::cast_precision_loss)]
    pub fn rate(
        &self,
        direction: usize,
        iops: Option<u64>,
        bytes: Option<u64>,
        at_random: bool,
    ) -> Option<f64> {
        let smallest = self.smallest(direction).max(1) as f64;
        let bytes = match (iops, bytes) {
            (_, Some(bytes)) if bytes > 0 => bytes as f64,
            (Some(iops), _) if iops > 0 => iops as f64 * smallest,
            _ => return None,
        };
        Some(bytes / if at_random { smallest } else { self.mean(direction).max(1.0) })
    }

    /// Where reads and writes both have a rate, these alone decide how many there are of each.
    pub fn follow_rates(&mut self, iops: [Option<u64>; 3], bytes: [Option<u64>; 3], at_random: bool) {
        let rate = |direction: usize| self.rate(direction, iops[direction], bytes[direction], at_random);
        if let (true, Some(read), Some(other)) =
            (self.pattern.reads && self.pattern.others(), rate(READ), rate(self.other()))
        {
            self.read_percent = 100.0 * read / (read + other);
        }
    }

    /// The mean of the operations of a direction, in bytes, where none of them is cut short.
    #[allow(clippy::cast_precision_loss)]
    pub fn mean(&self, direction: usize) -> f64 {
        self.splits[direction].iter().map(|(size, share)| *size as f64 * share / 100.0).sum()
    }

    /// Whether operations of a direction have several sizes and are cut short where they meet a block that
    /// has been visited, so that their mean is unknown.
    pub fn is_cut_short(&self, direction: usize) -> bool {
        self.visits_once() && self.splits[direction].len() > 1
    }

    /// The smallest operation of all that are done, in bytes.
    pub fn grain(&self) -> u64 {
        let Pattern { reads, writes, trims, .. } = self.pattern;
        let used = [(READ, reads), (self.other(), writes || trims)];
        used.iter()
            .filter(|(_, used)| *used)
            .map(|(direction, _)| self.smallest(*direction))
            .min()
            .unwrap_or(1)
            .max(1)
    }

    /// Whether bytes are left out between sequential operations.
    pub fn has_holes(&self) -> bool {
        self.pattern.hole_bytes != 0
    }

    /// Whether some of the operations, or all, go on from where the last one has ended.
    pub fn goes_on(&self) -> bool {
        !self.pattern.random || self.random_percents.iter().any(|percent| *percent < 100.0)
    }

    /// The smallest operation of a direction, in bytes.
    pub fn smallest(&self, direction: usize) -> u64 {
        self.splits[direction].iter().map(|(size, _)| *size).min().unwrap_or(1)
    }

    /// What is not a read.
    pub fn other(&self) -> usize {
        if self.pattern.trims { TRIM } else { WRITE }
    }

    /// Whether every block is visited once before any is twice: as in fio, a distribution or an alignment
    /// other than the block size turns that off.
    pub fn visits_once(&self) -> bool {
        let aligned = self.align_bytes.is_none_or(|align| {
            [READ, self.other()].iter().all(|direction| self.smallest(*direction) == align)
        });
        let uniform = matches!(self.placements.as_slice(), [(_, Placement::Uniform)]);
        self.pattern.random && uniform && aligned && !self.repeats_blocks
    }

    /// The mix: lines for both directions where reads and writes have the same sizes, otherwise for each.
    pub fn access(&self) -> AccessSpec {
        let Pattern { reads, writes, trims, .. } = self.pattern;
        let read_percent = match (reads, writes || trims) {
            (true, true) => self.read_percent,
            (true, false) => 100.0,
            _ => 0.0,
        };
        let other = self.other();
        let used = |direction: usize, percent: f64| (percent > 0.0).then(|| &self.splits[direction]);
        let (read, written) = (used(READ, read_percent), used(other, 100.0 - read_percent));
        let smallest_read = read.map(|_| self.smallest(READ));
        let smallest_written = written.map(|_| self.smallest(other));
        // fio aligns to the smallest size of a direction; its random map counts in the smallest of all.
        let align = |own: Option<u64>, other: Option<u64>| {
            let smallest = if self.visits_once() { own.min(other).or(own).or(other) } else { own };
            self.align_bytes.or(smallest).unwrap_or(DEFAULT_BLOCK_BYTES)
        };
        let smallest_of_both = smallest_read.into_iter().chain(smallest_written).min();
        let mut lines = Vec::new();
        match (read, written) {
            (Some(read), Some(written)) if read != written || !self.seeks_alike() => {
                let (unit, all) = (align(smallest_read, smallest_of_both), [read_percent, 100.0]);
                read.iter().for_each(|size| self.add_lines(&mut lines, *size, all, READ, unit));
                let (unit, all) = (align(smallest_written, smallest_of_both), [100.0 - read_percent, 0.0]);
                written.iter().for_each(|size| self.add_lines(&mut lines, *size, all, other, unit));
            }
            (Some(split), _) | (None, Some(split)) => {
                let direction = if read.is_some() { READ } else { other };
                let (unit, all) = (align(smallest_of_both, smallest_of_both), [100.0, read_percent]);
                split.iter().for_each(|size| self.add_lines(&mut lines, *size, all, direction, unit));
            }
            (None, None) => {}
        }
        AccessSpec { lines }
    }

    /// Whether as many reads as others seek.
    fn seeks_alike(&self) -> bool {
        let [read, other] = [READ, self.other()].map(|direction| self.random_percents[direction]);
        (read - other).abs() < f64::EPSILON
    }

    /// Adds the lines of one size, whose share is of `part_percent` of the mix: one for each placement.
    /// They seek as operations of `direction` do.
    fn add_lines(
        &self,
        lines: &mut Vec<AccessLine>,
        (size_bytes, share_percent): (u64, f64),
        [part_percent, read_percent]: [f64; 2],
        direction: usize,
        align_bytes: u64,
    ) {
        let Pattern { random, trims, hole_bytes, .. } = self.pattern;
        let stride = |stride_bytes: i64| match u64::try_from(stride_bytes) {
            Ok(stride_bytes) => Placement::Strided { stride_bytes },
            Err(_) => Placement::Backward { stride_bytes: stride_bytes.unsigned_abs() },
        };
        let zones = self.zones.filter(|_| hole_bytes == 0);
        let sequential = [match (hole_bytes, zones) {
            (_, Some((zone_bytes, skip_bytes))) => (100.0, Placement::Zones { zone_bytes, skip_bytes }),
            (0, None) => (100.0, Placement::Uniform),
            (hole, None) => (100.0, stride(hole.saturating_add_unsigned(size_bytes))),
        }];
        let placements = if random { self.placements.as_slice() } else { &sequential };
        // One too many shows that there are more.
        let room = (MAX_LINES + 1).saturating_sub(lines.len());
        for (placed_percent, placement) in placements.iter().take(room) {
            lines.push(AccessLine {
                share_percent: share_percent * part_percent * placed_percent / 10_000.0,
                delay_ns: self.think_ns,
                burst: if self.think_ns > 0 { self.think_blocks } else { 1 },
                align_bytes: common_alignment(align_bytes, *placement),
                trim_percent: if trims { 100.0 } else { 0.0 },
                placement: *placement,
                ..AccessLine::new(
                    size_bytes,
                    read_percent,
                    match (random, hole_bytes) {
                        (true, _) => self.random_percents[direction],
                        (false, 0) if zones.is_none() => 0.0,
                        (false, _) => 100.0,
                    },
                )
            });
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn read_split(text: &str) -> Result<Split, String> {
    let mut entries: Vec<(u64, Option<f64>)> = Vec::new();
    for part in text.split(':') {
        if entries.len() == MAX_SIZES {
            return Err(format!("more than {MAX_SIZES} sizes"));
        }
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let size = bytes(size).filter(|size| *size > 0).ok_or("not a size in bytes")?;
        let share = match share.trim() {
            "" => None,
            share => {
                // fio reads the digits that it begins with.
                let digits = share.find(|c: char| !c.is_ascii_digit()).unwrap_or(share.len());
                let share = integer(&share[..digits]).filter(|n| *n <= 100);
                Some(share.ok_or("a share lies between 0 and 100")? as f64)
            }
        };
        entries.push((size, share));
    }
    let given: f64 = entries.iter().filter_map(|(_, share)| *share).sum();
    let open = entries.iter().filter(|(_, share)| share.is_none()).count();
    if open > 1 && given > 100.0 {
        return Err(format!("the shares add up to {given} %, not 100 %"));
    }
    let each = if open > 0 { (100.0 - given).max(0.0) / open as f64 } else { 0.0 };
    let mut split: Split = entries.into_iter().map(|(size, share)| (size, share.unwrap_or(each))).collect();
    if (given - 100.0).abs() > 1e-9 && open == 0 {
        // As fio draws: from the smallest share up, as far as 100 %; what is left goes to the largest.
        split.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        let mut sum = 0.0;
        for (_, share) in &mut split {
            *share = share.min(100.0 - sum);
            sum += *share;
        }
        if let Some((_, share)) = split.last_mut() {
            *share += 100.0 - sum;
        }
    }
    split.retain(|(_, share)| *share > 0.0);
    Ok(split)
}

/// The sizes of a range with the shares that fio gives them: a number from the smallest up to that plus the
/// largest, all as likely, rounded down to multiples of the smallest and to the largest.
#[allow(clippy::cast_precision_loss)]
fn read_range(text: &str) -> Result<Split, String> {
    let (least, most) = text.split_once('-').or_else(|| text.split_once(':')).unwrap_or((text, text));
    let size = |text: &str| bytes(text).filter(|size| *size > 0).ok_or("not a range of sizes in bytes");
    let (least, most) = (size(least)?, size(most)?);
    if most < least {
        return Err("the range's end is below its start".into());
    }
    if most == least {
        return Ok(vec![(least, 100.0)]);
    }
    let whole = most / least;
    if whole >= MAX_SIZES as u64 {
        return Err(format!("more than {MAX_SIZES} sizes; name some with bssplit"));
    }
    let each = 100.0 * least as f64 / most as f64;
    let mut split: Split = (1..=whole).map(|times| (times * least, each)).collect();
    if most % least > 0 {
        split.push((most, 100.0 - each * whole as f64));
    }
    Ok(split)
}

/// The `random_distribution` option: placements with their shares, in percent.
pub fn placements(text: &str) -> Result<Vec<(f64, Placement)>, String> {
    let mut parts = text.split(':').map(str::trim);
    let kind = parts.next().unwrap_or("");
    let parameter = parts.next();
    if kind != "zoned" && parts.next().is_some() {
        return Err("a centre of the distribution cannot be set".into());
    }
    let number = |default: f64| match parameter {
        None => Ok(default),
        Some(text) => {
            text.parse::<f64>().ok().filter(|n| n.is_finite()).ok_or("the parameter is not a number")
        }
    };
    let one = |placement| Ok(vec![(100.0, placement)]);
    match kind {
        "random" => one(Placement::Uniform),
        "zipf" => {
            let theta = number(1.1)?;
            let fits = theta > 0.0 && theta < 5.0 && (theta - 1.0).abs() > f64::EPSILON;
            if fits {
                one(Placement::Zipf { theta })
            } else {
                Err("theta lies in 0 to 5 and is not 1".into())
            }
        }
        "pareto" => {
            let h = number(0.2)?;
            let fits = h > 0.0 && h < 1.0;
            if fits { one(Placement::Pareto { h }) } else { Err("the power lies between 0 and 1".into()) }
        }
        "zoned" => zoned(text.trim_start_matches("zoned:")),
        _ => Err("only random, zipf, pareto and zoned are known".into()),
    }
}

/// `50/5:30/15:20/`: shares of the accesses to parts of the region, one after another; the last part may be
/// left to be the rest.
fn zoned(text: &str) -> Result<Vec<(f64, Placement)>, String> {
    let wrong =
        "zones are shares of accesses and of the region that make 100 % each, such as zoned:50/5:30/15:20/80";
    let mut zones: Vec<(f64, f64)> = Vec::new();
    let mut end_percent = 0.0;
    for zone in text.split(':').take(MAX_SIZES + 1) {
        let (access, data) = zone.split_once('/').ok_or(wrong)?;
        let percent =
            |text: &str| integer(text).and_then(|n| u8::try_from(n).ok()).map(f64::from).ok_or(wrong);
        let data = if data.trim().is_empty() { 100.0 - end_percent } else { percent(data)? };
        zones.push((percent(access)?, data));
        end_percent += data;
    }
    let accesses: f64 = zones.iter().map(|(access, _)| access).sum();
    let whole = |percent: f64| (percent - 100.0).abs() < 1e-9;
    if zones.len() > MAX_SIZES
        || !whole(accesses)
        || !whole(end_percent)
        || zones.iter().any(|zone| zone.1 <= 0.0)
    {
        return Err(wrong.into());
    }
    if let [(access_percent, data_percent), (other, _)] = *zones.as_slice()
        && access_percent > 0.0
        && other > 0.0
    {
        return Ok(vec![(100.0, Placement::Hot { data_percent, access_percent })]);
    }
    let mut from_percent = 0.0;
    let mut parts = Vec::new();
    for (access, data) in zones {
        let to_percent: f64 = f64::min(from_percent + data, 100.0);
        if access > 0.0 {
            parts.push((access, Placement::Part { from_percent, to_percent }));
        }
        from_percent = to_percent;
    }
    Ok(parts)
}
