//! The words of a model file.

use super::error::FilebenchError;

/// The most words of a file.
const MAX_TOKENS: usize = 200_000;

/// A word and its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A keyword, a name, a number, a path.
    Word(&'a str),
    /// `$name`.
    Variable(&'a str),
    /// What stands between quotes.
    Text(&'a str),
    Sign(char),
}

impl Token<'_> {
    /// It, for a message.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Word(word) => format!("{:?}", shorten(word)),
            Self::Variable(name) => format!("\"${}\"", shorten(name)),
            Self::Text(text) => format!("the text {:?}", shorten(text)),
            Self::Sign(sign) => format!("{sign:?}"),
        }
    }
}

/// At most 40 characters of a text.
pub(super) fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A word and its line, from 1.
pub(super) type Placed<'a> = (usize, Token<'a>);

/// Cuts a file into words. A comment goes from `#` to the end of its line.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed<'_>>, FilebenchError> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        if tokens.len() == MAX_TOKENS {
            return Err(FilebenchError::syntax(line, format!("more than {MAX_TOKENS} words")));
        }
        let cut = |end: usize| rest.split_at(end);
        let end_of = |ends: fn(char) -> bool, from: usize| {
            rest[from..].find(ends).map_or(rest.len(), |found| from + found)
        };
        match first {
            '\n' => {
                line += 1;
                rest = &rest[1..];
            }
            _ if first.is_whitespace() => rest = &rest[first.len_utf8()..],
            '#' => rest = cut(end_of(|c| c == '\n', 0)).1,
            '{' | '}' | '(' | ')' | '=' | ',' => {
                tokens.push((line, Token::Sign(first)));
                rest = &rest[1..];
            }
            '"' => {
                let (inside, after) = rest[1..]
                    .split_once('"')
                    .ok_or_else(|| FilebenchError::syntax(line, "the quotes are not closed"))?;
                tokens.push((line, Token::Text(inside)));
                line += inside.matches('\n').count();
                rest = after;
            }
            '$' => {
                let end = end_of(|c| !c.is_ascii_alphanumeric() && c != '_', 1);
                let (name, after) = cut(end);
                if name.len() < 2 {
                    return Err(FilebenchError::syntax(line, "a variable is written $name"));
                }
                tokens.push((line, Token::Variable(&name[1..])));
                rest = after;
            }
            _ if is_word(first) => {
                let (word, after) = cut(end_of(|c| !is_word(c), 0));
                tokens.push((line, Token::Word(word)));
                rest = after;
            }
            _ => return Err(FilebenchError::syntax(line, format!("{first:?} is no part of the language"))),
        }
    }
    Ok(tokens)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | ';' | '/' | '-' | '+' | '*' | '%' | '~')
}
