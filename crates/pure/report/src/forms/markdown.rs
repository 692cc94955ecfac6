//! In Markdown, for an issue, a pull request or the summary of a job.

use std::fmt::Write as _;

use super::{CAUTIONS, REPEAT, foot};
use crate::figures::Table;
use crate::outline::Outline;

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
fn escaped(text: &str) -> String {
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
