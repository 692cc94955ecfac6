//! Command lines into words.

use super::{ImportError, Location, MAX_JOBS};

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
            commands.push((line, Vec::new()));
        }
        goes_on = content.is_some();
        split(content.unwrap_or(trimmed), line, &mut commands)?;
        if commands.len() > MAX_JOBS {
            let (at, what) = (Location::line(line), "command lines");
            return Err(ImportError::TooMany { at, what, most: MAX_JOBS });
        }
    }
    commands.retain(|(_, words)| !words.is_empty());
    Ok(commands)
}

fn is_comment(line: &str) -> bool {
    let lower: String = line.chars().take(10).collect::<String>().to_ascii_lowercase();
    ["#", "::", "rem ", "@echo", "@rem"].iter().any(|start| lower.starts_with(start))
}

fn ends_open(line: &str) -> bool {
    [" ^", " `", " \\"].iter().any(|end| line.ends_with(end))
}

/// Where in a line the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// Among the words of a command.
    Words,
    /// In the name of a file that the shell's redirection names.
    Redirection,
    /// Behind a pipe: what becomes of the command's output.
    Pipe,
}

/// Splits a line at blanks; `"` and, where a word or a value begins, `'` hold blanks together. What is for
/// the shell is left out: redirections and pipes. `&&`, `&` and `;` begin another command.
fn split(text: &str, line: usize, commands: &mut Vec<Words>) -> Result<(), ImportError> {
    let mut word = String::new();
    let (mut quote, mut open, mut at) = (None, false, At::Words);
    for c in text.chars().chain([' ']) {
        let begins = word.is_empty() || word.ends_with('=');
        match c {
            c if quote == Some(c) => quote = None,
            '"' if quote.is_none() => (quote, open) = (Some(c), true),
            '\'' if quote.is_none() && begins => (quote, open) = (Some(c), true),
            c if quote.is_none() && (c.is_whitespace() || ends_word(c, at)) => {
                let is_descriptor = word.chars().all(|c| c.is_ascii_digit()) && matches!(c, '>' | '<');
                if open && at == At::Words && !is_descriptor {
                    push(&word, line, commands)?;
                }
                if open && at == At::Redirection {
                    at = At::Words;
                }
                (word, open) = (String::new(), false);
                match c {
                    '>' | '<' if at != At::Pipe => at = At::Redirection,
                    '|' => at = At::Pipe,
                    '&' | ';' => {
                        at = At::Words;
                        if commands.last().is_some_and(|(_, words)| !words.is_empty()) {
                            commands.push((line, Vec::new()));
                        }
                    }
                    _ => {}
                }
            }
            c => {
                word.push(c);
                open = true;
            }
        }
    }
    if quote.is_some() {
        return Err(ImportError::Syntax { at: Location::line(line), why: "a quote is not closed".into() });
    }
    Ok(())
}

/// Whether the shell takes this character for itself. `&1` names a descriptor behind a redirection.
fn ends_word(c: char, at: At) -> bool {
    matches!(c, '>' | '<' | '|' | ';') || (c == '&' && at != At::Redirection)
}

fn push(word: &str, line: usize, commands: &mut [Words]) -> Result<(), ImportError> {
    let Some((_, words)) = commands.last_mut() else { return Ok(()) };
    if words.len() == MAX_WORDS {
        return Err(ImportError::TooMany { at: Location::line(line), what: "arguments", most: MAX_WORDS });
    }
    words.push(word.to_owned());
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
        let words = |text: &str| {
            let lines = command_lines(text).unwrap().into_iter();
            lines.map(|(_, words)| words.join("|")).collect::<Vec<_>>()
        };
        assert_eq!(words("diskspd -d1 io.dat > results.txt"), ["diskspd|-d1|io.dat"]);
        assert_eq!(words("diskspd -d1 io.dat>>r.txt 2>&1"), ["diskspd|-d1|io.dat"]);
        assert_eq!(words("diskspd io.dat 2> e.txt -d1 | findstr IOPS"), ["diskspd|io.dat|-d1"]);
        assert_eq!(words("fio -name=a && fio -name='b c' &"), ["fio|-name=a", "fio|-name=b c"]);
        assert_eq!(words("diskspd \"a>b.dat\" it's.dat"), ["diskspd|a>b.dat|it's.dat"]);
        assert!(command_lines("diskspd \"open").is_err());
    }
}
