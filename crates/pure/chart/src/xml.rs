//! Markup that is well formed, whatever names and numbers are in it.

use std::fmt::{self, Display, Write as _};

/// A name as text, or as the value of an attribute.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\n' | '\t' => out.write_char(letter)?,
                // XML has no place for these, not even escaped.
                letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                    out.write_char('\u{fffd}')?;
                }
                letter => out.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// To a tenth, which is less than a screen shows.
#[derive(Clone, Copy)]
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Zero is added because of the zero that has a sign.
        write!(out, "{}", (self.0 * 10.0).round() / 10.0 + 0.0)
    }
}

/// A share of the plot's width.
#[derive(Clone, Copy)]
pub(crate) struct Percent(pub(crate) f64);

impl Display for Percent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}%", (self.0 * 1e4).round() / 1e2 + 0.0)
    }
}

/// Markup as it grows. Attributes are handed over as text and must be escaped by the caller.
#[derive(Default)]
pub(crate) struct Svg(String);

impl Svg {
    pub(crate) fn open(&mut self, tag: &str, attributes: fmt::Arguments<'_>) {
        self.add(format_args!("<{tag} {attributes}>"));
    }

    pub(crate) fn close(&mut self, tag: &str) {
        self.add(format_args!("</{tag}>"));
    }

    /// An element that holds a text.
    pub(crate) fn leaf(&mut self, tag: &str, attributes: fmt::Arguments<'_>, text: &str) {
        self.add(format_args!("<{tag} {attributes}>{}</{tag}>", Escaped(text)));
    }

    /// A shape, with what a pointer over it shows.
    pub(crate) fn shape(&mut self, tag: &str, attributes: fmt::Arguments<'_>, hover: &str) {
        if hover.is_empty() {
            self.add(format_args!("<{tag} {attributes}/>"));
        } else {
            self.add(format_args!("<{tag} {attributes}><title>{}</title></{tag}>", Escaped(hover)));
        }
    }

    /// Writes what stands in `group`, in a group of this class; nothing where nothing does.
    pub(crate) fn group(&mut self, class: &str, group: impl FnOnce(&mut Self)) {
        let begin = self.0.len();
        self.open("g", format_args!("class=\"{class}\""));
        let inside = self.0.len();
        group(self);
        if self.0.len() == inside {
            self.0.truncate(begin);
        } else {
            self.close("g");
        }
    }

    pub(crate) fn add(&mut self, markup: fmt::Arguments<'_>) {
        // Writing into a string cannot fail.
        let _ = self.0.write_fmt(markup);
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// What a screen reader says of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// Unique in the page: letters, digits and dashes.
    pub id: &'a str,
    /// A few words.
    pub title: &'a str,
    /// What is to be seen, and where its values stand.
    pub description: &'a str,
}

impl Name<'_> {
    /// Opens the outer `svg`; its plot is what its padding (top, right, bottom, left, in pixels) leaves. `most_px` is the width
    /// beyond which it does not grow.
    pub(crate) fn open(&self, svg: &mut Svg, plot_height: f64, padding: [f64; 4], most_px: Option<f64>) {
        let [top, right, bottom, left] = padding.map(f64::round);
        let (id, height) = (Escaped(self.id), (plot_height + top + bottom).round());
        let most = most_px.map_or_else(String::new, |most| format!(";max-width:{}px", most.round()));
        svg.open(
            "svg",
            format_args!(
                "class=\"chart\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\" \
                 style=\"height:{height}px;padding:{top}px {right}px {bottom}px {left}px{most}\""
            ),
        );
        svg.leaf("title", format_args!("id=\"{id}-title\""), self.title);
        svg.leaf("desc", format_args!("id=\"{id}-desc\""), self.description);
    }
}
