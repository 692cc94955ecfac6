//! What each option of a fio job means here.

use virtbench_workload::WriteSync;

use super::super::{Ends, Findings, SteadyMetric, Surroundings};
use super::draft::{Draft, Engine, Quantity};
use super::ini::Setting;
use super::mix::{Pattern, placements};
use super::names::{foreign_engine, instead, unknown_option};
use super::values::{bytes, expand, integer, numbers_by_direction, pattern, processors, switch, time_ns};

const SECOND_NS: u64 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1_000;
/// The most that `io_size` may be of a job's size: a million passes.
const MAX_PASSES_PERCENT: u64 = 100_000_000;

/// Options that change what is reported, prepared or logged, or that hold here anyway.
const WITHOUT_EFFECT: &[&str] = &[
    "allrandrepeat",
    "block_error_percentiles",
    "buffer_compress_chunk",
    "bwavgtime",
    "clat_percentiles",
    "clocksource",
    "comm",
    "continue_on_error",
    "create_fsync",
    "create_on_open",
    "create_serialize",
    "description",
    "disable_bw",
    "disable_bw_measurement",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "disk_util",
    "error_dump",
    "exitall_on_error",
    "experimental_verify",
    "fadvise_hint",
    "fallocate",
    "file_service_type",
    "fixedbufs",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "iomem",
    "iomem_align",
    "iopsavgtime",
    "lat_percentiles",
    "libaio_vectored",
    "log_alternate_epoch",
    "log_avg_msec",
    "log_compression",
    "log_compression_cpus",
    "log_entries",
    "log_hist_coarseness",
    "log_hist_msec",
    "log_issue_time",
    "log_max_value",
    "log_offset",
    "log_prio",
    "log_store_compressed",
    "log_unix_epoch",
    "log_window_value",
    "mem",
    "mem_align",
    "new_group",
    "nonvectored",
    "opendir",
    "openfiles",
    "overwrite",
    "per_job_logs",
    "percentile_list",
    "randrepeat",
    "refill_buffers",
    "registerfiles",
    "scramble_buffers",
    "significant_figures",
    "slat_percentiles",
    "softrandommap",
    "stats",
    "thread",
    "threads",
    "unified_rw_reporting",
    "unit_base",
    "unlink",
    "verify_dump",
    "verify_fatal",
    "verify_interval",
    "verify_state_save",
    "write_bw_log",
    "write_hist_log",
    "write_iolog",
    "write_iops_log",
    "write_lat_log",
];

/// Options with a value for reads, writes and trims each.
const THREE_VALUES: [&str; 6] = ["bs", "blockalign", "percentage_random", "rate", "rate_iops", "rate_min"];

/// Options whose neutral value asks for nothing.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("bs_is_seq_rand", &["0"]),
    ("create_only", &["0"]),
    ("end_syncfs", &["0"]),
    ("iodepth_batch_complete_max", &["1"]),
    ("iodepth_batch_complete_min", &["1"]),
    ("kb_base", &["1024"]),
    ("nrfiles", &["1"]),
    ("pre_read", &["0"]),
    ("rw_sequencer", &["sequential"]),
    ("serialize_overlap", &["0"]),
    ("thinktime_blocks_type", &["complete"]),
    ("thinktime_spin", &["0"]),
    ("unlink_each_loop", &["0"]),
];

/// The other names of some options (axboe/fio, options.c).
fn canonical(key: &str) -> &str {
    match key {
        "readwrite" => "rw",
        "blocksize" => "bs",
        "ba" => "blockalign",
        "blocksize_range" => "bsrange",
        "fill_fs" => "fill_device",
        "iodepth_batch_submit" => "iodepth_batch",
        "iodepth_batch_complete" => "iodepth_batch_complete_min",
        "ss" => "steadystate",
        "ss_dur" => "steadystate_duration",
        "ss_ramp" => "steadystate_ramp_time",
        "ss_interval" => "steadystate_check_interval",
        "timeout" => "runtime",
        "wait_for_previous" => "stonewall",
        "fileoffset" => "offset",
        "io_limit" => "io_size",
        "nr_files" => "nrfiles",
        "hipri_percentage" => "hipri",
        "ratemin" => "rate_min",
        other => other,
    }
}

