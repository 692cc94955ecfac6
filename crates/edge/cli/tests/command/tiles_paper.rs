//! The tile of the paper's eight VMs for real.

use std::fs;
use std::time::Duration;

use crate::support::run_folder::records;
use crate::support::{build_appliances, finish_within, folder, virtbench};

/// Two attempts in VMs, should the first not count.
const LIMIT: Duration = Duration::from_secs(600);

#[test]
#[ignore = "it builds a mail server, a wiki and a shop, minutes each; `make soak` runs it"]
fn tile_paper_comes_up_natively_and_in_vms_takes_its_load_and_is_scored() {
    build_appliances(&["mail", "mariadb", "mediawiki", "nginx", "shop"]);
    let temp = folder();
    for environment in ["native", "vm"] {
        let out = temp.path().join(environment);
        let mut command = virtbench();
        command.args([
            "study",
            "tiles",
            "--tile",
            "tile-paper",
            "--environment",
            environment,
            "--tiles",
            "1",
        ]);
        command.args([
            "--accelerator",
            "tcg",
            "--json",
            "--repetitions",
            "1",
            "--time",
            "20s",
            "--ramp",
            "5s",
        ]);
        let finished = finish_within(command.arg("--out").arg(&out).spawn().unwrap(), LIMIT);
        assert_eq!(finished.code(), 0, "{finished:?}");
        let summary = finished.json();
        // Whether all levels are kept is the host's; every member has done something, and nothing but that.
        let score = summary["tiles"]["steps"][0]["sum"]["value"].as_f64().unwrap();
        assert!(score > 0.0 && score < 1.5, "{summary}");
        let records = records(&out);
        let members = records.last().unwrap()["members"].as_array().unwrap();
        assert_eq!(members.len(), 8);
        let loaded: Vec<_> = members.iter().filter(|member| !member["done"].is_null()).collect();
        assert_eq!(loaded.len(), 5, "three front ends of the shop, the wiki, mail: {members:?}");
        for member in loaded {
            let done = &member["done"];
            assert!(
                done["completed"].as_u64().unwrap() > 0 && done["failed"] == 0,
                "{environment}: {member}"
            );
        }
        assert!(fs::read_to_string(out.join("report.html")).unwrap().contains("shop-orders"));
    }
}
