//! diskspd's XML of results (microsoft/diskspd, `XmlResultParser` and, of the profile within, `diskspd.xsd`): what VMFleet and others read.
//!
//! diskspd tells results by thread. Here one thread holds what all did, and `ThreadCount` says how many there were: who adds threads up gets
//! the same. What was not measured has no element, as where diskspd does not measure it: processors, where it was not sampled.

use std::io;

use hdrhistogram::Histogram;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use virtbench_record::{HostUse, LoadOutcome};
use virtbench_workload::WriteSync;

use super::{ExportError, JobResult, Moment, histogram};

type Out = Writer<Vec<u8>>;

/// Percentiles that diskspd tells besides 0, 1 to 99 and 100.
const NINES: [&str; 7] = ["99.9", "99.99", "99.999", "99.9999", "99.99999", "99.999999", "99.9999999"];

/// The most processors that a group of Windows has.
const PROCESSORS_OF_A_GROUP: usize = 64;

/// Writes jobs as time spans of one run.
///
/// # Errors
/// A stored histogram is damaged.
pub fn diskspd_xml(version: &str, jobs: &[JobResult<'_>]) -> Result<String, ExportError> {
    let histograms: Vec<[Histogram<u64>; 3]> = jobs
        .iter()
        .map(|job| {
            let outcome = job.outcome;
            let [read, write] = [histogram(&outcome.read)?, histogram(&outcome.write)?];
            // Not the stored total, of which trims are a part.
            let mut total = read.clone();
            total.add(&write).map_err(|error| ExportError::Log(error.to_string()))?;
            Ok([read, write, total])
        })
        .collect::<Result<_, ExportError>>()?;
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    results(&mut out, version, jobs, &histograms).map_err(|error| ExportError::Log(error.to_string()))?;
    Ok(String::from_utf8_lossy(&out.into_inner()).into_owned() + "\n")
}

fn results(
    out: &mut Out,
    version: &str,
    jobs: &[JobResult<'_>],
    histograms: &[[Histogram<u64>; 3]],
) -> io::Result<()> {
    out.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
    within(out, "Results", |out| {
        within(out, "System", |out| system(out, version, jobs))?;
        within(out, "Profile", |out| {
            text(out, "Progress", 0)?;
            text(out, "ResultFormat", "xml")?;
            text(out, "Verbose", false)?;
            within(out, "TimeSpans", |out| jobs.iter().try_for_each(|job| profile(out, job.outcome)))
        })?;
        jobs.iter()
            .zip(histograms)
            .try_for_each(|(job, histograms)| within(out, "TimeSpan", |out| time_span(out, job, histograms)))
    })
}

fn system(out: &mut Out, version: &str, jobs: &[JobResult<'_>]) -> io::Result<()> {
    within(out, "Tool", |out| {
        text(out, "Version", format!("virtbench {version}"))?;
        text(out, "VersionDate", "")
    })?;
    let started_ns = jobs.iter().map(|job| job.started_unix_ns).min().unwrap_or(0);
    let Moment { year, month, day, hour, minute, second, .. } = Moment::from_unix(started_ns / 1_000_000_000);
    text(out, "RunTime", format!("{year}/{month:02}/{day:02} {hour:02}:{minute:02}:{second:02} UTC"))?;
    let Some(host) = jobs.iter().find_map(|job| job.host) else { return Ok(()) };
    within(out, "ProcessorTopology", |out| {
        let processors = host.processors.to_string();
        out.create_element("Group")
            .with_attributes([
                ("Group", "0"),
                ("MaximumProcessors", processors.as_str()),
                ("ActiveProcessors", processors.as_str()),
            ])
            .write_empty()
            .map(drop)
    })
}

/// What was asked for, in the words of diskspd's profiles.
fn profile(out: &mut Out, outcome: &LoadOutcome) -> io::Result<()> {
    let spec = &outcome.spec;
    within(out, "TimeSpan", |out| {
        text(out, "CompletionRoutines", false)?;
        text(out, "MeasureLatency", true)?;
        text(out, "CalculateIopsStdDev", true)?;
        text(out, "DisableAffinity", spec.processors.is_empty())?;
        text(out, "Duration", spec.time_ns / 1_000_000_000)?;
        text(out, "Warmup", spec.ramp_ns / 1_000_000_000)?;
        text(out, "Cooldown", 0)?;
        // A seed there has 32 bits.
        text(out, "RandSeed", spec.seed & u64::from(u32::MAX))?;
        text(out, "IoBucketDuration", spec.interval_ns / 1_000_000)?;
        within(out, "Targets", |out| {
            spec.access.lines.iter().try_for_each(|line| {
                within(out, "Target", |out| {
                    text(out, "Path", &outcome.target.path)?;
                    text(out, "BlockSize", line.size_bytes)?;
                    text(out, "BaseFileOffset", spec.start_bytes)?;
                    text(out, "DisableOSCache", outcome.target.direct)?;
                    text(out, "WriteThrough", spec.write_sync != WriteSync::None)?;
                    text(out, "FileSize", outcome.target.size_bytes)?;
                    text(out, "MaxFileSize", spec.region_bytes)?;
                    text(out, "WriteRatio", (100.0 - line.read_percent).round())?;
                    if line.random_percent > 0.0 {
                        text(out, "Random", line.align_bytes)?;
                    }
                    text(out, "ThreadsPerFile", spec.workers)?;
                    text(out, "RequestCount", spec.outstanding)
                })
            })
        })
    })
}

fn time_span(out: &mut Out, job: &JobResult<'_>, histograms: &[Histogram<u64>; 3]) -> io::Result<()> {
    let outcome = job.outcome;
    let workers = outcome.spec.workers;
    text(out, "TestTimeSeconds", format!("{:.2}", outcome.elapsed_ns as f64 / 1e9))?;
    text(out, "ThreadCount", workers)?;
    // Of all threads together where they share requests; here each has its own, as the profile says.
    text(out, "RequestCount", 0)?;
    if let Some(host) = job.host {
        text(out, "ProcCount", host.processors)?;
        within(out, "CpuUtilization", |out| processors(out, host))?;
    }
    latencies(out, histograms)?;
    within(out, "Iops", |out| series(out, outcome))?;
    within(out, "Thread", |out| {
        text(out, "Id", 0)?;
        within(out, "Target", |out| target(out, outcome, histograms))
    })
}

/// Each processor's use, where user and system are told apart, as readers refuse one without the other; and their mean.
fn processors(out: &mut Out, host: &HostUse) -> io::Result<()> {
    for (id, (used, user)) in host.each_percent.iter().zip(&host.each_user_percent).enumerate() {
        within(out, "CPU", |out| {
            text(out, "Group", id / PROCESSORS_OF_A_GROUP)?;
            text(out, "Id", id % PROCESSORS_OF_A_GROUP)?;
            shares(out, *used, *user)
        })?;
    }
    let mean = |percent: f64| percent / f64::from(host.processors.max(1));
    within(out, "Average", |out| shares(out, mean(host.cpu_percent), mean(host.user_percent)))
}

/// What was used and what of it in user mode, in percent of one processor.
fn shares(out: &mut Out, used: f64, user: f64) -> io::Result<()> {
    text(out, "UsagePercent", format!("{used:.2}"))?;
    text(out, "UserPercent", format!("{user:.2}"))?;
    text(out, "KernelPercent", format!("{:.2}", (used - user).max(0.0)))?;
    text(out, "IdlePercent", format!("{:.2}", (100.0 - used).max(0.0)))
}

fn latencies(out: &mut Out, histograms: &[Histogram<u64>; 3]) -> io::Result<()> {
    let names = ["Read", "Write", "Total"];
    let buckets: Vec<(String, String)> = names
        .iter()
        .zip(histograms)
        .map(|(name, one)| (format!("{name}HistoBuckets"), one.iter_recorded().count().to_string()))
        .collect();
    let attributes = buckets.iter().map(|(name, count)| (name.as_str(), count.as_str()));
    out.create_element("Latency").with_attributes(attributes).write_inner_content(|out| {
        for ((name, deviation), one) in
            names.iter().zip(["ReadLatencyStdev", "WriteLatencyStdev", "LatencyStdev"]).zip(histograms)
        {
            if !one.is_empty() {
                text(out, &format!("Average{name}Milliseconds"), ms(one.mean()))?;
                text(out, deviation, ms(one.stdev()))?;
            }
        }
        let whole = (0..=99).map(|percent: u32| percent.to_string());
        let all = whole.chain(NINES.map(str::to_owned)).chain(["100".to_owned()]);
        all.into_iter().try_for_each(|percentile| {
            within(out, "Bucket", |out| {
                text(out, "Percentile", &percentile)?;
                for (name, one) in names.iter().zip(histograms).filter(|(_, one)| !one.is_empty()) {
                    let value = match percentile.as_str() {
                        "0" => one.min(),
                        "100" => one.max(),
                        other => one.value_at_percentile(other.parse().map_err(io::Error::other)?),
                    };
                    text(out, &format!("{name}Milliseconds"), ms(value as f64))?;
                }
                Ok(())
            })
        })
    })?;
    Ok(())
}

/// The series, whose intervals do not tell reads from writes.
fn series(out: &mut Out, outcome: &LoadOutcome) -> io::Result<()> {
    let rate = |operations: u64, length_ns: u64| operations as f64 / (length_ns.max(1) as f64 / 1e9);
    let rates: Vec<f64> =
        outcome.intervals.iter().map(|interval| rate(interval.operations, interval.length_ns)).collect();
    if !rates.is_empty() {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
        text(out, "IopsStdDev", format!("{:.3}", variance.sqrt()))?;
    }
    for (interval, rate) in outcome.intervals.iter().zip(&rates) {
        let end_ms = ((interval.start_ns + interval.length_ns) / 1_000_000).to_string();
        let rate = format!("{rate:.0}");
        out.create_element("Bucket")
            .with_attributes([("SampleMillisecond", end_ms.as_str()), ("Total", rate.as_str())])
            .write_empty()?;
    }
    Ok(())
}

fn target(out: &mut Out, outcome: &LoadOutcome, histograms: &[Histogram<u64>; 3]) -> io::Result<()> {
    let (read, write) = (&outcome.read, &outcome.write);
    text(out, "Path", &outcome.target.path)?;
    text(out, "BytesCount", read.bytes + write.bytes)?;
    text(out, "FileSize", outcome.target.size_bytes)?;
    text(out, "IOCount", read.operations + write.operations)?;
    text(out, "ReadBytes", read.bytes)?;
    text(out, "ReadCount", read.operations)?;
    text(out, "WriteBytes", write.bytes)?;
    text(out, "WriteCount", write.operations)?;
    let names = [
        ("AverageReadLatencyMilliseconds", "ReadLatencyStdev"),
        ("AverageWriteLatencyMilliseconds", "WriteLatencyStdev"),
        ("AverageLatencyMilliseconds", "LatencyStdev"),
    ];
    for ((mean, deviation), one) in names.into_iter().zip(histograms).filter(|(_, one)| !one.is_empty()) {
        text(out, mean, ms(one.mean()))?;
        text(out, deviation, ms(one.stdev()))?;
    }
    Ok(())
}

/// Nanoseconds as milliseconds with three places.
fn ms(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

fn within(out: &mut Out, name: &str, content: impl FnOnce(&mut Out) -> io::Result<()>) -> io::Result<()> {
    out.create_element(name).write_inner_content(content).map(drop)
}

fn text(out: &mut Out, name: &str, value: impl ToString) -> io::Result<()> {
    out.create_element(name).write_text_content(BytesText::new(&value.to_string())).map(drop)
}

#[cfg(test)]
mod tests {
    use roxmltree::{Document, Node};
    use virtbench_record::HostUse;

    use super::*;
    use crate::results::fixture::outcome;

    fn at<'a>(node: Node<'a, 'a>, path: &str) -> Vec<Node<'a, 'a>> {
        path.split('/').fold(vec![node], |nodes, name| {
            nodes
                .into_iter()
                .flat_map(|node| node.children().filter(|one| one.has_tag_name(name)).collect::<Vec<_>>())
                .collect()
        })
    }

    /// A reader as VMFleet's: it adds threads and targets up, and takes percentiles by their names.
    #[test]
    fn what_others_read_of_diskspds_results_is_there() {
        let mut measured = outcome(100, 50);
        measured.target.path = "C:\\a & <b>.dat".into();
        let host = HostUse {
            cpu_percent: 150.0,
            user_percent: 100.0,
            system_percent: 50.0,
            processors: 2,
            each_percent: vec![100.0, 50.0],
            each_user_percent: vec![80.0, 20.0],
            ..HostUse::default()
        };
        let job = JobResult {
            name: "job",
            outcome: &measured,
            host: Some(&host),
            started_unix_ns: 1_764_000_000_000_000_000,
        };
        let text = diskspd_xml("1", &[job, job]).unwrap();
        let document = Document::parse(&text).unwrap();
        let root = document.root_element();
        let words = |path: &str| -> Vec<String> {
            at(root, path).iter().map(|node| node.text().unwrap_or_default().to_owned()).collect()
        };
        let sum = |path: &str| words(path).iter().map(|word| word.parse::<u64>().unwrap()).sum::<u64>();
        assert_eq!(root.tag_name().name(), "Results");
        assert_eq!((at(root, "Profile/TimeSpans/TimeSpan").len(), at(root, "TimeSpan").len()), (2, 2));
        assert_eq!(sum("TimeSpan/Thread/Target/IOCount"), 300);
        assert_eq!(sum("TimeSpan/Thread/Target/ReadBytes"), 200 * 4096);
        assert_eq!(words("TimeSpan/Thread/Target/Path")[0], "C:\\a & <b>.dat");
        assert_eq!(words("TimeSpan/CpuUtilization/Average/UsagePercent"), ["75.00", "75.00"]);
        assert_eq!(words("TimeSpan/CpuUtilization/CPU/UsagePercent")[..2], ["100.00", "50.00"]);
        assert_eq!(words("TimeSpan/CpuUtilization/CPU/KernelPercent")[..2], ["20.00", "30.00"]);
        assert_eq!(words("Profile/TimeSpans/TimeSpan/Targets/Target/WriteRatio"), ["30", "30"]);
        let median = at(root, "TimeSpan/Latency/Bucket").into_iter().find(|bucket| {
            bucket.children().any(|one| one.has_tag_name("Percentile") && one.text() == Some("50"))
        });
        let median = at(median.unwrap(), "ReadMilliseconds")[0].text().unwrap();
        assert_eq!(median, "0.050");
        assert_eq!(at(root, "TimeSpan/Latency/Bucket").len(), 2 * 108);
        assert_eq!(at(root, "TimeSpan/Iops/Bucket").len(), 4);
    }

    #[test]
    fn what_was_not_measured_has_no_element() {
        let measured = outcome(10, 0);
        let job = JobResult { name: "job", outcome: &measured, host: None, started_unix_ns: 0 };
        let text = diskspd_xml("1", &[job]).unwrap();
        assert!(!text.contains("CpuUtilization") && !text.contains("WriteMilliseconds"), "{text}");
    }

    #[test]
    fn the_profile_in_it_is_read_as_one_of_diskspd() {
        let measured = outcome(10, 0);
        let job = JobResult { name: "job", outcome: &measured, host: None, started_unix_ns: 0 };
        let text = diskspd_xml("1", &[job]).unwrap();
        let document = Document::parse(&text).unwrap();
        let profile = at(document.root_element(), "Profile")[0];
        let bytes = text[profile.range()].as_bytes();
        let imported = crate::import::import(bytes, Some(crate::import::Format::Diskspd), false);
        assert!(imported.is_ok(), "{imported:?}");
    }
}
