//! The page opened in Chromium, with WebGL and without: every figure is drawn, nothing goes wrong and
//! nothing is asked of the network.

#![allow(clippy::disallowed_methods, reason = "these tests write a file and run a browser")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod synthetic;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use synthetic::configurations::{adapters_plan, adapters_provenance, adapters_records};
use synthetic::sets::{deviation, matrix, neighbours};
use synthetic::{html, plan, provenance, records, sets_html, small_plan, unavailable};
use virtbench_record::{GridPlan, PointRecord};
use virtbench_report::{FenceFigure, FencePage, FenceTable, FenceValue, fence_html};

/// Software WebGL: the machines that test have no graphics card.
const WITH_WEBGL: &[&str] = &["--enable-unsafe-swiftshader", "--use-angle=swiftshader"];
const WITHOUT_WEBGL: &[&str] = &["--disable-3d-apis"];

/// How long a browser may take in all.
const LIMIT: Duration = Duration::from_secs(180);
/// How long the page may take by its own clock.
const VIRTUAL_TIME_MS: u32 = 60_000;

/// What became of a page.
struct Opened {
    /// The document after its scripts ran, as HTML.
    dom: String,
    /// What the browser wrote about it.
    log: String,
}

impl Opened {
    /// The value of an attribute of the root element.
    fn root(&self, attribute: &str) -> &str {
        let tag = self.dom.split_once("<html").and_then(|(_, rest)| rest.split_once('>')).unwrap().0;
        let needle = format!("{attribute}=\"");
        tag.split_once(&needle).and_then(|(_, rest)| rest.split_once('"')).map_or("", |(value, _)| value)
    }

    fn assert_sound(&self, figures: usize) {
        let trouble: Vec<&str> = self
            .log
            .lines()
            .filter(|line| line.contains("CONSOLE") && !line.contains(":INFO:"))
            .chain(self.log.lines().filter(|line| line.contains("Uncaught")))
            .collect();
        assert!(trouble.is_empty(), "{trouble:#?}");
        assert_eq!(self.root("data-errors"), "0");
        assert_eq!(self.root("data-figures"), format!("{figures}/{figures}"));
        let elements = without_scripts(&self.dom);
        for attribute in ["src=\"http", "href=\"http", "src=\"//", "href=\"//"] {
            assert!(!elements.contains(attribute), "{attribute}");
        }
    }
}

/// The document less the text of its scripts, in which such words are only words.
fn without_scripts(dom: &str) -> String {
    let mut parts = dom.split("<script");
    let before = parts.next().unwrap_or_default().to_owned();
    parts.fold(before, |kept, part| kept + part.split_once("</script>").map_or(part, |(_, after)| after))
}

fn open(plan: GridPlan, records: &[PointRecord], flags: &[&str]) -> Opened {
    open_page(&html(&provenance(plan), records, &BTreeMap::new()), flags)
}

fn open_page(html: &str, flags: &[&str]) -> Opened {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    fs::write(&page, html).unwrap();
    let (dom, log) = (folder.path().join("dom.html"), folder.path().join("log"));
    let status = finish(start(folder.path(), &page, &dom, &log, flags));
    let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let opened = Opened { dom: read(&dom), log: read(&log) };
    assert!(status.success(), "{status}: {}", opened.log);
    opened
}

fn start(folder: &Path, page: &Path, dom: &Path, log: &Path, flags: &[&str]) -> Child {
    Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--enable-logging=stderr", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        // Of a flag that is given twice the last counts.
        .arg("--window-size=1280,1000")
        .args(flags)
        .arg(format!("--virtual-time-budget={VIRTUAL_TIME_MS}"))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .stdout(File::create(dom).unwrap())
        .stderr(File::create(log).unwrap())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("chromium cannot be started ({error}); install it with: apt-get install chromium")
        })
}

/// Waits for the browser, and kills it when its time is up.
fn finish(mut browser: Child) -> ExitStatus {
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        if let Some(status) = browser.try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    browser.kill().unwrap();
    browser.wait().unwrap();
    panic!("chromium had not finished after {LIMIT:?}");
}

/// Two block sizes with two surfaces each, the ratio curve, latency and CPU.
const FIGURES: usize = 2 * 2 + 3;

#[test]
fn with_webgl_the_surfaces_are_solid() {
    let plan = small_plan();
    let records = records(&plan);
    let opened = open(plan, &records, WITH_WEBGL);
    opened.assert_sound(FIGURES);
    assert_eq!(opened.dom.matches("<canvas").count(), 4, "a scene for each surface");
}

#[test]
fn without_webgl_they_are_flat() {
    let plan = small_plan();
    let records = records(&plan);
    let opened = open(plan, &records, WITHOUT_WEBGL);
    opened.assert_sound(FIGURES);
    assert_eq!(opened.dom.matches("<canvas").count(), 0);
    assert_eq!(opened.dom.matches("class=\"heatmaplayer mlayer\"").count(), 4, "a grid for each");
}

#[test]
fn a_grid_with_one_value_on_an_axis_is_drawn_along_the_other() {
    let plan = plan(&[4096], &[100], &[0, 50, 100], 2);
    let records = records(&plan);
    open(plan, &records, WITHOUT_WEBGL).assert_sound(4);
}

