//! Loads on files beside the tools they come from: Bonnie++, Iozone, dbench. Both work in one directory,
//! in turns; what is printed is the ratio of each figure. The page cache is left as it is, as those tools
//! leave it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::pairs::{Verdict, median};
use crate::tools::virtbench;

/// Size of Bonnie++'s and Iozone's file, in MiB, and of the one written character by character.
const FILE_MIB: u64 = 512;
const CHARACTERS_MIB: u64 = 16;
/// Small files of Bonnie++, in units of 1024.
const SMALL_FILES: u64 = 8;
/// dbench's clients and seconds.
const CLIENTS: u32 = 4;
const SECONDS: u32 = 8;

/// ToolValues by their names, in units of their own.
type ToolValues = BTreeMap<String, f64>;

/// A tool and how to measure with it and with ours.
struct Tool {
    name: &'static str,
    program: &'static str,
    /// What to do if it is not there.
    mend: &'static str,
    theirs: fn(&Path) -> Result<ToolValues>,
    ours: fn(&Path) -> Result<ToolValues>,
}

const TOOLS: [Tool; 3] = [
    Tool {
        name: "Bonnie++",
        program: "bonnie++",
        mend: "apt install bonnie++",
        theirs: bonnie,
        ours: |directory| {
            let large = format!("bonnie:size={FILE_MIB}MiB,files={},chars=none", SMALL_FILES * 1024);
            let small = format!("bonnie:size={CHARACTERS_MIB}MiB,files=0,seeks=0,chars=syscall");
            let mut figures = measure(&large, directory)?;
            let characters = measure(&small, directory)?;
            figures.extend(characters.into_iter().filter(|(name, _)| name.ends_with("character")));
            Ok(figures)
        },
    },
    Tool {
        name: "Iozone",
        program: "iozone",
        mend: "it is in Debian's non-free part: add that to the sources, then apt install iozone3",
        theirs: iozone,
        ours: |directory| {
            let figures = measure(&format!("iozone:size={FILE_MIB}MiB,bs=64KiB"), directory)?;
            Ok(figures.into_iter().map(|(name, value)| (name.replace(" 64 KiB", ""), value)).collect())
        },
    },
    Tool {
        name: "dbench",
        program: "dbench",
        mend: "apt install dbench",
        theirs: dbench,
        ours: |directory| measure(&format!("dbench:threads={CLIENTS},run={SECONDS}s,ramp=2s"), directory),
    },
];

/// How far the median ratio of a figure may be from 1.
const AGREEMENT: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// Measures all of them so many times, prints the ratios and judges their medians.
pub fn compare(rounds: usize, directory: &Path) -> Result<Vec<Verdict>> {
    println!(
        "{:<44} {:>10} {:>10} {:>8} {:>15}  promise",
        "figure", "virtbench", "the tool", "ratio", "range"
    );
    let mut verdicts = Vec::new();
    for tool in &TOOLS {
        if Command::new(tool.program).arg("-h").output().is_err() {
            println!("{}: unavailable: {} is not installed; {}", tool.name, tool.program, tool.mend);
            continue;
        }
        let mut pairs: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        for round in 0..rounds {
            // Who goes first alternates, so that neither always finds the disk as the other left it.
            let (ours, theirs);
            if round % 2 == 0 {
                ours = (tool.ours)(directory)?;
                theirs = (tool.theirs)(directory)?;
            } else {
                theirs = (tool.theirs)(directory)?;
                ours = (tool.ours)(directory)?;
            }
            for (name, theirs) in theirs {
                let ours = ours.get(&name).with_context(|| format!("virtbench measured no {name}"))?;
                pairs.entry(name).or_default().push((*ours, theirs));
            }
        }
        for (name, pairs) in &pairs {
            verdicts.extend(line(&format!("{}: {name}", tool.name), pairs, rounds));
        }
    }
    Ok(verdicts)
}

