//! `virtbench analyse` on [ESX Adapters 2006]'s own tables: what the paper says in words, held against its figures.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{folder, run};
use serde_json::Value;

fn paper() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/data/paper2-adapters.csv")
}

fn analysis() -> Value {
    let finished = run(&["analyse", &paper().display().to_string(), "--json"]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    finished.json()
}

/// A figure of every point for which `holds` is true of (block in KiB, % read, % random), by configuration.
fn figures(analysis: &Value, name: &str, figure: &str, holds: impl Fn(u64, u64, u64) -> bool) -> Vec<f64> {
    let number = |value: &Value, key: &str| value[key].as_u64().unwrap();
    analysis["points"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|point| {
            let key = &point["point"];
            let block_kib = number(key, "block_bytes") / 1024;
            holds(block_kib, number(key, "read_percent"), number(key, "random_percent"))
        })
        .map(|point| {
            let all = point["sides"].as_array().unwrap();
            let own = all.iter().find(|side| side["environment"] == name).unwrap();
            own[figure].get("value").unwrap_or(&own[figure]).as_f64().unwrap()
        })
        .collect()
}

/// How many points of the first pair came out like this.
fn tally(analysis: &Value, quantity: &str, finding: &str) -> usize {
    let pairs = analysis["pairs"].as_array().unwrap();
    pairs.iter().filter(|pair| pair["quantity"] == quantity && pair["finding"] == finding).count()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap())
}

const DRIVERS: [&str; 2] = ["LSI Logic", "BusLogic"];
const PER_CPU: &str = "iops_per_cpu_percent";
const KB_PER_CPU: &str = "kb_per_second_per_cpu_percent";

#[test]
fn both_drivers_are_equivalent_at_most_points() {
    // "Both drivers are equivalent from a performance perspective for a large set of workloads."
    let analysis = analysis();
    assert_eq!((tally(&analysis, "rate", "equivalent"), tally(&analysis, "rate", "lower")), (19, 1));
    // "Both drivers have equivalent throughput transfer efficiency": at 14 of 20 points, three each way else.
    let counts = ["equivalent", "higher", "lower"].map(|finding| tally(&analysis, "efficiency", finding));
    assert_eq!(counts, [14, 3, 3]);
    let pairs = analysis["pairs"].as_array().unwrap();
    assert!(pairs.iter().all(|pair| pair["ratio"]["low"].is_null()), "no spread is known");
    let headline = analysis["headline"].as_str().unwrap();
    assert!(
        headline.starts_with("LSI Logic and BusLogic are equivalent for every kind of I/O"),
        "{headline}"
    );
    assert!(analysis["details"].to_string().contains("No spread is given"));
    let cheaper = "Of equals in throughput, these cost less CPU: LSI Logic for random writes up to 16 KiB.";
    assert!(analysis["details"].to_string().contains(cheaper), "{analysis}");
    // With a margin of 6 % nothing is left of the differences in throughput.
    let wide = run(&["analyse", &paper().display().to_string(), "--json", "--margin", "6%"]).json();
    assert_eq!(tally(&wide, "rate", "equivalent"), 20);
}

#[test]
fn random_io_has_60_to_70_per_cpu_percent_on_average_though_at_8_of_20_points_only() {
    // "For many workloads, the I/O rate efficiency is between 60 and 70."
    let analysis = analysis();
    let mut within = 0;
    for driver in DRIVERS {
        let values = figures(&analysis, driver, PER_CPU, |_, _, random| random == 100);
        assert_eq!(values.len(), 10);
        assert!((60.0..=70.0).contains(&mean(&values)), "{driver}: {}", mean(&values));
        within += values.iter().filter(|value| (60.0..=70.0).contains(*value)).count();
    }
    assert_eq!(within, 8, "the others lie between 47 and 77");
    // "The 64KB ... random-write workload is slightly less efficient, with approximately 50."
    for driver in DRIVERS {
        let value =
            figures(&analysis, driver, PER_CPU, |block, read, random| (block, read, random) == (64, 0, 100))
                [0];
        assert!((46.0..=54.0).contains(&value), "{driver}: {value}");
    }
}

#[test]
fn small_sequential_io_has_100_to_110_per_cpu_percent_on_average_though_at_no_single_point() {
    // "For these cases, the achievable I/O rate efficiency is 100-110."
    let analysis = analysis();
    for driver in DRIVERS {
        let values = figures(&analysis, driver, PER_CPU, |block, _, random| random == 0 && block <= 16);
        assert_eq!(values.len(), 6);
        assert!((100.0..=110.0).contains(&mean(&values)), "{driver}: {}", mean(&values));
        assert!(values.iter().all(|value| !(100.0..=110.0).contains(value)), "{driver}: {values:?}");
        assert!(values.iter().all(|value| (95.0..=124.0).contains(value)), "{driver}: {values:?}");
        // "The system processes sequential workloads with data sizes of 4KB, 8KB, and 16KB most efficiently."
        let others = figures(&analysis, driver, PER_CPU, |block, _, random| random == 100 || block > 16);
        let most = others.iter().copied().fold(0.0, f64::max);
        assert!(values.iter().all(|value| *value > most), "{driver}: {most}");
    }
}