/// Puts one setting into the draft, or says why it cannot be.
pub fn apply(
    draft: &mut Draft,
    setting: &Setting<'_>,
    surroundings: &Surroundings<'_>,
    findings: &mut Findings,
) {
    let key = canonical(setting.key);
    let at = setting.at;
    let written = || match setting.value {
        Some(value) => format!("{}={}", shorten(setting.key), shorten(value)),
        None => shorten(setting.key),
    };
    if WITHOUT_EFFECT.contains(&key) {
        findings.leave_out(key, at.line);
        return;
    }
    let value = match setting.value.map(|value| expand(value, surroundings)).transpose() {
        Ok(value) => value,
        Err(why) => return findings.ignore(at, format!("{}: {why}", written())),
    };
    let value = value.as_deref();
    if let Some((_, neutral)) = NEUTRAL.iter().find(|(known, _)| *known == key) {
        if !value.is_some_and(|value| neutral.contains(&value)) {
            let hint = instead(key);
            findings.ignore(at, format!("{}: this engine cannot do that{hint}", written()));
        }
        return;
    }
    if key == "ioengine" {
        match value.map_or(Ok(None), Engine::read) {
            Ok(Some(engine)) => draft.engine = engine,
            Ok(None) => {
                let why = foreign_engine(value.unwrap_or_default());
                findings.refuse(at, format!("{}: {why}", written()));
            }
            Err(why) => findings.ignore(at, format!("{}: {why}", written())),
        }
        return;
    }
    let known = [set, set_contents, set_ends]
        .into_iter()
        .try_fold(false, |known, set| if known { Ok(true) } else { set(draft, key, value) });
    match known {
        Ok(true) => {
            let many = value.is_some_and(|value| value.split([',', ':']).count() > 3);
            if many && THREE_VALUES.contains(&key) {
                findings.note(format!(
                    "{key}: fio takes three values, for reads, writes and trims, and passes over the rest"
                ));
            }
            if let ("bs" | "bssplit", Some(range)) = (key, value.and_then(range_in_sizes)) {
                let takes =
                    if key == "bs" { "its parts for reads, writes and trims" } else { "the first number" };
                findings.note(format!("{key}: of {range} fio takes {takes}; bsrange is a range"));
            }
        }
        Ok(false) => findings.ignore(at, format!("{}: {}", written(), unknown_option(setting.key))),
        Err(why) => findings.ignore(at, format!("{}: {why}", written())),
    }
}

/// What is written as a range where fio reads one size.
fn range_in_sizes(text: &str) -> Option<&str> {
    text.split([':', ',']).map(|part| part.split('/').next().unwrap_or("")).find(|size| size.contains('-'))
}

/// A value fit for a message.
fn shorten(text: &str) -> String {
    if text.chars().count() <= 60 {
        text.to_owned()
    } else {
        text.chars().take(57).chain("...".chars()).collect()
    }
}

/// Readers of single values.
fn given(value: Option<&str>) -> Result<&str, String> {
    value.filter(|text| !text.is_empty()).ok_or_else(|| "a value is missing".into())
}

fn flag(value: Option<&str>) -> Result<bool, String> {
    switch(value).ok_or_else(|| "a switch is 0 or 1".into())
}

fn small(value: Option<&str>) -> Result<u32, String> {
    let number = integer(given(value)?).and_then(|n| u32::try_from(n).ok());
    number.ok_or_else(|| "not a number in range".into())
}

fn size(value: Option<&str>) -> Result<u64, String> {
    bytes(given(value)?).ok_or_else(|| "not a size in bytes".into())
}

/// Bytes, or a share of the target such as `50%`, up to a limit.
fn quantity(value: Option<&str>, most_percent: u64) -> Result<Quantity, String> {
    match given(value)?.split_once('%') {
        Some((share, _)) => integer(share)
            .filter(|percent| *percent <= most_percent)
            .map(Quantity::Percent)
            .ok_or_else(|| format!("a share lies between 0 and {most_percent} %")),
        None => size(value).map(Quantity::Bytes),
    }
}

fn percent(value: Option<&str>) -> Result<u64, String> {
    let number = integer(given(value)?.trim_end_matches('%')).filter(|n| *n <= 100);
    number.ok_or_else(|| "a percentage lies between 0 and 100".into())
}

fn time(value: Option<&str>, unit_ns: u64) -> Result<u64, String> {
    time_ns(given(value)?, unit_ns).ok_or_else(|| "not a time".into())
}

