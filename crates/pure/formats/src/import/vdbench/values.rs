//! Values as Vdbench writes them.

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