/// Uses the page as a reader would, and leaves what it saw in the root element's attributes.
const READER: &str = r#"<script>(async () => {
    const root = document.documentElement;
    const until = async (holds) => {
        root.dataset.read = `waits until ${holds}`;
        while (!holds()) await new Promise((next) => setTimeout(next, 100));
    };
    const all = (selector) => [...document.querySelectorAll(selector)];
    await until(() => root.dataset.figures === "7/7");
    Plotly.relayout(all(".plot")[0], { "scene.camera": { eye: { x: 2, y: 0.5, z: 1 } } });
    await until(() => all(".plot")[1].layout.scene.camera.eye.x === 2);
    document.querySelector('[data-depth="flat"]').click();
    await until(() => all("canvas").length === 0 && all(".heatmaplayer").length >= 4);
    document.querySelector('[data-depth="solid"]').click();
    await until(() => all("canvas").length === 4);
    for (const select of all("select")) {
        select.selectedIndex = 1;
        select.dispatchEvent(new Event("change"));
    }
    const header = all("table.sortable th button")[3];
    header.click();
    const ratios = () => all("table.sortable")[0].tBodies[0].rows;
    const first = Number(ratios()[0].cells[3].firstChild.textContent);
    header.click();
    root.dataset.sorted = String(first < Number(ratios()[0].cells[3].firstChild.textContent));
    window.dispatchEvent(new Event("beforeprint"));
    root.dataset.printed = String(all("canvas").length === 0);
    window.dispatchEvent(new Event("afterprint"));
    await until(() => all("canvas").length === 4);
    // The table that is folded away: 18 points, three times, on both sides.
    await until(() => all("details table.sortable tbody tr").length === 108);
    root.dataset.read = "all";
})()</script>"#;

#[test]
fn a_reader_can_turn_flatten_select_sort_and_print() {
    let plan = small_plan();
    let records = records(&plan);
    let html = html(&provenance(plan), &records, &BTreeMap::new());
    let opened = open_page(&html.replace("</body>", &format!("{READER}</body>")), WITH_WEBGL);
    opened.assert_sound(FIGURES);
    for (attribute, value) in [("data-read", "all"), ("data-sorted", "true"), ("data-printed", "true")] {
        assert_eq!(opened.root(attribute), value, "{attribute}");
    }
}

/// Opens every fold and says how far right anything on the page reaches, in pixels; what scrolls by itself
/// counts as wide as its frame, on paper as wide as it is.
const MEASURER: &str = r#"<script>(async () => {
    const root = document.documentElement;
    const complete = () => (([drawn, all]) => drawn === all)((root.dataset.figures ?? "0/1").split("/"));
    while (!complete()) await new Promise((next) => setTimeout(next, 100));
    if (root.dataset.paper) window.dispatchEvent(new Event("beforeprint"));
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    const shown = [...document.querySelectorAll("body *")].filter((one) => one.getClientRects().length > 0);
    const frames = (one) => one.closest(".scroll") !== null && one.closest(".scroll") !== one && !root.dataset.paper;
    const own = shown.filter((one) => !frames(one) && one.closest("svg") === null);
    const edges = own.map((one) => [Math.ceil(one.getBoundingClientRect().right), one.tagName + "." + one.className]);
    edges.sort((a, b) => b[0] - a[0]);
    root.dataset.right = String(edges[0][0]);
    root.dataset.widest = edges[0][1];
})()</script>"#;

/// Where a page ends on the right, at a window of this width, or on paper of it.
fn right_edge(page: &str, width: u32, paper: bool) -> (u32, String) {
    let mut page = page.replace("</body>", &format!("{MEASURER}</body>"));
    if paper {
        page = page.replace("@media print", "@media all").replace("<html ", "<html data-paper=\"yes\" ");
    }
    let opened = open_page(&page, &["--disable-3d-apis", &format!("--window-size={width},1000")]);
    (opened.root("data-right").parse().unwrap(), opened.root("data-widest").to_owned())
}

