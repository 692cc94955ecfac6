//! The words of a model file.

use std::collections::BTreeMap;

use thiserror::Error;
use virtbench_units::format_bytes;
use virtbench_workload::files::{Draw, ModelError};

use crate::MAX_FILE_BYTES;

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

/// What a variable or an attribute has.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// As it is written.
    Word(String),
    /// A distribution.
    Draw(Draw),
}

impl Value {
    /// A whole number; `k`, `m`, `g` and `t` are powers of 1024.
    pub(super) fn number(&self) -> Result<u64, String> {
        let Self::Word(word) = self else { return Err("a number is needed, not a distribution".into()) };
        number(word).ok_or_else(|| format!("{:?} is no number, such as 16, 4k or 1m", shorten(word)))
    }

    /// The same, of 32 bits.
    pub(super) fn small(&self) -> Result<u32, String> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| format!("{number} is too large"))
    }

    /// A number, or what it is drawn from.
    pub(super) fn draw(&self) -> Result<Draw, String> {
        match self {
            Self::Draw(draw) => Ok(draw.clone()),
            Self::Word(_) => self.number().map(Draw::Fixed),
        }
    }

    /// A name.
    pub(super) fn word(&self) -> Result<&str, String> {
        match self {
            Self::Word(word) => Ok(word),
            Self::Draw(_) => Err("a name is needed, not a distribution".into()),
        }
    }

    /// Whether it is said to be so.
    pub(super) fn truth(&self) -> Result<bool, String> {
        match self.word()? {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(format!("{:?} is neither true nor false", shorten(other))),
        }
    }
}

fn number(word: &str) -> Option<u64> {
    let (digits, shift) = match word.chars().last()?.to_ascii_lowercase() {
        'k' => (&word[..word.len() - 1], 10),
        'm' => (&word[..word.len() - 1], 20),
        'g' => (&word[..word.len() - 1], 30),
        't' => (&word[..word.len() - 1], 40),
        _ => (word, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Reads `cvar(...)`'s and `randvar(...)`'s attributes.
pub(super) fn distribution(attributes: &BTreeMap<String, String>) -> Result<Draw, String> {
    let kind = attributes.get("type").map_or("", String::as_str);
    // cvar puts a distribution's parameters into one attribute, randvar each into its own.
    let mut parameters: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, value) in attributes.iter().filter(|(key, _)| key.as_str() != "type") {
        if key == "parameters" {
            for parameter in value.split(';').filter(|part| !part.is_empty()) {
                let (name, value) = parameter.split_once(':').ok_or_else(|| {
                    format!("parameters are written name:value, not {:?}", shorten(parameter))
                })?;
                parameters.insert(name, value);
            }
        } else {
            parameters.insert(key, value);
        }
    }
    let mut take = |name: &str| -> Result<f64, String> {
        let text = parameters.remove(name).ok_or_else(|| format!("{} needs {name}", shorten(kind)))?;
        let value = number(text).map(|value| value as f64).or_else(|| text.parse().ok());
        value
            .filter(|value| value.is_finite())
            .ok_or_else(|| format!("{name}: {:?} is no number", shorten(text)))
    };
    let draw = match kind {
        "cvar-gamma" => Draw::Gamma { mean: take("mean")?, shape: take("gamma")? },
        // Older models give the shape in thousandths.
        "gamma" => Draw::Gamma { mean: take("mean")?, shape: take("gamma")? / 1000.0 },
        "cvar-uniform" => Draw::Uniform { least: take("lower")?, most: take("upper")? },
        "uniform" => Draw::Uniform { least: take("min")?, most: take("max")? },
        "cvar-exponential" => Draw::Exponential { mean: take("mean")? },
        "cvar-normal" => Draw::Normal { mean: take("mean")?, sigma: take("sigma")? },
        "cvar-lognormal" => Draw::LogNormal { mu: take("mu")?, sigma: take("sigma")? },
        "" => return Err("a distribution needs its type".into()),
        other => {
            return Err(format!(
                "distribution {:?} is not supported: there are cvar-gamma, cvar-uniform, cvar-exponential, \
                 cvar-normal, cvar-lognormal, gamma and uniform",
                shorten(other)
            ));
        }
    };
    if let Some(name) = parameters.keys().next() {
        return Err(format!("{:?} of a distribution is not supported", shorten(name)));
    }
    draw.validate()?;
    Ok(draw)
}

/// A model file that cannot be used.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum FilebenchError {
    /// It is too large.
    #[error("the file has {bytes} bytes; a model takes at most {}", format_bytes(MAX_FILE_BYTES as u64))]
    TooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// It is not a text.
    #[error("the file is not UTF-8 text")]
    NotText,
    /// A line that is not understood.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A variable was to be set that the model does not have.
    #[error("the model sets no ${0}: its variables stand at its beginning")]
    Variable(String),
    /// It can be read but makes no sense.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl FilebenchError {
    pub(super) fn syntax(line: usize, why: impl Into<String>) -> Self {
        Self::Line { line, why: why.into() }
    }
}
