//! A simulated evaluation beside what was published.

use virtbench_report::{FenceFigure, FencePage, FenceTable, FenceValue, fence_html};

fn value(metric: &str, workload: &str, system: &str, x: Option<f64>, measured: f64) -> FenceValue {
    FenceValue {
        workload: workload.into(),
        system: system.into(),
        x,
        machine: "low".into(),
        metric: metric.into(),
        unit: "%".into(),
        measured,
        interval: Some((measured * 0.9, measured * 1.2)),
        range: Some((measured * 0.8, measured * 1.3)),
        published: Some(("<= 15".into(), "section 7.1".into())),
        mark: Some(15.0),
        outside: Some((measured - 15.0).max(0.0)),
    }
}

fn figure(name: &str, axis: Option<&str>, values: Vec<FenceValue>) -> FenceFigure {
    FenceFigure {
        name: name.into(),
        title: "Deviation <b>".into(),
        axis: axis.map(str::to_owned),
        values,
        findings: vec![("it falls".into(), "undecided".into(), "3 % & 4 %".into())],
    }
}

pub fn page() -> String {
    let systems = ["VirtualFence", "VirtualFence without its solid-state cache", "HDD", "SSD"];
    let bars = |metric: &str, most: f64| {
        let values =
            ["fileserver", "mailserver", "webserver"].into_iter().enumerate().flat_map(|(row, workload)| {
                let of = move |(column, system): (usize, &&str)| {
                    (workload, (*system).to_owned(), most / (1.0 + row as f64 + column as f64))
                };
                systems.iter().enumerate().map(of).collect::<Vec<_>>()
            });
        let values =
            values.map(|(workload, system, measured)| value(metric, workload, &system, None, measured));
        values.collect::<Vec<_>>()
    };
    let along = ["webserver", "mailserver"].into_iter().flat_map(|workload| {
        [10.0, 20.0, 50.0, 100.0].map(|ms| {
            let measured = if workload == "webserver" { 40.0 - ms / 4.0 } else { 12.0 };
            value("response deviation", workload, "VirtualFence", Some(ms), measured)
        })
    });
    let page = FencePage {
        headline: "Most of it held.".into(),
        details: vec!["A detail.".into()],
        cautions: vec!["A caution.".into()],
        figures: vec![
            figure(
                "4a",
                None,
                [bars("throughput deviation", 60.0), bars("response deviation", 90.0)].concat(),
            ),
            figure("8", Some("slot length, ms"), along.collect()),
            figure("5", None, Vec::new()),
        ],
        tables: vec![FenceTable {
            title: "Predictors".into(),
            caption: "Errors.".into(),
            header: vec!["device".into()],
            rows: vec![vec!["HDD".into()]],
        }],
        version: "0".into(),
    };
    fence_html(&page)
}
