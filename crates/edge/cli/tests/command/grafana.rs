//! What Prometheus makes of the figures, and every query of the dashboard over them, put to a Prometheus of this test's own.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::fence::{CACHED, Fence};
use crate::support::{finish, folder, virtbench, wait_for};

const DASHBOARD: &str = include_str!("../../../../../contrib/grafana/fence.json");
const INSTALL: &str = "install Debian's package prometheus, or run `make setup-test`";

/// The quantiles of fences are gauges: a summary would promise that they cover all of the process's time, and theirs are of the last
/// minute, too. The label's name is what readers of dashboards know.
const ALLOWED: &str =
    r#"virtbench_fence_response_quantile_seconds non-summary metrics should not have "quantile" label"#;

/// An address that is free now.
fn address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The figures of a load, exported.
fn exported() -> String {
    let folder = folder();
    let [target, export] = ["t.img", "load.prom"].map(|name| folder.path().join(name).display().to_string());
    let export_to = format!("openmetrics={export}");
    let words = [
        "load", "--target", &target, "--size", "1MiB", "--time", "50ms", "--ramp", "0s", "--export",
        &export_to,
    ];
    let done = finish(virtbench().args(words).spawn().unwrap());
    assert_eq!(done.code(), 0, "{done:?}");
    fs::read_to_string(export).unwrap()
}

/// The figures of management operations on libvirt's own test driver, as their run folder has them.
fn of_operations() -> String {
    let folder = folder();
    let out = folder.path().join("run");
    let words = [
        "study",
        "operations",
        "--platform",
        "libvirt+test:///default?pool=default-pool",
        "--vms",
        "2",
        "--clients",
        "1",
        "--time",
        "2s",
        "--piece",
        "2s",
        "--ramp",
        "0s",
        "--leave-out",
        "--out",
    ];
    let done = finish(virtbench().args(words).arg(&out).spawn().unwrap());
    assert_eq!(done.code(), 0, "{done:?}");
    fs::read_to_string(out.join("operations.prom")).unwrap()
}

/// A fence whose slots and cache have figures.
fn fence(metrics: SocketAddr) -> Fence {
    let slots = CACHED.replace("Hybrid/Partitioned", "VirtualFence");
    Fence::formatted(&format!("metrics = \"{metrics}\"\n{slots}"))
}

/// Serves a text to all who ask, until the test ends.
fn served(text: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0\r\nConnection: close\r\n";
            let _ = write!(client, "{head}Content-Length: {}\r\n\r\n{text}", text.len());
        }
    });
    address
}

/// What a server answers, if it does.
fn asked(address: SocketAddr, path: &str) -> Option<Value> {
    let mut server = TcpStream::connect(address).ok()?;
    server.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(server, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    server.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// In an address.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(byte).collect()
}

/// promtool reads the older text, in which the family of a counter has its samples' name.
fn classic(text: &str) -> String {
    let counters: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let named = |line: &str| {
        let family = line.strip_prefix("# ").and_then(|rest| rest.split(' ').nth(1));
        match family.filter(|family| counters.contains(family)) {
            Some(family) => line.replacen(family, &format!("{family}_total"), 1),
            None => line.to_owned(),
        }
    };
    text.lines().map(|line| named(line) + "\n").collect()
}

fn check_metrics(text: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.spawn().unwrap_or_else(|error| panic!("promtool ({error}): {INSTALL}"));
    promtool.stdin.take().unwrap().write_all(classic(text).as_bytes()).unwrap();
    let done = finish(promtool);
    let faults: Vec<&str> = done.stderr.lines().filter(|line| *line != ALLOWED).collect();
    // 3 is its code for what it would have otherwise.
    assert!([0, 3].contains(&done.code()) && faults.is_empty(), "{faults:?}\n{text}");
}

#[test]
fn promtool_finds_no_fault_with_what_fences_loads_and_operations_export() {
    check_metrics(&exported());
    check_metrics(&of_operations());
    let fence = fence(address());
    let _daemon = fence.serve();
    assert_eq!(fence.load("A", &["--read", "70", "--time", "300ms"]).code(), 0);
    let raw = fence.command("status", &["--raw"]);
    assert!(raw.stdout.contains("virtbench_fence_requests_total"), "{raw:?}");
    check_metrics(&raw.stdout);
}

#[test]
fn every_query_of_the_dashboard_over_metrics_is_answered() {
    let (of_fence, prometheus, data) = (address(), address(), folder());
    let fence = fence(of_fence);
    let _daemon = fence.serve();
    let (of_load, of_operations) = (served(exported()), served(of_operations()));
    let config = data.path().join("prometheus.yml");
    let job = |name: &str, target: SocketAddr| {
        format!("- job_name: {name}\n  honor_labels: true\n  static_configs: [{{targets: ['{target}']}}]\n")
    };
    let jobs = job("fence", of_fence) + &job("load", of_load) + &job("operations", of_operations);
    fs::write(
        &config,
        format!("global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}\nscrape_configs:\n{jobs}"),
    )
    .unwrap();
    let mut server = Command::new("prometheus");
    server
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--web.listen-address={prometheus}"));
    server.arg(format!("--storage.tsdb.path={}", data.path().join("data").display()));
    server
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(data.path().join("log")).unwrap());
    let _server = Ends(server.spawn().unwrap_or_else(|error| panic!("prometheus ({error}): {INSTALL}")));
    // The disk is at work until every query has been answered.
    let _load = Ends(fence.begin_load("A", &["--read", "70", "--outstanding", "4", "--time", "1h"]));

    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queries: Vec<&str> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    assert!(queries.len() > 10, "{queries:?}");
    for query in queries {
        let put = query.replace("$disk", ".*").replace("$__rate_interval", "30s");
        let path = format!("/api/v1/query?query={}", encoded(&put));
        wait_for(query, || {
            let answer = asked(prometheus, &path)?;
            assert_eq!(answer["status"], "success", "{query}: {answer}");
            answer["data"]["result"].as_array().is_some_and(|found| !found.is_empty()).then_some(())
        });
    }
}
