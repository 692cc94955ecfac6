//! Lines of a parameter file as statements: lists of `name=value`.

use super::super::{ImportError, Location};

/// Parameters of one statement, and bytes of a name.
const MOST_PARAMETERS: usize = 1000;
pub const MOST_BYTES: usize = 100;

/// `name=value`, as it stands in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// In small letters.
    pub name: String,
    /// Without quotes.
    pub value: String,
    /// The line that it stands in, from 1.
    pub line: usize,
}

impl Parameter {
    /// Where it stands.
    pub fn at(&self) -> Location {
        Location::line(self.line)
    }

    /// What is wrong with it.
    pub fn wrong(&self, why: &str) -> ImportError {
        ImportError::Syntax { at: self.at(), why: format!("{}={:.60}: {why}", self.name, self.value) }
    }
}

/// The statements of a text. A comment begins a line with `*`, `#` or `/`, or follows the parameters after a blank. A line that ends with
/// a comma goes on in the next one.
pub fn statements(text: &str) -> Result<Vec<Vec<Parameter>>, ImportError> {
    let mut all = Vec::new();
    let mut open: Vec<Parameter> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let (number, line) = (number + 1, line.trim());
        if line.is_empty() || line.starts_with(['*', '#', '/']) {
            continue;
        }
        let (parameters, goes_on) = parameters(line, number)?;
        open.extend(parameters);
        if open.len() > MOST_PARAMETERS {
            let (at, what) = (Location::line(number), "parameters of a statement");
            return Err(ImportError::TooMany { at, what, most: MOST_PARAMETERS });
        }
        if !goes_on {
            all.push(std::mem::take(&mut open));
        }
    }
    if !open.is_empty() {
        all.push(open);
    }
    Ok(all)
}

/// The parameters of a line, and whether the next line goes on with them.
fn parameters(line: &str, number: usize) -> Result<(Vec<Parameter>, bool), ImportError> {
    let mut found = Vec::new();
    let (mut rest, mut goes_on) = (line, false);
    while !rest.is_empty() {
        let (word, behind) = word(rest);
        let named = word.split_once('=').filter(|(name, _)| name.len() <= MOST_BYTES);
        let (name, value) = named.ok_or_else(|| ImportError::Syntax {
            at: Location::line(number),
            why: format!("{:?} is no parameter: write name=value", word.chars().take(40).collect::<String>()),
        })?;
        let value = value.trim_matches(['"', '\'']).to_owned();
        found.push(Parameter { name: name.trim().to_ascii_lowercase(), value, line: number });
        goes_on = behind.starts_with(',') && behind[1..].trim().is_empty();
        rest = behind.strip_prefix(',').unwrap_or_default();
    }
    Ok((found, goes_on))
}

/// The text up to the next comma outside of parentheses and quotes, or to a blank, and what is behind it.
fn word(text: &str) -> (&str, &str) {
    let (mut depth, mut quote) = (0_u32, None);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('(', None) => depth += 1,
            (')', None) => depth = depth.saturating_sub(1),
            (',' | ' ' | '\t', None) if depth == 0 => return text.split_at(at),
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<Vec<String>> {
        let shown = |one: &Parameter| format!("{}={}@{}", one.name, one.value, one.line);
        statements(text).unwrap().iter().map(|all| all.iter().map(shown).collect()).collect()
    }

    #[test]
    fn statements_have_comments_lists_and_further_lines() {
        let text = "* comment\nsd=sd1,lun=/dev/x,threads=4  and a comment\n\nwd=wd1,sd=(sd1,sd2),\n  xfersize=(4k,50,8k,50)\n";
        assert_eq!(
            names(text),
            [
                vec!["sd=sd1@2", "lun=/dev/x@2", "threads=4@2"],
                vec!["wd=wd1@4", "sd=(sd1,sd2)@4", "xfersize=(4k,50,8k,50)@5"]
            ]
        );
        assert_eq!(names("RD=a,lun=\"a, b\""), [vec!["rd=a@1", "lun=a, b@1"]]);
    }

    #[test]
    fn what_is_no_parameter_is_named_with_its_line() {
        let error = statements("sd=a,lun=b\nnonsense here\n").unwrap_err().to_string();
        assert_eq!(error, "line 2: \"nonsense\" is no parameter: write name=value");
        assert!(statements("sd=a,(((\n").is_err());
    }
}