#[test]
fn the_cost_of_a_kilobyte_falls_with_the_block_but_less_than_in_inverse_proportion() {
    // "The CPU cost of data transfer is inversely proportional to the data transfer size."
    let analysis = analysis();
    for driver in DRIVERS {
        for (read, random) in [(0, 0), (100, 0), (0, 100), (100, 100)] {
            let values = figures(&analysis, driver, KB_PER_CPU, |_, r, x| (r, x) == (read, random));
            assert!(values.is_sorted(), "{driver}: {values:?}");
            // Sixteen times the block; in inverse proportion it would be sixteen times the KB/s.
            let gain = values[4] / values[0];
            assert!((9.0..=13.0).contains(&gain), "{driver}, {read} % read, {random} % random: {gain}");
        }
    }
}

#[test]
fn sequential_io_costs_slightly_less_cpu_with_buslogic_at_nine_of_ten_points() {
    // "For the sequential workloads, CPU utilization is marginally lower for the BusLogic driver. The
    // outcome is mixed for the random workloads."
    let analysis = analysis();
    let lower = |holds: fn(u64, u64, u64) -> bool| {
        let [lsi, bus] = DRIVERS.map(|driver| figures(&analysis, driver, "host_cpu_percent", holds));
        lsi.iter().zip(&bus).filter(|(lsi, bus)| bus < lsi).count()
    };
    assert_eq!(lower(|_, _, random| random == 0), 9, "all but 8 KiB reads");
    assert_eq!(lower(|_, _, random| random == 100), 3);
}

#[test]
fn response_times_rise_with_the_block_but_for_sequential_reads_of_4_kib() {
    let analysis = analysis();
    let kinds = [(0, 0), (100, 0), (0, 100), (100, 100)];
    for driver in DRIVERS {
        let times =
            |read, random| figures(&analysis, driver, "latency_mean_ns", |_, r, x| (r, x) == (read, random));
        for (read, random) in kinds {
            let from = usize::from((read, random) == (100, 0));
            let rising = times(read, random);
            // Sequential writes of 4 and 8 KiB take the same time within 1 % with LSI Logic.
            assert!(rising[from..].windows(2).all(|pair| pair[1] > pair[0] * 0.99), "{driver}: {rising:?}");
        }
        assert!(times(100, 0)[0] > 2.0 * times(100, 0)[1], "the anomaly that the paper names");
        assert!(times(0, 100)[0] > times(0, 0)[4], "random work takes longer than any sequential");
    }
}