/// Prints a figure's line and judges it. What a tool called too quick to be timed in some rounds it printed in its slow
/// ones only: no ratio can be judged by those.
fn line(name: &str, pairs: &[(f64, f64)], rounds: usize) -> Option<Verdict> {
    let ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours / theirs).collect();
    let (low, high) = ratios.iter().fold((f64::MAX, f64::MIN), |(l, h), r| (l.min(*r), h.max(*r)));
    let ratio = median(ratios);
    let verdict = match (pairs.len() == rounds, AGREEMENT.contains(&ratio)) {
        (false, _) => None,
        (true, true) => Some(Verdict::Kept),
        (true, false) => Some(Verdict::Broken),
    };
    let said = match verdict {
        None => format!("not judged: the tool timed it in {} of {rounds} rounds", pairs.len()),
        Some(Verdict::Kept) => format!("{}-{} kept", AGREEMENT.start(), AGREEMENT.end()),
        Some(Verdict::Broken) => format!("{}-{} BROKEN", AGREEMENT.start(), AGREEMENT.end()),
    };
    println!(
        "{name:<44} {:>10.1} {:>10.1} {ratio:>8.3} {:>15}  {said}",
        median(pairs.iter().map(|pair| pair.0).collect()),
        median(pairs.iter().map(|pair| pair.1).collect()),
        format!("{low:.2} to {high:.2}"),
    );
    verdict
}

/// Our figures: MB/s (a million bytes) where they are bytes a second, else as they are; times in ms.
fn measure(workload: &str, directory: &Path) -> Result<ToolValues> {
    let mut command = Command::new(virtbench());
    let separator = if workload.contains(':') { ',' } else { ':' };
    command.args(["workload", &format!("{workload}{separator}cache=keep,runs=1"), "--json", "--place"]);
    let json: Value = serde_json::from_str(&output(command.arg(directory))?)?;
    let metrics = json["metrics"].as_array().context("no metrics")?;
    let figure = |metric: &Value| {
        let scale = match metric["unit"].as_str() {
            Some("B/s") => 1e-6,
            Some("ns") => 1e-6,
            _ => 1.0,
        };
        Some((metric["name"].as_str()?.to_owned(), metric["mean"].as_f64()? * scale))
    };
    Ok(metrics.iter().filter_map(figure).collect())
}

/// Bonnie++'s columns, and what they are called here. A test too quick for it has no figure.
const BONNIE: [(usize, &str); 12] = [
    (9, "write-character"),
    (11, "write-block"),
    (13, "rewrite-block"),
    (15, "read-character"),
    (17, "read-block"),
    (19, "seeks"),
    (26, "create-sequential"),
    (28, "stat-sequential"),
    (30, "delete-sequential"),
    (32, "create-random"),
    (34, "stat-random"),
    (36, "delete-random"),
];

fn bonnie(directory: &Path) -> Result<ToolValues> {
    let run = |size_mib: u64, more: &[&str]| {
        let mut command = Command::new("bonnie++");
        command.args(["-r", "0", "-u", "root", "-q", "-m", "x", "-s", &format!("{size_mib}m:8k")]);
        output(command.args(more).arg("-d").arg(directory))
    };
    let large = run(FILE_MIB, &["-f", "-n", &SMALL_FILES.to_string()])?;
    let mut figures = bonnie_figures(&large);
    figures.extend(bonnie_figures(&run(CHARACTERS_MIB, &["-n", "0"])?).into_iter().filter(|(name, _)| {
        // Its blocks are too few to be timed.
        name.ends_with("character")
    }));
    Ok(figures)
}

fn bonnie_figures(csv: &str) -> ToolValues {
    let fields: Vec<&str> = csv.lines().last().unwrap_or_default().split(',').collect();
    let figure = |(column, name): &(usize, &str)| {
        let value: f64 = fields.get(*column)?.parse().ok()?;
        // Throughput is in KiB/s, everything else in operations a second.
        let scale = if *column <= 17 { 1024.0 / 1e6 } else { 1.0 };
        Some(((*name).to_owned(), value * scale))
    };
    BONNIE.iter().filter_map(figure).collect()
}