#[test]
fn no_page_is_wider_than_a_sheet_of_paper_or_a_small_window() {
    // A4 less two margins of 12 mm, at 96 pixels an inch.
    const PAPER_PX: u32 = 703;
    let plan = small_plan();
    let adapters = adapters_plan(3);
    let (records, adapters_records) = (records(&plan), adapters_records(&adapters));
    let pages = [
        ("native-vs-vm", html(&provenance(plan), &records, &BTreeMap::new())),
        ("adapters", html(&adapters_provenance(adapters), &adapters_records, &BTreeMap::new())),
        ("neighbours", sets_html(&neighbours().0, &neighbours().1)),
        ("deviation", sets_html(&deviation().0, &deviation().1)),
    ];
    let mut wide = Vec::new();
    for (name, page) in &pages {
        for (width, paper) in [(PAPER_PX, true), (800, false)] {
            let (right, widest) = right_edge(page, width, paper);
            if right > width {
                wide.push(format!("{name} at {width} px: {widest} reaches {right}"));
            }
        }
    }
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn a_surface_with_a_hole_is_drawn() {
    let plan = small_plan();
    let mut records = records(&plan);
    let (hole, other) = (records[30].point, records[80].point);
    records.retain(|record| record.point != hole && (record.point != other || record.environment != "vm"));
    open(plan, &records, WITH_WEBGL).assert_sound(FIGURES);
}

#[test]
fn a_run_without_a_vm_draws_what_there_is() {
    let plan = small_plan();
    let mut records = records(&plan);
    for record in &mut records {
        if record.environment == "vm" {
            *record = unavailable(record.point, "vm", record.repetition, "QEMU is not installed");
        }
    }
    open(plan, &records, WITH_WEBGL).assert_sound(FIGURES - 1);
}

#[test]
fn an_empty_run_is_a_page_too() {
    open(small_plan(), &[], WITHOUT_WEBGL).assert_sound(0);
}

/// Opens every fold and sorts the verdicts by their ratio.
const COMPARER: &str = r#"<script>(async () => {
    const root = document.documentElement;
    while (root.dataset.figures !== "16/16") await new Promise((next) => setTimeout(next, 100));
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    const table = document.querySelector("details table.sortable");
    const ratio = () => Number(table.tBodies[0].rows[0].cells[4].firstChild.textContent);
    const header = table.querySelectorAll("th button")[3];
    header.click();
    const first = ratio();
    header.click();
    root.dataset.sorted = String(first !== ratio());
})()</script>"#;

/// Throughput, response time, I/O per %CPU and KB/s per %CPU of four kinds of I/O.
const CONFIGURATION_FIGURES: usize = 4 * 4;

#[test]
fn configurations_are_drawn_over_block_sizes_and_their_verdicts_sort() {
    let plan = adapters_plan(3);
    let records = adapters_records(&plan);
    let page = html(&adapters_provenance(plan), &records, &BTreeMap::new());
    let opened = open_page(&page.replace("</body>", &format!("{COMPARER}</body>")), WITHOUT_WEBGL);
    opened.assert_sound(CONFIGURATION_FIGURES);
    assert_eq!(opened.root("data-sorted"), "true");
    assert_eq!(opened.dom.matches("class=\"scatterlayer mlayer\"").count(), CONFIGURATION_FIGURES);
}

#[test]
fn more_kinds_of_io_than_fit_side_by_side_are_selected() {
    let mut plan = adapters_plan(1);
    plan.read_percents = vec![0, 50, 100];
    let records = adapters_records(&plan);
    open_page(&html(&adapters_provenance(plan), &records, &BTreeMap::new()), WITHOUT_WEBGL).assert_sound(4);
}

#[test]
fn configurations_without_a_record_are_a_page_too() {
    let page = html(&adapters_provenance(adapters_plan(2)), &[], &BTreeMap::new());
    open_page(&page, WITHOUT_WEBGL).assert_sound(0);
}

#[test]
fn a_simulated_evaluation_is_drawn() {
    let value = |workload: &str, system: &str, x: Option<f64>, measured: f64| FenceValue {
        workload: workload.into(),
        system: system.into(),
        x,
        machine: "low".into(),
        metric: "response deviation".into(),
        unit: "%".into(),
        measured,
        interval: Some((measured * 0.9, measured * 1.2)),
        range: Some((measured * 0.8, measured * 1.3)),
        published: Some(("<= 15".into(), "section 7.1".into())),
        mark: Some(15.0),
        outside: Some((measured - 15.0).max(0.0)),
    };
    let figure = |name: &str, axis: Option<&str>, values| FenceFigure {
        name: name.into(),
        title: "Deviation <b>".into(),
        axis: axis.map(str::to_owned),
        values,
        findings: vec![("it falls".into(), "undecided".into(), "3 % & 4 %".into())],
    };
    let page = FencePage {
        headline: "Most of it held.".into(),
        details: vec!["A detail.".into()],
        cautions: vec!["A caution.".into()],
        figures: vec![
            figure(
                "4a",
                None,
                vec![value("fileserver", "VirtualFence", None, 12.0), value("mailserver", "HDD", None, 30.0)],
            ),
            figure(
                "8",
                Some("slot length, ms"),
                [10.0, 20.0].map(|ms| value("webserver", "VirtualFence", Some(ms), 20.0)).into(),
            ),
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
    let html = fence_html(&page);
    assert!(
        html.contains("not held, by 15.0 percentage points")
            || html.contains("not held, by 15 percentage points")
    );
    assert!(html.contains("Deviation &lt;b&gt;"));
    open_page(&html, WITHOUT_WEBGL).assert_sound(2);
}

#[test]
fn vms_side_by_side_are_drawn_whatever_was_measured() {
    // Shares, sums and fairness over time; bars; of a matrix only throughput, for memory has no response time.
    for (figures, (facts, records)) in [(3, neighbours()), (1, deviation()), (1, matrix())] {
        open_page(&sets_html(&facts, &records), WITHOUT_WEBGL).assert_sound(figures);
        open_page(&sets_html(&facts, &[]), WITHOUT_WEBGL).assert_sound(0);
    }
}
