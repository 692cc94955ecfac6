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

/// `4k`, `1g`, `512`: bytes, by powers of 1024.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(['b', 'k', 'm', 'g', 't']);
    let factor: u64 = match &text[digits.len()..] {
        "" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        "t" | "tb" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// `30`, `5m`, `2h`: seconds.
pub fn seconds(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let (digits, factor) = match text.char_indices().next_back()? {
        (at, 's') => (&text[..at], 1),
        (at, 'm') => (&text[..at], 60),
        (at, 'h') => (&text[..at], 3600),
        _ => (text.as_str(), 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// A part in percent, 0 to 100.
pub fn percent(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent))
}

/// `a` or `(a,b,c)`: each of them.
pub fn list(text: &str) -> Vec<&str> {
    let inner = text.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
    inner.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// Numbers of a loop: `4`, `(1,2,4)`, `(1-16,d)` for doubling, `(5-25,5)` for steps.
pub fn numbers(text: &str, most: usize) -> Option<Vec<u64>> {
    let items = list(text);
    if let [range, step] = items[..]
        && let Some((first, last)) = range.split_once('-')
    {
        let (first, last) = (bytes(first)?, bytes(last)?);
        let mut all = Vec::new();
        let mut next = first;
        while next <= last && all.len() <= most {
            all.push(next);
            let further = if step.eq_ignore_ascii_case("d") {
                next.checked_mul(2)
            } else {
                next.checked_add(bytes(step)?)
            };
            match further {
                Some(further) if further > next => next = further,
                _ => break,
            }
        }
        return (!all.is_empty() && all.len() <= most).then_some(all);
    }
    let all: Option<Vec<u64>> = items.into_iter().map(bytes).collect();
    all.filter(|all| !all.is_empty() && all.len() <= most)
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

    #[test]
    fn sizes_times_and_loops_are_as_vdbench_reads_them() {
        assert_eq!(
            ["4k", "1g", "512", "2T"].map(bytes),
            [Some(4096), Some(1 << 30), Some(512), Some(2 << 40)]
        );
        assert_eq!([bytes("x"), bytes(""), bytes("9999999999t")], [None; 3]);
        assert_eq!(["30", "5m", "2h", "7s"].map(seconds), [Some(30), Some(300), Some(7200), Some(7)]);
        assert_eq!(numbers("(1,2,8)", 9), Some(vec![1, 2, 8]));
        assert_eq!(numbers("(1-9,d)", 9), Some(vec![1, 2, 4, 8]));
        assert_eq!(numbers("(5-25,5)", 9), Some(vec![5, 10, 15, 20, 25]));
        assert_eq!(
            [numbers("(1-9,0)", 9), numbers("(1-100,1)", 9), numbers("()", 9)],
            [Some(vec![1]), None, None]
        );
    }
}