#[test]
fn tables_are_for_people_and_csv_holds_every_verdict() {
    let folder = folder();
    let csv = folder.path().join("verdicts.csv");
    let finished = run(&["analyse", &paper().display().to_string(), "--csv", &csv.display().to_string()]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    for text in [
        "I/O per second for each percent",
        "KB/s for each percent",
        "LSI Logic against BusLogic",
        "no spread given",
    ] {
        assert!(finished.stdout.contains(text), "{text}: {}", finished.stdout);
    }
    // 20 points of three quantities and a header.
    assert_eq!(fs::read_to_string(csv).unwrap().lines().count(), 61);
}

#[test]
fn what_cannot_be_analysed_is_named() {
    let folder = folder();
    let file = folder.path().join("bad.csv");
    fs::write(&file, "configuration,block,read_percent,random_percent,iops\nx,4q,0,0,1\n").unwrap();
    for (path, code, told) in [
        (file.as_path(), 2, "line 2: block"),
        (Path::new("no/such/file.csv"), 2, "cannot read no/such/file.csv"),
        (folder.path(), 7, "holds no run"),
    ] {
        let finished = run(&["analyse", &path.display().to_string()]);
        assert_eq!(finished.code(), code, "{finished:?}");
        assert!(finished.stderr.contains(told), "{finished:?}");
    }
    let finished = run(&["analyse", &paper().display().to_string(), "--margin", "0"]);
    assert!(finished.code() == 2 && finished.stderr.contains("--margin"), "{finished:?}");
}

/// A made-up run of four configurations in a folder, as a study leaves it.
fn run_folder(repetitions: u32) -> tempfile::TempDir {
    let folder = folder();
    let plan = virtbench_samples::configurations::adapters_plan(repetitions);
    let records = virtbench_samples::configurations::adapters_records(&plan);
    let provenance = virtbench_samples::configurations::adapters_provenance(plan);
    fs::write(folder.path().join("run.json"), serde_json::to_vec(&provenance).unwrap()).unwrap();
    let lines: String = records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();
    fs::write(folder.path().join("results.jsonl"), lines).unwrap();
    folder
}

#[test]
fn a_run_folder_is_analysed_and_reported_alike() {
    let folder = run_folder(3);
    let path = folder.path().display().to_string();
    let analysis = run(&["analyse", &path, "--json"]).json();
    let headline = analysis["headline"].as_str().unwrap();
    assert!(
        headline
            .starts_with("On this host under TCG, use virtio-blk for sequential I/O and nvme for random I/O"),
        "{headline}"
    );
    assert_eq!(analysis["pairs"].as_array().unwrap().len(), 6 * 12 * 3);
    assert_eq!(analysis["kinds"][0]["choices"].as_array().unwrap().len(), 2);

    let reported = run(&["report", &path]);
    assert_eq!(reported.code(), 0, "{reported:?}");
    let files: Vec<&str> = reported.stdout.lines().collect();
    assert_eq!(files.len(), 3, "page, results, verdicts: {files:?}");
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains(&headline.replace(" %", "\u{a0}%")), "the page opens with the same sentence");
    let verdicts = fs::read_to_string(folder.path().join("verdicts.csv")).unwrap();
    assert_eq!(verdicts.lines().count(), 1 + 6 * 12 * 3);

    // The run's own table comes to the same verdicts as the run.
    let csv = folder.path().join("results.csv").display().to_string();
    let of_table = run(&["analyse", &csv, "--json"]).json();
    let findings = |analysis: &Value| -> Vec<String> {
        let pairs = analysis["pairs"].as_array().unwrap().iter();
        let words = |pair: &Value| {
            ["first", "second", "point", "quantity", "finding"].map(|key| pair[key].to_string())
        };
        pairs.map(|pair| words(pair).join(" ")).collect()
    };
    assert_eq!(findings(&of_table), findings(&analysis));
}

fn published(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/data").join(name).display().to_string()
}

