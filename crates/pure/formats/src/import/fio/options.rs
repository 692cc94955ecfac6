//! What each option of a fio job means here.

use virtbench_workload::Placement;

use super::super::{Findings, Place};
use super::draft::{Draft, Engine, Pattern};
use super::ini::Setting;
use super::values::{by_direction, bytes, integer, processors, switch, time_ns};

const SECOND_NS: u64 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1_000;

/// Options that change what is reported, prepared or logged, or that hold here anyway.
const WITHOUT_EFFECT: &[&str] = &[
    "allrandrepeat",
    "buffer_compress_chunk",
    "bwavgtime",
    "clat_percentiles",
    "clocksource",
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
    "end_fsync",
    "error_dump",
    "exitall",
    "exitall_on_error",
    "fadvise_hint",
    "fallocate",
    "file_service_type",
    "fixedbufs",
    "fsync_on_close",
    "group_reporting",
    "gtod_cpu",
    "gtod_reduce",
    "invalidate",
    "iodepth_batch",
    "iodepth_batch_complete",
    "iodepth_batch_complete_max",
    "iodepth_batch_complete_min",
    "iodepth_batch_submit",
    "iodepth_low",
    "iomem",
    "iomem_align",
    "iopsavgtime",
    "lat_percentiles",
    "log_avg_msec",
    "log_compression",
    "log_entries",
    "log_hist_coarseness",
    "log_hist_msec",
    "log_max_value",
    "log_offset",
    "log_store_compressed",
    "log_unix_epoch",
    "log_window_value",
    "mem",
    "mem_align",
    "name",
    "new_group",
    "norandommap",
    "overwrite",
    "per_job_logs",
    "percentile_list",
    "random_generator",
    "randrepeat",
    "refill_buffers",
    "registerfiles",
    "scramble_buffers",
    "significant_figures",
    "slat_percentiles",
    "softrandommap",
    "stats",
    "thread",
    "unified_rw_reporting",
    "unlink",
    "unlink_each_loop",
    "verify_dump",
    "verify_fatal",
    "verify_state_save",
    "write_bw_log",
    "write_hist_log",
    "write_iolog",
    "write_iops_log",
    "write_lat_log",
];

/// Options whose neutral value asks for nothing.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("bs_is_seq_rand", &["0"]),
    ("do_verify", &["1"]),
    ("experimental_verify", &["0"]),
    ("kb_base", &["1024"]),
    ("loops", &["1"]),
    ("nrfiles", &["1"]),
    ("offset", &["0"]),
    ("offset_increment", &["0"]),
    ("pre_read", &["0"]),
    ("rw_sequencer", &["sequential"]),
    ("startdelay", &["0"]),
    ("sync", &["0", "none"]),
    ("thinktime_blocks_type", &["complete"]),
    ("thinktime_spin", &["0"]),
    ("zero_buffers", &["0"]),
    ("zonemode", &["none"]),
];

