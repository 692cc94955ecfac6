//! The pages opened in Chromium, with scripts and without, light and dark, in windows of two widths and on paper: everything is
//! there, nothing lies over anything else, nothing goes wrong and nothing is asked of the network.

#![allow(clippy::disallowed_methods, reason = "these tests write files and run a browser")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::chromium;
use crate::pages;

use chromium::{Browser, View};
use pages::Page;
use serde_json::Value;

const LOOK: &str = include_str!("chromium/look.js");
/// A telephone.
const NARROW_PX: u32 = 420;
/// What most read reports on.
const USUAL_PX: u32 = 1280;
/// A4 less two margins of 12 mm, at 96 pixels an inch.
const PAPER_PX: u32 = 703;

/// What is wrong with a page as it is seen now.
fn faults(page: &Page, found: &Value, as_what: &str) -> Vec<String> {
    let mut faults: Vec<String> = Vec::new();
    let mut fault = |what: String| faults.push(format!("{}, {as_what}: {what}", page.name));
    for one in found["faults"].as_array().unwrap() {
        fault(one.as_str().unwrap().to_owned());
    }
    if found["charts"] != page.charts {
        fault(format!("{} charts where there should be {}", found["charts"], page.charts));
    }
    faults
}

/// A page opened once and seen in a narrow window and in a usual one, of which one is dark.
fn look_at(browser: &mut Browser, page: &Page, with_scripts: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    browser.open(&page.html, with_scripts);
    for width in [NARROW_PX, USUAL_PX] {
        let is_dark = with_scripts == (width == USUAL_PX);
        browser.look_as(View { width, is_dark, media: "screen" });
        let found = browser.evaluate(LOOK);
        let scripts = if with_scripts { "scripts" } else { "no scripts" };
        let as_what = format!("{width} px, {}, {scripts}", if is_dark { "dark" } else { "light" });
        wrong.extend(faults(page, &found, &as_what));
        if found["isDark"] != is_dark {
            wrong.push(format!("{}, {as_what}: not so", page.name));
        }
        // What only a script can do is offered by a script alone.
        let offered = if with_scripts { found["choices"].clone() } else { 0.into() };
        assert_eq!(found["selects"], offered, "{}, {as_what}", page.name);
        assert!(with_scripts || found["buttons"] == 0, "{}, {as_what}", page.name);
    }
    wrong.extend(browser.trouble().iter().map(|trouble| format!("{}: {trouble}", page.name)));
    wrong
}

/// A page with a chart too few, a line that is too wide, a small text outside its chart, one over another, a mark beyond its
/// chart, a picture from elsewhere and a script that fails.
const BROKEN: &str = r#"<!DOCTYPE html><body style="background:#fff;color:#ccc"><p style="width:3000px">a line</p>
    <figure><svg class="chart" role="img" aria-labelledby="none" width="100" height="50"><g class="up" font-size="9">
    <text x="90" y="10">beyond</text><text x="91" y="10">beyond</text></g><circle cx="300" cy="9" r="4"/></svg><figcaption></figcaption>
    </figure><img src="http://127.0.0.1:9/picture.png"><script>throw new Error("fails")</script>"#;

