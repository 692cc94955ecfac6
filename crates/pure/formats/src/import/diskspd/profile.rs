//! XML profiles of diskspd (its `XmlProfileParser/diskspd.xsd`): each element says what an option of the command line says.

use roxmltree::{Document, Node, ParsingOptions};

use super::super::{Findings, ImportError, ImportedJob, Location, MAX_JOBS};
use super::options;
use super::options::Command;

/// Elements of a document: no profile has as many.
const MOST_NODES: u32 = 100_000;

/// Elements of a time span and of a target with the options that say the same of all targets or of one.
const OPTIONS: [(&str, &str); 23] = [
    ("Duration", "d"),
    ("Warmup", "W"),
    ("RandSeed", "z"),
    ("ThreadCount", "F"),
    ("IoBucketDuration", "D"),
    ("RequestCount", "o"),
    ("ThreadsPerFile", "t"),
    ("WriteRatio", "w"),
    ("Random", "r"),
    ("RandomRatio", "rs"),
    ("StrideSize", "s"),
    ("BaseFileOffset", "B"),
    ("BurstSize", "i"),
    ("ThinkTime", "j"),
    ("FileSize", "c"),
    ("MaxFileSize", "f"),
    ("ThreadStride", "T"),
    ("InterlockedSequential", "si"),
    ("ParallelAsyncIO", "p"),
    ("DisableOSCache", "Su"),
    ("WriteThrough", "Sw"),
    ("DisableAllCache", "Sh"),
    ("DisableLocalCache", "Sr"),
];
/// Elements whose value is yes or no: the option has none.
const SWITCHES: [&str; 6] = [
    "InterlockedSequential",
    "ParallelAsyncIO",
    "DisableOSCache",
    "WriteThrough",
    "DisableAllCache",
    "DisableLocalCache",
];
/// What changes what is reported, or how Windows treats a file.
const WITHOUT_EFFECT: [&str; 13] = [
    "CalculateIopsStdDev",
    "CompletionRoutines",
    "Cooldown",
    "DisableAffinity",
    "GroupAffinity",
    "IOPriority",
    "MeasureLatency",
    "RandomAccess",
    "SequentialScan",
    "TemporaryFile",
    "UseLargePages",
    "Weight",
    "Profile",
];

/// Reads every target of every time span: the targets of one at the same time, the time spans one after another.
pub fn read(text: &str, findings: &mut Findings) -> Result<Vec<ImportedJob>, ImportError> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES };
    let document = Document::parse_with_options(text, options).map_err(|error| ImportError::Syntax {
        at: Location::line(usize::try_from(error.pos().row).unwrap_or(usize::MAX)),
        why: error.to_string(),
    })?;
    let mut jobs = Vec::new();
    let spans = document.descendants().filter(|node| node.has_tag_name_anywhere("TimeSpan"));
    // The results of a run repeat their profile, and what was measured in further time spans.
    let spans = spans.filter(|span| span.ancestors().any(|above| above.has_tag_name_anywhere("TimeSpans")));
    for (group, span) in (0..).zip(spans) {
        let targets: Vec<Node<'_, '_>> =
            span.descendants().filter(|node| node.has_tag_name_anywhere("Target")).collect();
        let several = targets.len();
        for target in targets {
            let mut command = Command::default();
            block_size(&mut command, target)?;
            let of_span = span.children().filter(|node| !node.has_tag_name_anywhere("Targets"));
            for node in of_span.chain(target.children()).filter(Node::is_element) {
                element(&mut command, node, findings)?;
            }
            if several > 1 && command.threads_total.is_some() {
                findings.note("ThreadCount: threads that go round all targets become threads of each target");
            }
            jobs.extend(command.finish(line(target), group, findings));
            if jobs.len() > MAX_JOBS {
                let at = Location::line(line(target));
                return Err(ImportError::TooMany { at, what: "jobs", most: MAX_JOBS });
            }
        }
    }
    Ok(jobs)
}

/// Names are in diskspd's own space in some files, and in none in others.
trait Named {
    fn has_tag_name_anywhere(&self, name: &str) -> bool;
}