#[test]
fn the_published_cycles_of_a_transaction_come_out_of_their_table() {
    // [Platform 2014], section IV.A.1: 22 % more cycles, of which CPI 13 % and path length 8 %.
    let finished = run(&["analyse", &published("paper3-cycles.csv")]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let headline = finished.stdout.lines().next().unwrap().to_owned();
    assert_eq!(
        headline,
        "A transaction takes 22 % more cycles on Virtual than on Native: CPI 13 % more, path length 8 % more. 62 % of \
         that growth is slower instructions, the rest is more of them."
    );
    let finished = run(&["analyse", &published("paper3-cycles.csv"), "--json"]);
    let summary = finished.json();
    assert!(summary["sides"].as_array().unwrap().iter().all(|side| side["mismatch_percent"].is_null()));
    let cycles = summary["ratios"][0]["ratios"]["cycles_per_transaction"]["value"].as_f64().unwrap();
    assert!((cycles - 3668.0 / 2998.0).abs() < 1e-6, "{cycles}");
}

#[test]
fn the_published_throughput_comes_out_of_its_table_and_page() {
    let folder = folder();
    let page = folder.path().join("oltp.html");
    let finished = run(&["analyse", &published("paper3-oltp.csv"), "--html", &page.display().to_string()]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    assert!(finished.stdout.starts_with("ESX 4.1 does 0.79 of Native's transactions"), "{finished:?}");
    assert!(finished.stdout.contains("nothing is known of the spread"), "{finished:?}");
    let html = fs::read_to_string(page).unwrap();
    assert!(
        html.contains("ESX 5.0 / Native") && html.contains("Table 4"),
        "the page has the ratios and the source"
    );
}

#[test]
fn the_published_latencies_of_operations_say_which_grow_with_density() {
    // [Platform 2014], section IV.C.1: "Remove VM has no such need, so its performance is nearly equivalent".
    let finished = run(&["analyse", &published("paper3-table6.csv")]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    let [grow, stay] = finished.stdout.lines().collect::<Vec<_>>()[..] else { panic!("{finished:?}") };
    assert!(grow.starts_with("From 10 to 125 VMs these take longer: power off 15.0-fold"), "{grow}");
    assert_eq!(stay, "From 10 to 125 VMs these do not take longer: remove (0.746).");
    let summary = run(&["analyse", &published("paper3-table6.csv"), "--json"]).json();
    let of = |kind: &str, figure: &str| summary["density"][kind][figure].as_f64().unwrap();
    assert!((of("power_on", "factor") - 0.94 / 0.081).abs() < 1e-3);
    assert!((of("clone", "exponent") - (0.18f64 / 0.029).ln() / 12.5f64.ln()).abs() < 1e-3);
    assert!(summary["density"]["power_on"]["bend"].is_null(), "two numbers of VMs show no bend");
    let refused = run(&["analyse", &published("paper3-table6.csv"), "--csv", "verdicts.csv"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
}

#[test]
fn a_line_of_operations_that_cannot_be_read_is_named() {
    let folder = folder();
    let table = folder.path().join("wrong.csv");
    for (line, said) in
        [("power_up,10,1", "power_up"), ("power_on,0,1", "vms"), ("power_on,10,-1", "latency_s")]
    {
        fs::write(&table, format!("operation,vms,latency_s\npower_on,10,1\n{line}\n")).unwrap();
        let refused = run(&["analyse", &table.display().to_string()]);
        assert_eq!(refused.code(), 2, "{refused:?}");
        assert!(refused.stderr.contains("line 3") && refused.stderr.contains(said), "{refused:?}");
    }
}

#[test]
fn figures_of_an_application_that_cannot_all_be_right_are_said() {
    let folder = folder();
    let table = folder.path().join("wrong.csv");
    let head = "configuration,cycles_per_transaction,cycles_per_instruction,instructions_per_transaction";
    fs::write(&table, format!("{head}\nNative,2998000,2.10,1429000\nVirtual,3668000,2.38,1429000\n"))
        .unwrap();
    let finished = run(&["analyse", &table.display().to_string()]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    assert!(finished.stdout.contains("-7.3 % off the 3,668,000 that were counted"), "{finished:?}");
    let refused = run(&["analyse", &table.display().to_string(), "--csv", "verdicts.csv"]);
    assert_eq!(refused.code(), 2, "{refused:?}");
    assert!(refused.stderr.contains("--csv"), "{refused:?}");
}

/// Two hosts with one to three tiles, three runs each: the second's database does half as much again, and a third tile
/// breaks the web server's levels on both.
fn table_of_tiles() -> String {
    let mut text =
        "# title: two hosts\nconfiguration,repetition,tiles,tile,member,value,reference,held\n".to_owned();
    for (host, oltp) in [("disk", 4.0), ("ssd", 6.0)] {
        for run in 0..3 {
            for tiles in 1..=3_u32 {
                for tile in 1..=tiles {
                    let (noise, held) = (1.0 + 0.01 * f64::from(run), if tiles < 3 { "yes" } else { "no" });
                    text += &format!("{host},{run},{tiles},{tile},oltp,{},4,yes\n", oltp * noise);
                    text +=
                        &format!("{host},{run},{tiles},{tile},web,{},0.3,{held}\n", 0.3 / f64::from(tiles));
                    text += &format!("{host},{run},{tiles},{tile},standby,,,\n");
                }
            }
        }
    }
    text
}

#[test]
fn tiles_are_scored_and_the_most_that_fit_are_named() {
    let folder = folder();
    let (table, page) = (folder.path().join("tiles.csv"), folder.path().join("tiles.html"));
    fs::write(&table, table_of_tiles()).unwrap();
    let [table, page] = [table, page].map(|path| path.display().to_string());
    let finished = run(&["analyse", &table, "--html", &page]);
    assert_eq!(finished.code(), 0, "{finished:?}");
    for said in [
        "disk fits 2 tiles, score 1.4",
        "with 3 tiles web breaks its service levels, in 3 of 3 runs.",
        "With 2 tiles ssd scores 1.22 times what disk does",
        "oltp moved most: 1.50 times",
        "void",
    ] {
        assert!(finished.stdout.contains(said), "{said}: {}", finished.stdout);
    }
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Every number of tiles") && html.contains("tiles-score"), "{html:.300}");
    let numbers = run(&["analyse", &table, "--json"]).json();
    assert_eq!(
        (&numbers["configurations"][0]["fits"], &numbers["changes"][0]["tiles"]),
        (&2.into(), &1.into())
    );
    // Two tiles of sqrt(1.01 x 0.5) and so on: the mean over runs of twice the root.
    let expected: f64 =
        [1.0_f64, 1.01, 1.02].map(|noise| 2.0 * (noise * 0.5).sqrt()).iter().sum::<f64>() / 3.0;
    let score = numbers["configurations"][0]["steps"][1]["score"]["value"].as_f64().unwrap();
    assert!((score - expected).abs() < 1e-6, "{score} {expected}");
    let refused = run(&["analyse", &table, "--csv", &page]);
    assert!(refused.code() == 2 && refused.stderr.contains("--csv"), "{refused:?}");
}
