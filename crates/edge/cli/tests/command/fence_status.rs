//! `virtbench fence status` beside a daemon at work.

use std::net::TcpListener;
use std::time::Duration;

use crate::support::fence::{CACHED, Fence, PLAIN, refused};
use crate::support::{finish, signal, virtbench};
use serde_json::Value;

/// With figures at an address that is free now.
fn watched(config: &str) -> Fence {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    Fence::formatted(&format!("metrics = \"{address}\"\n{config}"))
}

fn number(value: &Value, pointer: &str) -> f64 {
    value.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} of {value:#}"))
}

#[test]
fn a_disk_under_load_shows_slots_credit_predictions_hits_and_steadiness() {
    let slots = CACHED.replace("Hybrid/Partitioned", "VirtualFence");
    let alone = "name = \"a\"\nalone_iops = 1000000\nalone_response_ms = 0.001";
    let fence = watched(&slots.replace("name = \"a\"", alone));
    let daemon = fence.serve();
    let mixed = ["--read", "70", "--outstanding", "8", "--flush-every", "50", "--time", "6s"];
    let load = fence.begin_load("A", &mixed);
    let config = fence.path("fence.toml");
    let watch =
        virtbench().args(["fence", "status", config.to_str().unwrap(), "--watch", "--json"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(3500));
    signal(&watch, "TERM");
    let watch = finish(watch);
    assert_eq!(watch.code(), 0, "{watch:?}");
    let looks: Vec<Value> =
        watch.stdout.lines().map(|line| serde_json::from_str(line).expect("a look a line")).collect();
    assert!(looks.len() >= 2 && looks[0]["seconds"].is_null(), "{looks:?}");
    assert!(looks.iter().skip(1).any(|look| number(look, "/disks/0/reads") > 0.0), "{looks:?}");
    assert!(number(&looks[1], "/seconds") > 0.0);
    let load = finish(load);
    assert_eq!(load.code(), 0, "{load:?}");

    let status = fence.command("status", &["--json"]);
    assert_eq!(status.code(), 0, "{status:?}");
    let status = status.json();
    let a = &status["disks"][0];
    let ratio = |pointer| {
        let found = number(a, pointer);
        assert!(found > 0.0 && found < 1.0, "{pointer}: {found}");
    };
    for pointer in
        ["/reads", "/writes", "/flushes", "/bytes", "/read_ms", "/slots/credit_ms", "/slots/credits"]
    {
        assert!(number(a, pointer) > 0.0, "{pointer} of {a:#}");
    }
    for kind in ["read", "write"] {
        let [p50, p99] = ["p50", "p99"].map(|quantile| number(a, &format!("/{kind}_{quantile}_ms")));
        let mean = number(a, &format!("/{kind}_ms"));
        assert!(p50 > 0.0 && p99 >= p50 && p99 > mean / 2.0, "{kind}: {p50} {mean} {p99}");
    }
    assert_eq!((&a["quantiles_over"], &status["disks"][1]["read_p99_ms"]), (&"all".into(), &Value::Null));
    assert_eq!(looks[1]["disks"][0]["quantiles_over"], "minute");
    ratio("/hit_ratio");
    let [slots, used] = ["/slots/slots", "/slots/used"].map(|pointer| number(a, pointer));
    assert!(used > 0.0 && used <= slots, "{a:#}");
    assert_eq!(number(&status, "/disks/1/slots/used"), 0.0, "nobody has used disk b");
    assert!(number(&status, "/disks/1/slots/slots") > 0.0);
    // 4.2 ms are predicted for an access of a hard disk that is a file.
    assert!(number(a, "/slots/slow/batches") > 0.0 && number(a, "/slots/fast/batches") > 0.0, "{a:#}");
    assert!(number(a, "/slots/slow/absolute_error_ms") > 0.0);
    assert_eq!(a["degraded"], Value::Bool(false));
    let steadiness = a["steadiness"].as_array().unwrap();
    assert_eq!(steadiness.len(), 4, "{steadiness:?}");
    for one in steadiness {
        assert!(number(one, "/intervals") >= 2.0 && number(one, "/deviation") > 0.0, "{one:#}");
        assert!(number(one, "/variation") >= 0.0 && number(one, "/spread") >= number(one, "/variation"));
    }

    let table = fence.command("status", &[]);
    for head in ["read ms", "p99", "hits", "credit ms", "missed by ms", "deviation from alone"] {
        assert!(table.stdout.contains(head), "{table:?}");
    }
    let raw = fence.command("status", &["--raw"]);
    assert!(raw.stdout.contains("virtbench_fence_slots_used_total{disk=\"a\"}"), "{raw:?}");
    assert!(raw.stdout.contains("kind=\"write\",over=\"minute\",quantile=\"0.99\"}"), "{raw:?}");
    assert!(raw.stdout.ends_with("# EOF\n"));
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn a_virtual_device_and_a_cap_show_what_they_keep() {
    for (scheduler, more, pointer) in
        [("paced", "", "/paced/held_ms"), ("token-bucket", "iops = 500\n", "/tokens/ios_ms")]
    {
        let plain = PLAIN.replace("pass-through", scheduler);
        let fence = watched(&format!("{plain}{more}"));
        let daemon = fence.serve();
        assert_eq!(fence.load("A", &["--time", "500ms"]).code(), 0);
        let status = fence.command("status", &["--json"]).json();
        let a = &status["disks"][0];
        assert!(number(a, "/reads") > 0.0 && number(a, pointer) != 0.0, "{scheduler}: {a:#}");
        assert!(a["slots"].is_null() && a["hit_ratio"].is_null(), "{scheduler}: {a:#}");
        assert_eq!(daemon.stop().code(), 0);
    }
}

#[test]
fn what_cannot_be_shown_is_told() {
    let fence = Fence::new(PLAIN);
    refused(&fence.command("status", &[]), 3, "A.control: nobody listens");
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fence.configure(&format!("metrics = \"{address}\"\n{PLAIN}"));
    refused(&fence.command("status", &[]), 3, "is `fence serve` running?");
    fence.configure(&format!("metrics = \"{address}\"\n{PLAIN}alone_iops = 0\n"));
    refused(&fence.command("serve", &[]), 2, "alone_iops 0: give what it has alone");
}