impl Named for Node<'_, '_> {
    fn has_tag_name_anywhere(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

fn line(node: Node<'_, '_>) -> usize {
    usize::try_from(node.document().text_pos_at(node.range().start).row).unwrap_or(usize::MAX)
}

fn text<'a>(node: Node<'a, '_>) -> &'a str {
    node.text().unwrap_or_default().trim()
}

/// The unit of other sizes, so it comes first.
fn block_size(command: &mut Command, target: Node<'_, '_>) -> Result<(), ImportError> {
    let block = target.children().find(|node| node.has_tag_name_anywhere("BlockSize"));
    block.map_or(Ok(()), |node| options::block_size(command, text(node), Location::line(line(node))))
}

fn element(command: &mut Command, node: Node<'_, '_>, findings: &mut Findings) -> Result<(), ImportError> {
    let (name, value, at) = (node.tag_name().name(), text(node), Location::line(line(node)));
    let mut apply = |option: &str| options::apply(command, option, at, findings);
    match name {
        "Path" => command.targets.push(value.to_owned()),
        "BlockSize" => {}
        // What was measured of a time span, where a file has results.
        "Throughput" if value == "0" => {}
        "Throughput" => {
            let is_rate = node.attribute("unit").is_some_and(|unit| unit.eq_ignore_ascii_case("IOPS"));
            apply(&format!("g{value}{}", if is_rate { "i" } else { "" }))?;
        }
        "Affinity" => affinity(command, node),
        "WriteBufferContent" => content(command, node, findings),
        "Distribution" => distribution(command, node, findings)?,
        _ if SWITCHES.contains(&name) && value != "true" => {}
        _ => match OPTIONS.iter().find(|(element, _)| *element == name) {
            Some((_, option)) if SWITCHES.contains(&name) => apply(option)?,
            // What diskspd writes for nothing.
            Some((_, option)) if value == "0" && !matches!(*option, "w" | "W" | "z" | "B") => {}
            Some((_, option)) => apply(&format!("{option}{value}"))?,
            None if WITHOUT_EFFECT.contains(&name) => findings.leave_out(name, at.line),
            None => findings.ignore(at, format!("<{name:.40}>: nothing here does that")),
        },
    }
    Ok(())
}

/// Processors that threads are held to; groups of them are Windows's.
fn affinity(command: &mut Command, node: Node<'_, '_>) {
    let number = |node: Node<'_, '_>| match node.attribute("Processor") {
        Some(number) => number.parse::<u32>().ok(),
        None => text(node).parse().ok(),
    };
    command.processors.extend(node.children().filter(Node::is_element).filter_map(number));
}

fn content(command: &mut Command, node: Node<'_, '_>, findings: &mut Findings) {
    for part in node.children().filter(Node::is_element) {
        match (part.tag_name().name(), text(part)) {
            ("Pattern", "zero") => command.zeros = true,
            ("Pattern", "random") => command.random_content = true,
            ("Pattern", "sequential") => {}
            ("RandomDataSource", _) => {
                command.random_content = true;
                if let Some(file) = part.children().find(|node| node.has_tag_name_anywhere("FilePath")) {
                    let at = Location::line(line(file));
                    findings.ignore(at, "<FilePath>: no file can be the source of what is written");
                }
            }
            (name, value) => {
                findings.ignore(
                    Location::line(line(part)),
                    format!("<{name:.40}> {value:.40}: nothing here does that"),
                );
            }
        }
    }
}

/// Shares of operations on shares of the target.
fn distribution(
    command: &mut Command,
    node: Node<'_, '_>,
    findings: &mut Findings,
) -> Result<(), ImportError> {
    let at = Location::line(line(node));
    let Some(percent) = node.children().find(|node| node.has_tag_name_anywhere("Percent")) else {
        findings.ignore(at, "<Distribution>: known are shares of the target in percent");
        return Ok(());
    };
    let part = |range: Node<'_, '_>| format!("{}/{}", range.attribute("IO").unwrap_or_default(), text(range));
    let parts: Vec<String> = percent.children().filter(Node::is_element).map(part).collect();
    options::apply(command, &format!("rdpct{}", parts.join(":")), at, findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = include_str!("../../../tests/examples/fleet.xml");

    fn jobs(text: &str) -> (Vec<ImportedJob>, String) {
        let mut findings = Findings::default();
        let jobs = read(text, &mut findings).unwrap_or_else(|error| panic!("{error}"));
        let (notes, ignored, _) = findings.into_parts();
        let ignored: Vec<String> = ignored.iter().map(ToString::to_string).collect();
        (jobs, [notes, ignored].concat().join("\n"))
    }

    #[test]
    fn a_profile_says_what_a_command_line_says() {
        let (of_profile, notes) = jobs(PROFILE);
        let mut findings = Findings::default();
        let line = "diskspd -d60 -W10 -z7 -t2 -o16 -b8K -r4K -w30 -Su -Sw -g500i -c1073741824 -rdpct95/5:4/10:1/85 a.dat\n";
        let of_line = super::super::read(line, &mut findings).unwrap();
        assert_eq!(of_profile.len(), 2);
        assert_eq!(of_profile[0].load, of_line[0].load, "{notes}");
        assert_eq!((of_profile[0].size_bytes, of_profile[0].group), (Some(1 << 30), 0));
        // The second time span, in sequence.
        let second = &of_profile[1];
        assert_eq!((second.group, second.load.access.lines[0].random_percent), (1, 0.0));
        assert!(notes.contains("MeasureLatency"), "{notes}");
    }

    #[test]
    fn what_is_no_profile_or_cannot_be_done_is_named_with_its_line() {
        let mut findings = Findings::default();
        let error = read("<Profile>\n<TimeSpans>\n", &mut findings).unwrap_err().to_string();
        assert!(error.starts_with("line ") && error.contains("never closed"), "{error}");
        let odd = PROFILE.replace("<WriteRatio>30</WriteRatio>", "<WriteRatio>130</WriteRatio>");
        assert!(
            read(&odd, &mut Findings::default()).unwrap_err().to_string().contains("-w takes a percentage")
        );
        let (_, notes) = jobs(&PROFILE.replace("<WriteRatio>30</WriteRatio>", "<Sorcery>1</Sorcery>"));
        assert!(notes.contains("<Sorcery>: nothing here does that"), "{notes}");
        assert!(read("<!DOCTYPE a [<!ENTITY b \"b\">]><a>&b;</a>", &mut Findings::default()).is_err());
    }
}
