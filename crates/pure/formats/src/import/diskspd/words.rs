//! Command lines into words.

use super::super::{ImportError, Location, MAX_JOBS};

/// The most words of a command line.
const MAX_WORDS: usize = 512;

/// A command's first line, from 1, and its words.
pub type Words = (usize, Vec<String>);

/// The command lines of a text. A line that ends in `^`, `\` or a backtick goes on; comments of
/// shells and of batch files are passed over, as is what such a file says to its shell.
pub fn command_lines(text: &str) -> Result<Vec<Words>, ImportError> {
    let mut commands: Vec<Words> = Vec::new();
    let mut goes_on = false;
    for (line, raw) in (1..).zip(text.lines()) {
        let trimmed = raw.trim();
        if !goes_on && (trimmed.is_empty() || is_comment(trimmed)) {
            continue;
        }
        let content = trimmed.strip_suffix([' ', '^', '`', '\\']).filter(|_| ends_open(trimmed));
        if !goes_on {
            if commands.len() == MAX_JOBS {
                return Err(ImportError::TooMany {
                    at: Location::line(line),
                    what: "command lines",
                    most: MAX_JOBS,
                });
            }
            commands.push((line, Vec::new()));
        }
        goes_on = content.is_some();
        if let Some((_, words)) = commands.last_mut() {
            split(content.unwrap_or(trimmed), line, words)?;
        }
    }
    Ok(commands)
}

fn is_comment(line: &str) -> bool {
    let lower: String = line.chars().take(10).collect::<String>().to_ascii_lowercase();
    ["#", "::", "rem ", "@echo", "@rem"].iter().any(|start| lower.starts_with(start))
}

fn ends_open(line: &str) -> bool {
    [" ^", " `", " \\"].iter().any(|end| line.ends_with(end))
}

fn split(text: &str, line: usize, words: &mut Vec<String>) -> Result<(), ImportError> {
    let mut word = String::new();
    let (mut quoted, mut open) = (false, false);
    for c in text.chars().chain([' ']) {
        match c {
            '"' => (quoted, open) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                if open {
                    words.push(std::mem::take(&mut word));
                    open = false;
                }
                if words.len() > MAX_WORDS {
                    return Err(ImportError::TooMany {
                        at: Location::line(line),
                        what: "arguments",
                        most: MAX_WORDS,
                    });
                }
            }
            c => {
                word.push(c);
                open = true;
            }
        }
    }
    if quoted {
        return Err(ImportError::Syntax { at: Location::line(line), why: "a quote is not closed".into() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together_and_lines_go_on() {
        let text = "rem what\n\"C:\\a b\\diskspd.exe\" -b4K ^\n  -d10 x.dat\n\n:: no\ndiskspd y.dat\n";
        let expected = vec![
            (2, vec!["C:\\a b\\diskspd.exe".to_owned(), "-b4K".into(), "-d10".into(), "x.dat".into()]),
            (6, vec!["diskspd".into(), "y.dat".into()]),
        ];
        assert_eq!(command_lines(text).unwrap(), expected);
        assert!(command_lines("diskspd \"open").is_err());
    }
}
