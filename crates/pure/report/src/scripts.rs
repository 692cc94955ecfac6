//! What the page carries to draw its figures: plotly.js, its own scripts, and the data.
//!
//! plotly.js is 4.7 MB. It is carried deflated, with five characters for four bytes, which makes 1.8 MB,
//! as are the data and long tables that are folded away, and unpacked by the browser's own `DecompressionStream` (all browsers since 2023), which
//! asks nothing of the network. A smaller bundle would have to be built and kept here: of those that are
//! published, none has both surfaces and heat maps.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

const OPENING: &str = "<script type=\"text/javascript\">";
const CLOSING: &str = "</script>";

/// How hard plotly.js is packed, of 10: beyond this a tenth of a percent is gained in twice the time.
const LEVEL: u8 = 9;

/// Counts errors; it must run before every other script.
const ERRORS_JS: &str = include_str!("../assets/errors.js");
/// What both of the next need.
const UNPACK_JS: &str = include_str!("../assets/unpack.js");
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

/// What a page holds of plotly.js: its licence, and all of it packed.
fn packed_plotly() -> Option<&'static (String, Packed)> {
    static PACKED: LazyLock<Option<(String, Packed)>> = LazyLock::new(|| {
        let script = plotly_js()?;
        let (licence, _) = script.split_once("*/")?;
        Some((format!("{}*/", licence.trim_start()), Packed::new(script)))
    });
    PACKED.as_ref()
}

/// The script that must come first in the page.
pub(crate) fn head() -> Markup {
    html! { script { (PreEscaped(ERRORS_JS)) } }
}

/// The scripts at the end of the page, and the figures they draw.
pub(crate) fn tail(drawings: &Value) -> Markup {
    html! {
        (Packed::new(&drawings.to_string()).element(Some("drawings")))
        @if let Some((licence, plotly)) = packed_plotly() {
            script { (PreEscaped(licence)) }
            (plotly.element(Some("plotly")))
        }
        script { (PreEscaped(UNPACK_JS)) }
        script { (PreEscaped(FIGURES_JS)) }
        script { (PreEscaped(TABLES_JS)) }
    }
}

/// Markup that the page's script puts where this stands; within a `details` element, so that nothing that is seen moves.
pub(crate) fn packed(markup: Markup) -> Markup {
    Packed::new(&markup.into_string()).element(None)
}

/// A text deflated (zlib), each four bytes as five digits of base 85, which as characters are `#` to `w`
/// with `x` in place of `<`: nothing in it can end the element it stands in.
struct Packed {
    digits: String,
    /// Zero bytes that fill up the last four.
    filled: usize,
}

impl Packed {
    fn new(text: &str) -> Self {
        let mut deflated = miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), LEVEL);
        let filled = deflated.len().next_multiple_of(4) - deflated.len();
        deflated.resize(deflated.len() + filled, 0);
        let (fours, _) = deflated.as_chunks::<4>();
        let digit = |value: u32, place: u32| {
            let letter = u32::from(b'#') + value / 85u32.pow(place) % 85;
            char::from_u32(letter).filter(|letter| *letter != '<').unwrap_or('x')
        };
        let digits = fours
            .iter()
            .map(|four| u32::from_be_bytes(*four))
            .flat_map(|value| (0..5).rev().map(move |place| digit(value, place)))
            .collect();
        Self { digits, filled }
    }

    /// The element from which the page's script unpacks it.
    fn element(&self, id: Option<&str>) -> Markup {
        html! { script type="text/plain" id=[id] data-filled=(self.filled) { (PreEscaped(&self.digits)) } }
    }
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
    fn what_is_packed_is_plotly_and_its_licence_can_be_read() {
        let (licence, packed) = packed_plotly().unwrap();
        assert!(licence.starts_with("/**") && licence.contains("plotly.js v") && licence.contains("MIT"));
        assert_eq!(unpack(packed), plotly_js().unwrap());
    }

    #[test]
    fn another_form_is_not_mistaken_for_a_script() {
        assert_eq!(first_script("<script src=x></script>"), None);
        assert_eq!(first_script(OPENING), None);
    }

    /// As the page's script does it.
    fn unpack(packed: &Packed) -> String {
        let digit = |letter: &u8| u32::from(if *letter == b'x' { b'<' } else { *letter } - b'#');
        let value = |five: &[u8]| five.iter().fold(0u32, |value, letter| value * 85 + digit(letter));
        let bytes: Vec<u8> =
            packed.digits.as_bytes().chunks(5).flat_map(|five| value(five).to_be_bytes()).collect();
        let deflated = &bytes[..bytes.len() - packed.filled];
        String::from_utf8(miniz_oxide::inflate::decompress_to_vec_zlib(deflated).unwrap()).unwrap()
    }

    #[test]
    fn what_is_packed_cannot_end_its_element_and_comes_out_again() {
        for length in 0..40 {
            let text = "</script><!--".chars().cycle().take(length).collect::<String>();
            let packed = Packed::new(&text);
            assert!(!packed.digits.contains('<') && unpack(&packed) == text, "{}", packed.digits);
        }
    }
}