const IOZONE: [&str; 9] = [
    "write",
    "rewrite",
    "read",
    "reread",
    "random-read",
    "random-write",
    "backward-read",
    "record-rewrite",
    "strided-read",
];

fn iozone(directory: &Path) -> Result<ToolValues> {
    let file = directory.join("iozone.tmp");
    let mut command = Command::new("iozone");
    command.args(["-e", "-r", "64k", "-s", &format!("{FILE_MIB}m")]);
    for test in 0..=5 {
        command.args(["-i", &test.to_string()]);
    }
    let text = output(command.arg("-f").arg(&file))?;
    iozone_figures(&text).context("Iozone printed no line of figures")
}

fn iozone_figures(text: &str) -> Option<ToolValues> {
    let kib = (FILE_MIB * 1024).to_string();
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(&kib))?;
    let values =
        line.split_whitespace().skip(2).map(|word| word.parse::<f64>().map(|kib| kib * 1024.0 / 1e6));
    IOZONE
        .iter()
        .map(|name| (*name).to_owned())
        .zip(values)
        .map(|(name, value)| Some((name, value.ok()?)))
        .collect()
}

fn dbench(directory: &Path) -> Result<ToolValues> {
    let mut command = Command::new("dbench");
    command.args(["-c", "/usr/share/dbench/client.txt", "-t", &SECONDS.to_string(), "-D"]);
    dbench_figures(&output(command.arg(directory).arg(CLIENTS.to_string()))?)
        .context("dbench printed no throughput")
}

fn dbench_figures(text: &str) -> Option<ToolValues> {
    let words: Vec<&str> =
        text.lines().find(|line| line.starts_with("Throughput"))?.split_whitespace().collect();
    let mut figures = ToolValues::from([("throughput".to_owned(), words.get(1)?.parse().ok()?)]);
    // Mean response times of what it does most, in ms.
    let named = [("ReadX", "ReadX"), ("WriteX", "WriteX"), ("NTCreateX", "NTCreateX"), ("Flush", "Flush")];
    for (theirs, ours) in named {
        let row = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut row = row.filter(|words| words.len() == 4 && words[0] == theirs);
        if let Some(mean) = row.next().and_then(|words| words[2].parse().ok()).filter(|mean| *mean > 0.0) {
            figures.insert(format!("{ours} response"), mean);
        }
    }
    Some(figures)
}

fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    ensure!(output.status.success(), "{program} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bonnie_prints_is_read() {
        let csv = "1.98,2.00a,x,1,1,256M,,8192,5,,,1000,20,464894,23,,,+++++,+++,501.5,4,4,,,,,5071,7,+++++,+++,\
                   +++++,+++,1152,24,+++++,+++,+++++,+++,,1us,1us,,1us,1us,1ms,1ms,1us,1us,1us,1us";
        let figures = bonnie_figures(csv);
        assert_eq!(figures["write-block"], 1.024);
        assert_eq!(
            (figures["seeks"], figures["create-sequential"], figures["create-random"]),
            (501.5, 5071.0, 1152.0)
        );
        assert!(!figures.contains_key("read-block") && !figures.contains_key("write-character"));
    }

    #[test]
    fn what_iozone_prints_is_read() {
        let kib = FILE_MIB * 1024;
        let text =
            format!("  kB  reclen write\n  {kib}  64  1000 2000 3 4 5 6 7 8 9   \n\niozone test complete.\n");
        let figures = iozone_figures(&text).unwrap();
        assert_eq!((figures["write"], figures["rewrite"], figures.len()), (1.024, 2.048, 9));
        assert!(iozone_figures("nothing").is_none());
    }

    #[test]
    fn what_dbench_prints_is_read() {
        let text = " NTCreateX      20845     0.721   200.207\n ReadX          33245     0.007    38.570\n\n\
                    Throughput 79.8454 MB/sec  4 clients  4 procs  max_latency=200.215 ms\n";
        let figures = dbench_figures(text).unwrap();
        assert_eq!((figures["throughput"], figures["NTCreateX response"]), (79.8454, 0.721));
        assert_eq!(figures.len(), 3);
    }
}