/// The other names of some options (axboe/fio, options.c).
fn canonical(key: &str) -> &str {
    match key {
        "readwrite" => "rw",
        "blocksize" => "bs",
        "ba" => "blockalign",
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
pub fn apply(draft: &mut Draft, setting: &Setting<'_>, findings: &mut Findings) {
    let key = canonical(setting.key);
    let at = Place::line(setting.line);
    let written = || match setting.value {
        Some(value) => format!("{}={}", shorten(setting.key), shorten(value)),
        None => shorten(setting.key),
    };
    if setting.value.is_some_and(|value| value.contains("${") || value.contains('$')) {
        findings.ignore(at, format!("{}: variables are not replaced; write the value", written()));
        return;
    }
    if WITHOUT_EFFECT.contains(&key) {
        findings.leave_out(key, setting.line);
        return;
    }
    if let Some((_, neutral)) = NEUTRAL.iter().find(|(known, _)| *known == key) {
        if !setting.value.is_some_and(|value| neutral.contains(&value)) {
            findings.ignore(at, format!("{}: this engine cannot do that", written()));
        }
        return;
    }
    match set(draft, key, setting.value) {
        Ok(true) => {}
        Ok(false) => findings.ignore(at, format!("{}: this option has no meaning here", written())),
        Err(why) => findings.ignore(at, format!("{}: {why}", written())),
    }
}

/// A value fit for a message.
fn shorten(text: &str) -> String {
    if text.chars().count() <= 60 {
        text.to_owned()
    } else {
        text.chars().take(57).chain("...".chars()).collect()
    }
}

/// Sets one option; `false` for one that is not known.
fn set(draft: &mut Draft, key: &str, value: Option<&str>) -> Result<bool, String> {
    let text = || value.filter(|text| !text.is_empty()).ok_or("a value is missing");
    let flag = || switch(value).ok_or("a switch is 0 or 1");
    let whole = |text: &str| integer(text).ok_or("not a whole number");
    let small = |text: &str| integer(text).and_then(|n| u32::try_from(n).ok()).ok_or("not a number in range");
    let size =
        |text: &str| bytes(text).ok_or("not a size in bytes (a share of the target cannot be said here)");
    let percent = |text: &str| {
        integer(text.trim_end_matches('%')).filter(|n| *n <= 100).ok_or("a percentage lies between 0 and 100")
    };
    #[allow(clippy::cast_precision_loss)]
    match key {
        "rw" => draft.pattern = Pattern::read(text()?)?,
        "rwmixread" => draft.read_percent = percent(text()?)? as f64,
        "rwmixwrite" => draft.read_percent = 100.0 - percent(text()?)? as f64,
        "bs" => draft.set_block_sizes(sizes(text()?)?),
        "bssplit" => draft.set_split(text()?)?,
        "blockalign" => draft.align = sizes(text()?)?[0],
        "iodepth" => draft.depth = small(text()?)?,
        "numjobs" => draft.workers = small(text()?)?,
        "size" => draft.size_bytes = Some(size(text()?)?),
        "filesize" => draft.file_bytes = Some(size(text()?)?),
        "filename" => draft.filename = Some(one_file(text()?)?),
        "directory" => draft.directory = Some(one_file(text()?)?),
        "uri" | "libblkio_path" => draft.address = Some(text()?.to_owned()),
        "libblkio_driver" => draft.driver = Some(text()?.to_owned()),
        "runtime" => draft.time_ns = Some(time_ns(text()?, SECOND_NS).ok_or("not a time")?),
        "time_based" => draft.time_based = flag()?,
        "ramp_time" => draft.ramp_ns = time_ns(text()?, SECOND_NS).ok_or("not a time")?,
        "thinktime" => draft.think_ns = time_ns(text()?, MICROSECOND_NS).ok_or("not a time")?,
        "thinktime_blocks" => draft.think_blocks = small(text()?)?,
        "rate_iops" => draft.rate_iops = numbers(text()?)?,
        "rate" => draft.rate_bytes = sizes(text()?)?,
        "rate_process" => match text()? {
            "linear" => draft.poisson = false,
            "poisson" => draft.poisson = true,
            _ => return Err("only linear and poisson are known".into()),
        },
        "percentage_random" => {
            let parts = by_direction(text()?).ok_or("more than three values")?;
            let [read, write, _] = parts;
            if read != write {
                return Err("one percentage must hold for reads and writes".into());
            }
            draft.random_percent = percent(read.unwrap_or("100"))? as f64;
        }
        "random_distribution" => draft.placement = placement(text()?)?,
        "direct" => draft.direct = flag()?,
        "buffered" => draft.direct = !flag()?,
        "ioengine" => draft.engine = Engine::read(text()?)?,
        "fsync" | "fdatasync" => draft.flush_every = Some(small(text()?)?).filter(|n| *n > 0),
        "verify" => draft.verify = !matches!(text()?, "0" | "null"),
        "randseed" => draft.seed = Some(whole(text()?)?),
        "stonewall" => draft.stonewall = flag()?,
        "sqthread_poll" => draft.uring.submission_polling = flag()?,
        "hipri" => draft.uring.completion_polling = flag()?,
        "cpus_allowed" => draft.processors = processors(text()?).ok_or("not a list of processors")?,
        "cpus_allowed_policy" => draft.processors_split = text()? == "split",
        "buffer_compress_percentage" => draft.compressible_percent = percent(text()?)?,
        "dedupe_percentage" => draft.duplicate_percent = percent(text()?)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn sizes(text: &str) -> Result<[Option<u64>; 3], String> {
    let parts = by_direction(text).ok_or("more than three values")?;
    let mut values = [None; 3];
    for (value, part) in values.iter_mut().zip(parts) {
        *value = part.map(|part| bytes(part).ok_or("not a size in bytes")).transpose()?;
    }
    Ok(values)
}

fn numbers(text: &str) -> Result<[Option<u64>; 3], String> {
    sizes(text).map_err(|_| "not a whole number".to_owned())
}

/// One path; several are separated by colons, and `\:` is a colon.
fn one_file(text: &str) -> Result<String, String> {
    let plain = text.replace("\\:", "\u{1}");
    if plain.contains(':') {
        return Err("a job has one target here; give each file a job".into());
    }
    Ok(plain.replace('\u{1}', ":"))
}

fn placement(text: &str) -> Result<Placement, String> {
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
    match kind {
        "random" => Ok(Placement::Uniform),
        "zipf" => {
            let theta = number(1.1)?;
            let fits = theta > 0.0 && theta < 5.0 && (theta - 1.0).abs() > f64::EPSILON;
            fits.then_some(Placement::Zipf { theta })
                .ok_or_else(|| "theta lies in 0 to 5 and is not 1".into())
        }
        "pareto" => {
            let h = number(0.2)?;
            let fits = h > 0.0 && h < 1.0;
            fits.then_some(Placement::Pareto { h }).ok_or_else(|| "the power lies between 0 and 1".into())
        }
        "zoned" => zoned(text.trim_start_matches("zoned:")),
        _ => Err("only random, zipf, pareto and zoned with two zones are known".into()),
    }
}

/// `90/10:10/90`: the first zone is hot, the second is all the rest.
fn zoned(text: &str) -> Result<Placement, String> {
    let zones: Option<Vec<(u64, u64)>> = text
        .split(':')
        .take(3)
        .map(|zone| {
            let (access, data) = zone.split_once('/')?;
            Some((integer(access)?, integer(data)?))
        })
        .collect();
    #[allow(clippy::cast_precision_loss)]
    match zones.as_deref() {
        Some([(access, data), (other_access, other_data)])
            if access.checked_add(*other_access) == Some(100)
                && data.checked_add(*other_data) == Some(100)
                && (1..100).contains(data) =>
        {
            Ok(Placement::Hot { data_percent: *data as f64, access_percent: *access as f64 })
        }
        _ => Err("only two zones that make 100 % each can be placed, such as zoned:90/10:10/90".into()),
    }
}