/// Sets an option of what is done, where and how; `false` for one that is not known.
fn set(draft: &mut Draft, key: &str, value: Option<&str>) -> Result<bool, String> {
    let mix = &mut draft.mix;
    #[allow(clippy::cast_precision_loss)]
    match key {
        "rw" => mix.pattern = Pattern::read(given(value)?)?,
        "rwmixread" => mix.read_percent = percent(value)? as f64,
        "rwmixwrite" => mix.read_percent = 100.0 - percent(value)? as f64,
        "bs" => mix.set_block_sizes(sizes(given(value)?)?),
        "bssplit" => mix.set_split(given(value)?)?,
        "bsrange" => mix.set_range(given(value)?)?,
        "blockalign" => mix.align_bytes = sizes(given(value)?)?[0],
        "norandommap" => mix.repeats_blocks = flag(value)?,
        "random_generator" => {
            if !matches!(given(value)?, "tausworthe" | "tausworthe64" | "lfsr") {
                return Err("only tausworthe, tausworthe64 and lfsr are known".into());
            }
        }
        "percentage_random" => {
            let parts = numbers_by_direction(given(value)?);
            for (share, part) in mix.random_percents.iter_mut().zip(parts) {
                *share = percent(Some(part.unwrap_or("100")))? as f64;
            }
        }
        "random_distribution" => mix.placements = placements(given(value)?)?,
        "thinktime" => mix.think_ns = time(value, MICROSECOND_NS)?,
        "thinktime_blocks" => mix.think_blocks = small(value)?,
        "iodepth" => draft.depth = small(value)?,
        "iodepth_batch" => draft.batches = small(value)? != 1,
        "numjobs" => draft.clones = small(value)?,
        "size" => draft.size = Some(quantity(value, 100)?),
        "filesize" => draft.file_bytes = Some(size(value)?),
        "offset" => draft.offset = quantity(value, 100)?,
        "offset_increment" => draft.offset_step = quantity(value, 100)?,
        "filename" => add_files(draft, given(value)?)?,
        "filename_format" => draft.filename_format = Some(one_file(given(value)?)?),
        "directory" => draft.directory = Some(one_file(given(value)?)?),
        "offset_align" => draft.offset_align = Some(size(value)?).filter(|bytes| *bytes > 0),
        "allow_file_create" => draft.must_exist = !flag(value)?,
        "uri" | "libblkio_path" => draft.address = Some(given(value)?.to_owned()),
        "libblkio_driver" => draft.driver = Some(given(value)?.to_owned()),
        "direct" => draft.direct = flag(value)?,
        "buffered" => draft.direct = !flag(value)?,
        "fill_device" => draft.fills = flag(value)?,
        "invalidate" => draft.keeps_cache = !flag(value)?,
        "sqthread_poll" => draft.uring.submission_polling = flag(value)?,
        "hipri" => draft.uring.completion_polling = flag(value)?,
        "cpus_allowed" => draft.processors = processors(given(value)?).ok_or("not a list of processors")?,
        "cpus_allowed_policy" => draft.processors_split = given(value)? == "split",
        _ => return Ok(false),
    }
    Ok(true)
}

