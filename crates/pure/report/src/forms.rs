//! A run in other forms than the page: for an issue, for a terminal, for slides and papers.

use std::fmt::Write as _;

use textwrap::{Options, fill};
use virtbench_chart::Name;

use crate::figures::{Drawing, Figure, Picture, Table};
use crate::format::count;
use crate::page::Outline;

/// What stands before cautions in every form.
const CAUTIONS: &str = "Before you use these figures:";

/// What stands before the command line.
const REPEAT: &str = "Measured by this command, which measures it again:";

/// Who wrote it, in a line.
fn foot(outline: &Outline) -> String {
    format!("{}; virtbench {}", outline.place, outline.version)
}

/// Rows of the table at most: a comment is read to its end.
const ROWS_MOST: usize = 60;

impl Outline {
    /// The verdict, how sure it is, the table it is read from, cautions, and the command to repeat it.
    #[must_use]
    pub fn markdown(&self) -> String {
        let takeaway = &self.takeaway;
        let mut text = format!("### {}\n\n**{}**\n", escaped(&self.title), escaped(&takeaway.headline));
        // Writing into a string cannot fail.
        for detail in &takeaway.details {
            let _ = write!(text, "\n{}\n", at_start(detail));
        }
        if let Some(figure) = self.lead() {
            let _ = write!(text, "\n{}\n\n{}", at_start(&figure.caption), table(&figure.any_table()));
        }
        if !takeaway.cautions.is_empty() {
            let _ = write!(text, "\n{CAUTIONS}\n\n");
            for caution in &takeaway.cautions {
                let _ = writeln!(text, "- {}", at_start(caution));
            }
        }
        let command = self.command.join(" ");
        let fence = fence(&command);
        let _ = write!(text, "\n{REPEAT}\n\n{fence}sh\n{command}\n{fence}\n\n{}\n", at_start(&foot(self)));
        text
    }
}

fn table(table: &Table) -> String {
    let row = |cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!(" {} |", escaped(cell))).collect();
        format!("|{cells}\n")
    };
    let mut text = row(&table.header);
    text.push('|');
    for column in 0..table.header.len() {
        text.push_str(if column < table.names { "---|" } else { "--:|" });
    }
    text.push('\n');
    for cells in table.rows.iter().take(ROWS_MOST) {
        text += &row(cells);
    }
    let left = table.rows.len().saturating_sub(ROWS_MOST);
    if left > 0 {
        let _ = writeln!(text, "\n{left} more rows stand in the page.");
    }
    if !table.note.is_empty() {
        let _ = writeln!(text, "\n{}", at_start(&table.note));
    }
    text
}

/// A text that shows as it is: no markup, and one line.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            letter if letter.is_control() => shown.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '&' | '~' | '$' | '@' => {
                shown.extend(['\\', letter]);
            }
            letter => shown.push(letter),
        }
    }
    shown
}

/// The same where a line begins, at which more signs mean something.
fn at_start(text: &str) -> String {
    let shown = escaped(text.trim_start());
    let digits = shown.chars().take_while(char::is_ascii_digit).count();
    let ends_number = |letter: &char| ['.', ')'].contains(letter);
    match shown.chars().next() {
        Some('#' | '+' | '-' | '=' | ':') => format!("\\{shown}"),
        Some(_) if digits > 0 && shown.chars().nth(digits).as_ref().is_some_and(ends_number) => {
            format!("{}\\{}", &shown[..digits], &shown[digits..])
        }
        _ => shown,
    }
}

/// Backticks, more than a line of the text begins with.
fn fence(text: &str) -> String {
    let most = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(3.max(most + 1))
}

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

/// Of a file's name what says which variant it is gets no more letters.
const SLUG: usize = 40;

/// A drawing as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SvgFile {
    /// Its name: letters, digits and dashes, unique in its run.
    pub name: String,
    /// The document.
    pub text: String,
}

impl Outline {
    /// Every drawing of the page, with all its variants.
    #[must_use]
    pub fn svgs(&self) -> Vec<SvgFile> {
        let drawings =
            self.figures.iter().flat_map(|figure| figure.drawings.iter().map(move |one| (figure, one)));
        drawings
            .flat_map(|(figure, drawing)| {
                (0..drawing.variants.len()).map(move |index| file(figure, drawing, index))
            })
            .collect()
    }
}

fn file(figure: &Figure, drawing: &Drawing, index: usize) -> SvgFile {
    let variant = &drawing.variants[index];
    let stem = match drawing.variants.len() {
        1 => drawing.id.clone(),
        _ => format!("{}-{:02}{}", drawing.id, index + 1, slug(&variant.name)),
    };
    let title = match variant.name.as_str() {
        "" => figure.title.clone(),
        name => format!("{}: {name}", figure.title),
    };
    let id = format!("{}-{index}", drawing.id);
    let name = Name { id: &id, title: &title, description: &drawing.label };
    let text = match &variant.picture {
        Picture::Chart(chart) => chart.svg_file(&name),
        Picture::Heat(map) => map.svg_file(&name),
    };
    SvgFile { name: format!("{stem}.svg"), text }
}

/// A dash, then the letters and digits of a name with dashes between its words; nothing of a name without any.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars().take(SLUG) {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_matches('-');
    if slug.is_empty() { String::new() } else { format!("-{slug}") }
}
