//! Studies of machines with Windows, for which Wine stands, and loads that are described in files.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

use serde_json::Value;
use virtbench_lab::{Environment, LabError, Machine, Ssh, SshAddress, TimeLimits, measure};
use virtbench_proxmox::LocalProxmox;
use virtbench_record::WorkloadOutcome;
use virtbench_study::read_workload;

use crate::operations_proxmox::with_template;
use crate::support::run_folder::{records, run_json};
use crate::support::windows::{Shell, Windows};
use crate::support::{Finished, folder, run, virtbench, wait_for};

/// Waits until nothing is left of a run.
fn is_tidied(machine: &Windows) {
    wait_for("the agent's file to be removed", || machine.left_at_home().is_empty().then_some(()));
    wait_for("the work folder to be emptied", || machine.names("bench").is_empty().then_some(()));
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn applied(machine: &Windows, spec: &str, more: &[&str]) -> Finished {
    let far = format!("far={}", machine.address("/C:/bench"));
    run(&[&["load", "--environment", &far, "--spec", spec, "--json"], more].concat())
}

const FIO: &str = "[global]\nioengine=windowsaio\ndirect=1\nthread\ntime_based\nruntime=200ms\nfilename=C\\:\\\\x.dat\nsize=4m\n\
    [reads]\nrw=randread\nbs=4k\niodepth=8\n[writes]\nstonewall\nrw=write\nbs=8k\n";

const DISKSPD: &str = "<Profile><TimeSpans>\
    <TimeSpan><Duration>1</Duration><Warmup>0</Warmup><Targets><Target><Path>C:\\a.dat</Path><BlockSize>4096</BlockSize>\
    <Random>4096</Random><RequestCount>4</RequestCount><DisableOSCache>true</DisableOSCache><WriteRatio>30</WriteRatio>\
    <FileSize>4194304</FileSize></Target></Targets></TimeSpan>\
    <TimeSpan><Duration>1</Duration><Warmup>0</Warmup><Targets><Target><Path>C:\\b.dat</Path><BlockSize>65536</BlockSize>\
    <DisableOSCache>true</DisableOSCache><WriteRatio>0</WriteRatio><FileSize>2097152</FileSize></Target></Targets></TimeSpan>\
    </TimeSpans></Profile>";

/// Before, within and after the workers of an `.icf`.
const ICF: [&str; 3] = [
    "Version 1.1.0\n'TEST SETUP ====\n'Run Time\n'\thours      minutes    seconds\n\t0          0          1\n\
    'Ramp Up Time (s)\n\t0\n'END test setup\n'ACCESS SPECIFICATIONS ====\n'Access specification name,default assignment\n\thalf,NONE\n\
    'size,% of size,% reads,% random,delay,burst,align,reply\n\t4096,100,50,100,0,1,4096,0\n'END access specifications\n\
    'MANAGER LIST ====\n'Manager ID, manager name\n\t1,BOX\n'Manager network address\n\t\n",
    "'Worker\n\tWorker\n'Worker type\n\tDISK\n\
    'Default target settings for worker\n\
    'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value\n\
    \t4,DISABLED,1,DISABLED,0\n'Disk maximum size,starting sector,Data pattern\n\t8192,0,2\n\
    'End default target settings for worker\n'Assigned access specs\n\thalf\n'End assigned access specs\n'Target assignments\n\
    'Target\n\tC:\n'Target type\n\tDISK\n'End target\n'End target assignments\n'End worker\n",
    "'End manager\n'END manager list\n\
    Version 1.1.0\n",
];

#[test]
fn jobs_that_files_describe_are_applied_on_windows_one_after_another() {
    let (machine, here) = (Windows::start(Shell::Cmd), folder());
    let here = here.path();
    let exported = here.join("results.xml");
    let export = format!("diskspd={}", exported.display());
    let fio = write(here, "jobs.fio", FIO);
    let done = applied(&machine, &fio, &["--export", &export]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let jobs = json["jobs"].as_array().unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job["job"].as_str().unwrap()).collect();
    assert_eq!(names, ["far/reads", "far/writes"], "{json}");
    let operations = |job: &Value, side: &str| job[side]["operations"].as_u64().unwrap();
    assert!(operations(&jobs[0], "read") > 0 && operations(&jobs[0], "write") == 0, "{json}");
    assert!(operations(&jobs[1], "write") > 0 && operations(&jobs[1], "read") == 0, "{json}");
    assert_eq!(jobs[0]["spec"]["region_bytes"], 4 << 20, "{json}");
    let notes = json["notes"].to_string();
    assert!(notes.contains("on a test file of 4 MiB in far,"), "{json}");
    let text = fs::read_to_string(&exported).unwrap();
    let results = text.split_once("</Profile>").unwrap().1;
    assert_eq!(results.matches("<TimeSpan>").count(), 2, "{text}");

    let profile = write(here, "profile.xml", DISKSPD);
    let done = applied(&machine, &profile, &["--time", "200ms", "--size", "4MiB"]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert_eq!(done.json()["jobs"].as_array().unwrap().len(), 2, "{done:?}");
    let [before, worker, after] = ICF;
    let icf = write(here, "disk.icf", &[before, worker, worker, after].concat());
    let done = applied(&machine, &icf, &["--time", "200ms"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let json = done.json();
    let spec = &json["jobs"][0]["spec"];
    assert_eq!((&spec["region_bytes"], &spec["workers"]), (&(8192 * 512).into(), &2.into()), "{json}");
    is_tidied(&machine);

    let together = write(here, "together.fio", &FIO.replace("stonewall\n", ""));
    let there = write(here, "there.fio", &FIO.replace("[reads]", "allow_file_create=0\n[reads]"));
    for (spec, words) in [(&together, "reads, writes of the file run at the same time"), (&there, "exists")] {
        let done = applied(&machine, spec, &[]);
        assert!(done.code() == 2 && done.stderr.contains(words), "{spec}: {done:?}");
    }
    let planned = applied(&machine, &fio, &["--dry-run"]);
    assert_eq!(planned.json()["phases"].as_array().unwrap().len(), 2, "{planned:?}");
}

#[test]
fn two_machines_with_windows_are_compared_and_disturb_each_other() {
    let here = folder();
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(|| Windows::start(Shell::PowerShell));
        (Windows::start(Shell::Cmd), other.join().unwrap())
    });
    let places = [format!("a={}", one.address("/C:/bench")), format!("b={}", other.address("/C:/bench"))];
    they_are_compared_as_a_file_says(here.path(), &places);
    they_are_neighbours(here.path(), &places);
    one_deviates_beside_this_host(here.path(), &places[0]);
    is_tidied(&one);
    is_tidied(&other);
}

fn they_are_compared_as_a_file_says(here: &Path, [a, b]: &[String; 2]) {
    let grid = write(here, "grid.toml", "blocks = ['4k']\nreads = [50]\nrandoms = [100]\n");
    let study = format!(
        "study = 'compare'\nenvironment = ['{a}', '{b}']\ngrid = '{grid}'\nsize = '4MiB'\nramp = '10ms'\ntime = '60ms'\n\
         repetitions = 3\n"
    );
    let study = write(here, "study.toml", &study);
    let out = here.join("compared");
    let done = run(&["run", &study, "--out", &out.display().to_string()]);
    assert_eq!(done.code(), 0, "{done:?}");
    let measured = records(&out);
    let of = |name: &str| measured.iter().filter(|record| record["environment"] == name).count();
    assert_eq!((of("a"), of("b")), (3, 3), "{measured:?}");
    for machine in run_json(&out)["machines"].as_array().unwrap() {
        let facts = &machine["facts"];
        assert!(facts["distribution"].as_str().unwrap().starts_with("Wine "), "{facts}");
        let device = facts["disk"]["device"].as_str().unwrap();
        assert!(device.starts_with("C:\\, model unavailable: "), "Wine has no model of a disk: {facts}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("Wine ") && page.contains("model unavailable: "),
        "the page names machines and disks"
    );
}

/// A study of several machines under a short load.
fn side_by_side(study: &[&str], out: &Path, places: &[&str]) -> Finished {
    let load = "load:size=4k,read=50,random=100,outstanding=2";
    let times = ["--time", "300ms", "--ramp", "50ms", "--repetitions", "1"];
    let out = out.display().to_string();
    let others = ["--workload", load, "--size", "4MiB", "--json", "--out", &out];
    let places = places.iter().flat_map(|place| ["--environment", place]);
    let words: Vec<&str> =
        ["study"].iter().chain(study).chain(&times).chain(&others).copied().chain(places).collect();
    let done = run(&words);
    assert_eq!(done.code(), 0, "{done:?}");
    done
}

fn they_are_neighbours(here: &Path, [a, b]: &[String; 2]) {
    let out = here.join("neighbours");
    let done = side_by_side(&["neighbours", "--vms", "3"], &out, &[a, b]);
    let summary = done.json();
    assert_eq!(summary["members_without_figures"], 0, "{done:?}");
    assert!(summary["cautions"].to_string().contains("a, b are Wine on Linux, not Windows"), "{done:?}");
    let sets = records(&out);
    let members = sets[0]["members"].as_array().unwrap();
    assert_eq!(members.len(), 3, "two of them share the first machine: {sets:?}");
    for member in members {
        assert!(member["outcome"]["load"]["total"]["operations"].as_u64().unwrap() > 0, "{member}");
        assert!(member["host"]["processors"].as_u64().unwrap() > 0, "{member}");
        assert!(member["start"]["offset_uncertainty_ns"].as_u64().unwrap() > 0, "{member}");
    }
}

fn one_deviates_beside_this_host(here: &Path, a: &str) {
    let out = here.join("deviation");
    let done = side_by_side(&["deviation", "--pattern", "10,20"], &out, &["native:", a]);
    let numbers = done.json();
    let machines = numbers["machines"].as_array().unwrap();
    let named: Vec<&str> = machines.iter().map(|one| one["environment"].as_str().unwrap()).collect();
    assert_eq!(named, ["native", "a"], "{numbers}");
    assert!(records(&out).iter().any(|record| record["set"] == "together"), "each alone and both");
}

fn metrics(outcome: &WorkloadOutcome) -> impl Iterator<Item = &str> {
    outcome.metrics.iter().map(|metric| metric.name.as_str())
}

/// A machine under a workload.
fn under(machine: &mut dyn Machine, workload: &str) -> Result<WorkloadOutcome, LabError> {
    let spec = read_workload(workload, &mut |_| ()).unwrap();
    measure(machine, spec, TimeLimits::default(), &AtomicBool::new(false))
        .map(|(_, measured)| measured.outcome)
}

#[test]
fn files_are_worked_on_and_programs_run_on_windows() {
    const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pure/formats/tests/examples");
    let (wine, here) = (Windows::start(Shell::Cmd), folder());
    let address = SshAddress::parse(&wine.address("/C:/bench")).unwrap();
    let mut machine = Ssh::for_files("far", address).start().unwrap();
    let mut all = Vec::new();
    for (name, workload) in [
        ("bonnie", "bonnie:size=1MiB,files=16,seeks=20,runs=1,cache=keep".to_owned()),
        ("direct", "iozone:size=1MiB,bs=64KiB,runs=1,cache=direct".to_owned()),
        ("model", format!("{EXAMPLES}/small.f:run=400ms,runs=1,cache=keep")),
        ("dbench", format!("dbench:file={EXAMPLES}/small.load,threads=2,run=400ms,runs=1,cache=keep")),
    ] {
        let outcome = under(machine.as_mut(), &workload).unwrap();
        assert!(outcome.errors == 0 && outcome.operations > 0, "{name}: {outcome:?}");
        let said = outcome.notes.join("; ");
        assert_eq!(said.contains("FILE_FLAG_NO_BUFFERING"), name == "direct", "{said}");
        assert_eq!(
            said.contains("Windows flushes a whole volume for administrators alone"),
            name == "bonnie",
            "{said}"
        );
        all.extend(metrics(&outcome).map(|metric| format!("{name} {metric}")));
    }
    for name in [
        "bonnie write-character",
        "bonnie write-block",
        "bonnie seeks",
        "bonnie create-random",
        "bonnie stat-sequential",
        "bonnie delete-random",
        "direct write 64 KiB",
        "direct random-read 64 KiB",
        "model operations",
        "model fsync",
        "model deletefile",
        "model appendfilerand",
        "dbench throughput",
        "dbench Rename",
        "dbench Flush",
        "dbench LockX",
    ] {
        assert!(all.iter().any(|metric| metric == name), "{name} is not among {all:?}");
    }
    let endless = "start /b ping -n 600 127.0.0.1 & ping -n 600 127.0.0.1";
    let ended =
        under(machine.as_mut(), &format!("command:runs=1,limit=1s -- cmd.exe /c '{endless}'")).unwrap();
    assert!(ended.command.as_ref().unwrap().timed_out && ended.errors == 1, "{ended:?}");
    wait_for("what the program started to end", || wine.has_no_process("ping").then_some(()));
    for (workload, words) in [
        ("bonnie:size=1MiB,runs=1", "cache=drop is unavailable on Windows"),
        ("fileserver:runs=1", "use cache=keep"),
        ("iozone:size=1MiB,cache=keep,drop-caches", "drop-caches is unavailable on Windows"),
        ("system:runs=1", "workload system is unavailable on Windows"),
        ("command:runs=1 -- no-such-program.exe", "no-such-program.exe"),
    ] {
        let refused = under(machine.as_mut(), workload).unwrap_err().to_string();
        assert!(refused.contains(words), "{workload}: {refused}");
    }
    assert_eq!(wine.names("bench/.virtbench-agent"), [".virtbench-mark"], "workloads leave no file");
    machine.shut_down();
    is_tidied(&wine);
    a_program_runs_in_a_study(&wine, here.path());
    a_killed_study_leaves_no_program(&wine, here.path());
    a_vm_of_proxmox_is_loaded(&wine);
}

fn a_killed_study_leaves_no_program(machine: &Windows, here: &Path) {
    let place = format!("far={}", machine.address("/C:/bench"));
    let out = here.join("killed").display().to_string();
    let words = ["study", "neighbours", "--vms", "1", "--environment", &place, "--out", &out, "--workload"];
    let mut child = virtbench().args(words).arg("command -- ping -n 600 127.0.0.1").spawn().unwrap();
    wait_for("the program", || (!machine.has_no_process("ping")).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the program to end", || machine.has_no_process("ping").then_some(()));
    is_tidied(machine);
}

fn a_program_runs_in_a_study(machine: &Windows, here: &Path) {
    let (place, out) = (format!("far={}", machine.address("/C:/bench")), here.join("program"));
    let done = run(&[
        "study",
        "neighbours",
        "--workload",
        "command:runs=2 -- cmd.exe /c 'echo from %OS%& cd& exit 3'",
        "--environment",
        &place,
        "--vms",
        "1",
        "--repetitions",
        "1",
        "--out",
        &out.display().to_string(),
    ]);
    assert!(done.code() == 0 && done.stdout.contains("2 operations failed"), "{done:?}");
    let all = records(&out);
    let outcome = &all[0]["members"][0]["outcome"]["workload"];
    assert_eq!((&outcome["command"]["exit_code"], &outcome["errors"]), (&3.into(), &2.into()), "{outcome}");
    let output = outcome["command"]["output"].as_str().unwrap();
    assert!(output.contains("from Windows_NT") && output.contains("C:\\bench"), "{output}");
    for name in ["elapsed", "machine user", "machine system"] {
        let metrics = outcome["metrics"].as_array().unwrap();
        assert!(metrics.iter().any(|metric| metric["name"] == name), "{name}: {outcome}");
    }
}

/// A VM with Windows that a cluster clones: its guest's agent tells the address, and its folder has a drive.
fn a_vm_of_proxmox_is_loaded(machine: &Windows) {
    let (local, (port, config)) = (with_template(), machine.login());
    let server = local.argument();
    let vm = format!("vm={server}&template=golden&ssh-port={port}&ssh-folder=/C:/bench&ssh-config={config}");
    let done =
        run(&["load", "--environment", &vm, "--size", "4MiB", "--ramp", "10ms", "--time", "100ms", "--json"]);
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.json()["read"]["operations"].as_u64().unwrap() > 0, "{done:?}");
    is_tidied(machine);
}

/// What a study does with a machine that has Windows.
enum Takes {
    /// It measures it, as this test of it shows.
    Shown,
    /// It measures it, with these words.
    Measured(Vec<String>),
    /// It refuses it for this reason, before anything is started.
    Refused(Vec<String>, &'static str),
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Studies that have an option for machines that exist, by their own help.
fn with_machines() -> Vec<String> {
    let all = run(&["study", "--help"]).stdout;
    let listed = all.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    let takes = |name: &&str| {
        let help = run(&["study", name, "--help"]).stdout;
        ["--environment <", "--between <", "--tenant <"].iter().any(|option| help.contains(option))
    };
    names.filter(takes).map(str::to_owned).collect()
}

#[test]
fn every_study_takes_a_machine_with_windows_or_refuses_it_by_name() {
    let (machine, here) = (Windows::start(Shell::Cmd), folder());
    let far = machine.address("/C:/bench");
    let server = LocalProxmox::start(&serde_json::json!([]), 0.0).unwrap();
    let platform = server.argument();
    let table = [
        ("compare", Takes::Shown),
        ("neighbours", Takes::Shown),
        ("deviation", Takes::Shown),
        (
            "network",
            Takes::Measured(words(&format!(
                "--between native:,{far} --repetitions 1 --time 100ms --ramp 10ms"
            ))),
        ),
        (
            "operations",
            Takes::Measured(words(&format!(
                "--platform {platform} --tenant win={far} --tenant-size 4MiB --vms 2 --time 2s --piece 1s"
            ))),
        ),
        (
            "platform",
            Takes::Measured(words(&format!(
                "--domains memory --repetitions 1 --environment native: --environment win={far}"
            ))),
        ),
        (
            "tiles",
            Takes::Refused(words("--environment ssh://box/C:/bench?bridge=br0"), "a folder of Windows"),
        ),
        ("desktops", Takes::Refused(words("--environment ssh://box/C:/bench"), "vnc://desk1")),
    ];
    let mut named: Vec<&str> = table.iter().map(|(study, _)| *study).collect();
    let mut having = with_machines();
    named.sort_unstable();
    having.sort();
    assert_eq!(having, named, "each study with an option for machines has its row");
    for (study, takes) in &table {
        let out = here.path().join(study).display().to_string();
        let begun = |words: &[String]| {
            let words = words.iter().map(String::as_str);
            run(&["study", study]
                .into_iter()
                .chain(words)
                .chain(["--json", "--out", &out])
                .collect::<Vec<_>>())
        };
        match takes {
            Takes::Shown => {}
            Takes::Measured(words) => {
                let done = begun(words);
                assert_eq!(done.code(), 0, "{study}: {done:?}");
                let told = fs::read_to_string(Path::new(&out).join("results.jsonl")).unwrap_or_default();
                assert!(!told.is_empty(), "{study}: {done:?}");
            }
            Takes::Refused(words, why) => {
                let done = begun(words);
                assert!(done.code() == 2 && done.stderr.contains(why), "{study}: {done:?}");
                assert!(!Path::new(&out).exists(), "{study} has begun a run");
            }
        }
    }
    is_tidied(&machine);
}