/// Sets an option of what is written and when it is durable; `false` for one that is not known.
fn set_contents(draft: &mut Draft, key: &str, value: Option<&str>) -> Result<bool, String> {
    match key {
        "fsync" => draft.flush_every[0] = Some(small(value)?).filter(|n| *n > 0),
        "fdatasync" => draft.flush_every[1] = Some(small(value)?).filter(|n| *n > 0),
        "end_fsync" | "fsync_on_close" => draft.flush_at_end |= flag(value)?,
        "sync" => {
            draft.write_sync = match given(value)? {
                "0" | "none" => WriteSync::None,
                "1" | "sync" => WriteSync::All,
                "dsync" => WriteSync::Data,
                _ => return Err("known are 0, none, 1, sync and dsync".into()),
            }
        }
        "name" => draft.name = Some(given(value)?.to_owned()),
        "do_verify" => draft.checks = flag(value)?,
        "verify" => draft.verify = !matches!(given(value)?, "0" | "null"),
        "buffer_pattern" => draft.pattern = pattern(given(value)?)?,
        "zero_buffers" => draft.pattern = if flag(value)? { vec![0] } else { Vec::new() },
        "buffer_compress_percentage" => draft.compressible_percent = percent(value)?,
        "dedupe_percentage" => draft.duplicate_percent = percent(value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Sets an option of how much is done, how fast and when; `false` for one that is not known.
fn set_ends(draft: &mut Draft, key: &str, value: Option<&str>) -> Result<bool, String> {
    match key {
        "runtime" => draft.time_ns = Some(time(value, SECOND_NS)?),
        "time_based" => draft.time_based = flag(value)?,
        "ramp_time" => draft.ramp_ns = time(value, SECOND_NS)?,
        "zonemode" => match given(value)? {
            "none" => draft.zones.0 = false,
            "strided" => draft.zones.0 = true,
            _ => return Err("only none and strided are known: zoned drives are not loaded as such".into()),
        },
        "zonesize" => draft.zones.1 = Some(size(value)?),
        "zoneskip" => draft.zones.2 = size(value)?,
        "flow" => draft.flow_weight = small(value)?,
        "flow_id" => draft.flow_id = integer(given(value)?).ok_or("not a whole number")?,
        "flow_sleep" => draft.flow_sleep_ns = time(value, MICROSECOND_NS)?,
        "startdelay" => draft.delay_ns = time(value, SECOND_NS)?,
        "io_size" => draft.io_size = Some(quantity(value, MAX_PASSES_PERCENT)?),
        "loops" => draft.loops = small(value)?,
        "number_ios" => draft.operations = Some(integer(given(value)?).ok_or("not a whole number")?),
        "rate_iops" => draft.rate_iops = numbers(given(value)?)?,
        "rate" => draft.rate_bytes = sizes(given(value)?)?,
        "rate_min" => draft.least_bytes = sizes(given(value)?)?,
        "rate_process" => match given(value)? {
            "linear" => draft.poisson = false,
            "poisson" => draft.poisson = true,
            _ => return Err("only linear and poisson are known".into()),
        },
        "io_submit_mode" => match given(value)? {
            "inline" => draft.offload = false,
            "offload" => draft.offload = true,
            _ => return Err("only inline and offload are known".into()),
        },
        "randseed" => draft.seed = Some(integer(given(value)?).ok_or("not a whole number")?),
        "stonewall" => draft.stonewall = flag(value)?,
        "wait_for" => draft.wait_for = Some(given(value)?.to_owned()),
        "exitall" => draft.exits_all = flag(value)?,
        "exit_what" => {
            draft.exit_what = match given(value)? {
                "all" => Ends::All,
                "stonewall" => Ends::Phase,
                _ => return Err("only all and stonewall are known".into()),
            }
        }
        "steadystate" => draft.steady.rule = Some(steady(given(value)?)?),
        "steadystate_duration" => draft.steady.window_ns = time(value, SECOND_NS)?,
        "steadystate_ramp_time" => draft.steady.ramp_ns = time(value, SECOND_NS)?,
        "steadystate_check_interval" => draft.steady.check_ns = Some(time(value, SECOND_NS)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// `iops:10%`, `bw_slope:1%`, `lat:5000`.
fn steady(text: &str) -> Result<(SteadyMetric, bool, f64, bool), String> {
    let (figure, limit) = text.split_once(':').ok_or("a limit is missing, such as iops:10%")?;
    let (figure, slope) = figure.strip_suffix("_slope").map_or((figure, false), |figure| (figure, true));
    let figure = match figure {
        "iops" => SteadyMetric::Iops,
        "bw" => SteadyMetric::Bandwidth,
        "lat" => SteadyMetric::Latency,
        _ => return Err("known are iops, bw, lat and these with _slope".into()),
    };
    let (number, percent) = limit.strip_suffix('%').map_or((limit, false), |number| (number, true));
    let number = number.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    Ok((figure, slope, number.ok_or("the limit is not a positive number")?, percent))
}

fn sizes(text: &str) -> Result<[Option<u64>; 3], String> {
    let parts = numbers_by_direction(text);
    let mut values = [None; 3];
    for (value, part) in values.iter_mut().zip(parts) {
        *value = part.map(|part| bytes(part).ok_or("not a size in bytes")).transpose()?;
    }
    Ok(values)
}

fn numbers(text: &str) -> Result<[Option<u64>; 3], String> {
    sizes(text).map_err(|_| "not a whole number".to_owned())
}

/// Adds files to those of the job. As in fio, a second `filename` replaces nothing, and a file that is named
/// twice is opened twice.
fn add_files(draft: &mut Draft, text: &str) -> Result<(), String> {
    for file in paths(text) {
        match &draft.filename {
            None => draft.filename = Some(file),
            Some(first) if *first == file => draft.again += 1,
            Some(first) => {
                return Err(format!(
                    "fio uses {} and {} in turn, each for its part of the size; a job has one target here, and only \
                     the first would be used: give each file a job",
                    shorten(first),
                    shorten(&file)
                ));
            }
        }
    }
    Ok(())
}

/// The paths that colons separate; `\:` is a colon.
fn paths(text: &str) -> Vec<String> {
    let plain = text.replace("\\:", "\u{1}");
    plain.split(':').filter(|path| !path.is_empty()).map(|path| path.replace('\u{1}', ":")).collect()
}

/// One path.
fn one_file(text: &str) -> Result<String, String> {
    match paths(text).as_slice() {
        [file] => Ok(file.clone()),
        _ => Err("a job has one target here; give each file a job".into()),
    }
}
