//! `virtbench predict` on the paper's figures and on a real run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::run_folder::{records, run_json};
use crate::support::{Finished, folder, long_figures, run, small_study};

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/data").join(name).display().to_string()
}

fn predict(arguments: &[&str]) -> Finished {
    let mut all = vec!["predict"];
    all.extend(arguments);
    run(&all)
}

#[test]
fn the_paper_s_mail_server_is_predicted_as_published() {
    let profile = data("paper1-mailserver.toml");
    for (model, capacity, actual, error) in
        [("paper1-thar-vm.toml", 5840.0, 6123.0, 4.6), ("paper1-atacama-vm.toml", 5342.0, 4921.0, 8.6)]
    {
        let model = data(model);
        let arguments = ["--profile", &profile, "--model", &model, "--as-published", "--json"];
        let printed = predict(&arguments);
        assert_eq!(long_figures(&printed.stdout), Vec::<String>::new());
        let found = printed.json();
        assert_eq!(found["method"], "latency");
        assert_eq!(found["capacity"].as_f64().unwrap().round(), capacity);
        assert_eq!(found["actual_capacity"], actual);
        let off = found["error_percent"].as_f64().unwrap();
        assert_eq!((off * 10.0).round() / 10.0, error);
        let exact = predict(&arguments[..4]);
        assert!(exact.code() == 0 && exact.stdout.contains("disk (L)"), "{exact:?}");
    }
}

/// A profile that the surface below is like, as if made on this host.
fn profile_of(surface: &Path, folder: &Path) -> PathBuf {
    let provenance = run_json(surface);
    let toml = folder.join("app.toml");
    fs::write(
        &toml,
        "name = 'app'\nio_per_second = 500\nreads_per_second = 500\nwrites_per_second = 0\n\
         sizes = [{size = '4k', share = 100}]\nrandom_percent = 100\nworkers = 4\nlatency_ms = 0.2\n\
         cpu_user_percent = 10\ncpu_system_percent = 5\nprocessors = 2\n",
    )
    .unwrap();
    let mut profile = run(&["profile", "--from", &toml.display().to_string(), "--json"]).json();
    profile["host"] = provenance["host"].clone();
    let path = folder.join("app.json");
    fs::write(&path, profile.to_string()).unwrap();
    path
}

/// The geometric mean over repetitions of the guest's reads a second as a multiple of the host's.
fn ratio_of_pairs(surface: &Path) -> f64 {
    let records: Vec<serde_json::Value> =
        records(surface).into_iter().filter(|record| record["point"]["read_percent"] == 100).collect();
    let iops = |environment: &str, repetition: u64| {
        let found = records
            .iter()
            .find(|record| record["environment"] == environment && record["repetition"] == repetition)
            .unwrap();
        found["outcome"]["total"]["iops"].as_f64().unwrap()
    };
    (0..3).map(|repetition| iops("vm", repetition) / iops("native", repetition)).product::<f64>().cbrt()
}

