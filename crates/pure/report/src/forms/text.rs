//! In plain text of 80 columns, with drawings in characters.

use std::fmt::Write as _;

use textwrap::{Options, fill};

use super::{CAUTIONS, REPEAT, foot};
use crate::figures::{Drawing, Figure, Picture};
use crate::format::count;
use crate::outline::Outline;

/// Of a terminal that nobody has made wider.
const COLUMNS: usize = 80;

impl Outline {
    /// The verdict, how sure it is, cautions, every figure in characters, and the command to repeat it.
    #[must_use]
    pub fn text(&self) -> String {
        let takeaway = &self.takeaway;
        let mut text = under(&self.title, '=');
        // Writing into a string cannot fail.
        for sentence in std::iter::once(&takeaway.headline).chain(&takeaway.details) {
            let _ = write!(text, "\n{}\n", fill(&plain(sentence), COLUMNS));
        }
        if !takeaway.cautions.is_empty() {
            let _ = writeln!(text, "\n{CAUTIONS}");
            let item = Options::new(COLUMNS).initial_indent("- ").subsequent_indent("  ");
            for caution in &takeaway.cautions {
                let _ = writeln!(text, "{}", fill(&plain(caution), &item));
            }
        }
        for figure in &self.figures {
            let _ = write!(text, "\n{}", drawn(figure));
        }
        let _ = write!(
            text,
            "\n{REPEAT}\n\n{}\n{}\n",
            command(&self.command),
            fill(&plain(&foot(self)), COLUMNS)
        );
        text
    }
}

/// One line, whatever it is.
fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

fn under(title: &str, line: char) -> String {
    let title = fill(&plain(title), COLUMNS);
    let longest = title.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    format!("{title}\n{}\n", line.to_string().repeat(longest))
}

fn drawn(figure: &Figure) -> String {
    let mut text = format!("{}{}\n", under(&figure.title, '-'), fill(&plain(&figure.caption), COLUMNS));
    for drawing in &figure.drawings {
        let _ = write!(text, "\n{}", one(drawing, figure.drawings.len() > 1));
    }
    text
}

/// The variant that the page shows large, and how many it has folded away.
fn one(drawing: &Drawing, named: bool) -> String {
    let variant = &drawing.variants[drawing.first];
    let others = drawing.variants.len() - 1;
    let mut text = String::new();
    if (named || others > 0) && !variant.name.is_empty() {
        let _ = writeln!(text, "{}", fill(&plain(&variant.name), COLUMNS));
    }
    text += &match &variant.picture {
        Picture::Chart(chart) => chart.characters(COLUMNS),
        Picture::Heat(map) => map.characters(COLUMNS),
    };
    if others > 0 {
        let _ = writeln!(text, "The page has {} by {}.", count(others, "more drawing"), drawing.choice);
    }
    text
}

/// A command in lines that a shell reads as one. A word may be longer than a line: it is not broken.
fn command(words: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() + 3 <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("    {word}")),
            None => lines.push(format!("  {word}")),
        }
    }
    format!("{}\n", lines.join(" \\\n"))
}