#[test]
fn every_page_is_whole_in_every_window_and_theme_with_scripts_and_without() {
    let mut browser = Browser::start();
    let broken = Page { name: "broken", html: BROKEN.into(), charts: 2 };
    let wrong = look_at(&mut browser, &broken, true).join("\n");
    for fault in [
        "of 420: a line",
        "a text outside its chart: beyond",
        "a small text: beyond",
        "texts over each other: beyond",
        "a mark outside its chart: circle",
        "no name",
        "no values",
        "from elsewhere: IMG",
        "hardly to be read: a line",
        "1 charts where there should be 2",
        "asked for http",
        "Error: fails",
    ] {
        assert!(wrong.contains(fault), "{fault} is not found in:\n{wrong}");
    }
    let mut wrong = Vec::new();
    for page in pages::full().iter().chain(&pages::sparse()) {
        for with_scripts in [false, true] {
            wrong.extend(look_at(&mut browser, page, with_scripts));
        }
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_page_is_wider_than_a_sheet_of_paper_no_chart_is_cut_and_folds_are_open() {
    let mut browser = Browser::start();
    let mut wrong = Vec::new();
    for page in pages::full() {
        browser.look_as(View { width: PAPER_PX, is_dark: true, media: "print" });
        browser.open(&page.html, false);
        let found = browser.evaluate(LOOK);
        wrong.extend(faults(page, &found, "on paper"));
        assert_eq!(found["isDark"], false, "paper is white, whatever the screen is");
    }
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    browser.open(&pages::full()[0].html, true);
    let sheets = browser.sheets();
    assert!((5..=16).contains(&sheets), "{sheets} sheets");
    browser.open(&named("platform").html, false);
    assert_eq!(browser.sheets(), 2, "a report card has two sheets");
}

/// The middle of an element of the page, scrolled into view.
fn middle(browser: &mut Browser, selector: &str) -> (f64, f64) {
    let place = browser.evaluate(&format!(
        "(() => {{ const element = document.querySelector({selector:?}); element.scrollIntoView({{ block: 'center' }}); \
         const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
    ));
    (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
}

#[test]
fn a_reader_can_read_values_choose_and_sort() {
    let mut browser = Browser::start();
    let page = named("native-vs-vm");
    browser.look_as(View { width: 1280, is_dark: false, media: "screen" });
    browser.open(&page.html, true);
    // Beside a mark as well as on it.
    for beside in [0.0, 9.0] {
        let (x, y) = middle(&mut browser, "#ratio-curve .marks rect");
        browser.move_pointer(x, y + beside);
        let read = browser.evaluate("document.querySelector('.reading:not([hidden])')?.textContent");
        let read = read.as_str().unwrap_or_else(|| panic!("nothing is read at {beside} px"));
        assert!(read.contains("of native") && read.contains("95 %: "), "{read}");
    }
    browser.move_pointer(2.0, 2.0);
    assert_eq!(browser.evaluate("document.querySelector('.reading').hidden"), true);

    let chosen = browser.evaluate(
        "(() => { const select = document.querySelector('#latency select'); select.value = '4'; \
         select.dispatchEvent(new Event('change')); \
         return [document.querySelector('#latency .shown h4').textContent, select.selectedOptions[0].text, \
         document.querySelectorAll('#latency .shown .variant').length, \
         document.querySelectorAll('#latency .multiples .variant').length]; })()",
    );
    assert_eq!(chosen[0], chosen[1]);
    assert_eq!((chosen[2].as_u64(), chosen[3].as_u64()), (Some(1), Some(17)));

    // The fourth column of every point, and of every verdict.
    sort(&mut browser, "table.sortable", 3);
    assert!(browser.trouble().is_empty(), "{:?}", browser.trouble());
    browser.open(&named("adapters").html, true);
    sort(&mut browser, "details table.sortable", 4);
    assert!(browser.trouble().is_empty(), "{:?}", browser.trouble());
}

fn named(name: &str) -> &'static Page {
    pages::full().iter().find(|page| page.name == name).unwrap()
}

/// Sorts a table by a column of numbers, upwards and then downwards.
fn sort(browser: &mut Browser, table: &str, column: usize) {
    let sorted = browser.evaluate(&format!(
        "(() => {{ const table = document.querySelector({table:?}); \
         const cells = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[{column}].firstChild.textContent)); \
         const header = table.tHead.rows[0].cells[{column}]; header.querySelector('button').click(); \
         const upwards = cells(); header.querySelector('button').click(); \
         return [upwards, cells(), header.getAttribute('aria-sort')]; }})()"
    ));
    let numbers = |place: usize| -> Vec<f64> {
        sorted[place].as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap()).collect()
    };
    let (upwards, downwards) = (numbers(0), numbers(1));
    assert!(upwards.is_sorted() && upwards.first() < upwards.last(), "{upwards:?}");
    assert!(downwards.is_sorted_by(|one, next| one >= next), "{downwards:?}");
    assert_eq!(sorted[2], "descending");
}
