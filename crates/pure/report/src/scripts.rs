//! What the page carries to draw its figures: plotly.js, its own scripts, and the data.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

const OPENING: &str = "<script type=\"text/javascript\">";
const CLOSING: &str = "</script>";

/// Counts errors; it must run before every other script.
const ERRORS_JS: &str = include_str!("../assets/errors.js");
const FIGURES_JS: &str = include_str!("../assets/figures.js");
const TABLES_JS: &str = include_str!("../assets/tables.js");

/// plotly.js with its licence in the first lines, or nothing where the plotly crate changed its form,
/// which a test would find first. The crate hands it out with MathJax behind it, 2 MB that no figure
/// here needs.
fn plotly_js() -> Option<&'static str> {
    static SOURCES: LazyLock<String> = LazyLock::new(plotly::Plot::offline_js_sources);
    first_script(&SOURCES).filter(|script| script.contains("plotly.js v"))
}

fn first_script(html: &str) -> Option<&str> {
    let (before, rest) = html.split_once(OPENING)?;
    let (script, _) = rest.split_once(CLOSING)?;
    before.trim().is_empty().then_some(script)
}

/// The script that must come first in the page.
pub(crate) fn head() -> Markup {
    html! { script { (PreEscaped(ERRORS_JS)) } }
}

/// The scripts at the end of the page, and the figures they draw.
pub(crate) fn tail(drawings: &Value) -> Markup {
    html! {
        script type="application/json" id="drawings" { (PreEscaped(inert(drawings))) }
        @if let Some(plotly) = plotly_js() {
            script { (PreEscaped(plotly)) }
        }
        script { (PreEscaped(FIGURES_JS)) }
        script { (PreEscaped(TABLES_JS)) }
    }
}

/// JSON that cannot end the script element it stands in.
fn inert(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plotly_is_found_alone() {
        let script = plotly_js().expect("the plotly crate hands out plotly.js as its first script");
        assert!(script.len() > 1_000_000);
        assert!(script.contains("Plotly"));
        assert!(!script.contains("MathJax.tex2svg=") && !script.contains(CLOSING));
    }

    #[test]
    fn another_form_is_not_mistaken_for_a_script() {
        assert_eq!(first_script("<script src=x></script>"), None);
        assert_eq!(first_script(OPENING), None);
    }

    #[test]
    fn json_cannot_end_its_script() {
        assert_eq!(inert(&serde_json::json!("</script>")), "\"\\u003c/script>\"");
    }

    #[test]
    fn the_scripts_cannot_end_themselves() {
        for script in [ERRORS_JS, FIGURES_JS, TABLES_JS] {
            assert!(!script.contains("</"));
        }
    }
}