#[test]
fn a_real_run_predicts_and_what_does_not_fit_is_refused() {
    let folder = folder();
    let surface = folder.path().join("run");
    let study: Vec<String> = small_study(folder.path(), &surface, "300ms", 3);
    let measured = run(&study.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(measured.code(), 0, "{measured:?}");
    let profile = profile_of(&surface, folder.path()).display().to_string();
    let surface_name = surface.display().to_string();
    let page = folder.path().join("p.html");
    let with = |more: &[&str]| {
        let mut all = vec!["--profile", profile.as_str(), "--surface", surface_name.as_str()];
        all.extend(more);
        predict(&all)
    };

    // The point itself is in the surface, so that its ratio is the prediction.
    let page_name = page.display().to_string();
    let found = with(&["--method", "ratio", "--json", "--html", &page_name]).json();
    let ratio = found["ratio"].as_f64().unwrap();
    let expected = ratio_of_pairs(&surface);
    assert!((ratio / expected - 1.0).abs() < 1e-4, "{ratio} {expected}");
    assert!(found["extrapolated"].as_array().unwrap().is_empty());
    let interval = &found["interval"];
    assert!(
        interval["low"].as_f64().unwrap() <= 500.0 * ratio
            && interval["high"].as_f64().unwrap() >= 500.0 * ratio
    );
    assert!(fs::read_to_string(&page).unwrap().contains("What limits it"));

    let network = with(&["--json", "--cpu-overhead", "5,25"]).json();
    assert_eq!(network["method"], "queueing", "{network}");
    assert!(network["ratio"].as_f64().unwrap() > ratio * 0.5 && network["breakdown"][1].is_array());
    assert!(with(&[]).stdout.contains("Bottleneck"));

    refused(&with, &surface, folder.path());
}

fn refused(with: &impl Fn(&[&str]) -> Finished, surface: &Path, folder: &Path) {
    let expect = |finished: Finished, code: i32, said: &str| {
        assert!(finished.code() == code && finished.stderr.contains(said), "{said}: {finished:?}");
    };
    expect(with(&["--to", "vm:nvme"]), 7, "no surface is that of vm:nvme");
    expect(with(&["--to", "native"]), 2, "--to");
    expect(with(&["--method", "latency"]), 2, "--model");
    let other = with(&["--to", "vm:nvme", "--allow-other", "--json"]).json();
    assert!(other["cautions"].to_string().contains("stands for it"), "{other}");
    let right = with(&["--to", "vm:virtio-blk", "--json"]);
    assert_eq!(right.code(), 0, "{right:?}");

    // Another host.
    let mut provenance = run_json(surface);
    provenance["host"]["cpu"] = "another processor".into();
    fs::write(surface.join("run.json"), provenance.to_string()).unwrap();
    expect(with(&[]), 7, "another host");
    let allowed = with(&["--allow-other", "--json"]).json();
    assert!(allowed["cautions"].to_string().contains("another processor"), "{allowed}");

    // Outside what was measured.
    let wide = folder.join("wide.toml");
    fs::write(
        &wide,
        "name = 'wide'\nio_per_second = 50\nsizes = [{size = '1m', share = 100}]\nrandom_percent = [0, 50]\n",
    )
    .unwrap();
    let arguments =
        ["--profile", &wide.display().to_string(), "--surface", &surface.display().to_string(), "--json"];
    let found = predict(&arguments).json();
    let extrapolated = found["extrapolated"].to_string();
    assert!(extrapolated.contains("block size") && extrapolated.contains("randomness"), "{found}");
}

#[test]
fn what_cannot_be_predicted_is_said() {
    let folder = folder();
    let profile = data("paper1-mailserver.toml");
    let bad = folder.path().join("bad.toml");
    fs::write(&bad, "name = 'x'\nio_per_second = 100\nreads_per_second = 10\nwrites_per_second = 10\n")
        .unwrap();
    let bad = bad.display().to_string();
    let empty = folder.path().display().to_string();
    for (arguments, code, said) in [
        (vec!["--profile", profile.as_str()], 2, "nothing to predict from"),
        (vec!["--profile", &bad, "--model", "x"], 2, "10 reads and 10 writes"),
        (vec!["--profile", &profile, "--surface", &empty], 7, "holds no run"),
        (vec!["--profile", &profile, "--model", &profile], 2, "unknown field"),
        (vec!["--profile", &profile, "--model", "/nonexistent"], 2, "cannot read"),
        (vec!["--profile", &profile, "--method", "ratio"], 2, "--surface"),
        (vec!["--profile", &profile, "--cpu-overhead", "-99"], 2, "percentages"),
    ] {
        let finished = predict(&arguments);
        assert!(finished.code() == code && finished.stderr.contains(said), "{arguments:?}: {finished:?}");
    }
}

#[test]
fn costs_of_a_platform_elsewhere_are_used_and_their_origin_is_said() {
    let folder = folder();
    let profile = folder.path().join("app.toml");
    let text = "name = 'app'\nio_per_second = 500\ncpu_user_percent = 60\ncpu_system_percent = 30\nworkers = 1\nprocessors = 2\n";
    fs::write(&profile, text).unwrap();
    let predict =
        |platform: &str| run(&["predict", "--profile", profile.to_str().unwrap(), "--platform", platform]);
    let done = predict("uml");
    assert_eq!(done.code(), 0, "{done:?}");
    assert!(done.stdout.contains("those of the platform uml as it was on 20"), "{done:?}");
    assert!(done.stdout.contains("`virtbench costs` measures them here"), "{done:?}");
    let done = predict("hyper");
    assert!(done.code() == 2 && done.stderr.contains("possible values: tcg, uml"), "{done:?}");
}
