//! Numbers of users, desktops or whatever is raised.

/// Numbers with commas between them, ascending and each once; none where the text is `auto`.
///
/// # Errors
/// One of them is no number from 1 to `most`: what it is, in the words of `what`.
pub fn auto_or_list(text: &str, what: &str, most: u32) -> Result<Option<Vec<u32>>, String> {
    if text == "auto" {
        return Ok(None);
    }
    let number = |word: &str| {
        let number = word.trim().parse::<u32>().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| {
            format!("{word:?} is no number of {what} from 1 to {most}: write auto, or such as 1,4,16")
        })
    };
    let mut numbers = text.split(',').map(number).collect::<Result<Vec<u32>, String>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(Some(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_and_stand_once() {
        assert_eq!(auto_or_list("auto", "users", 9).unwrap(), None);
        assert_eq!(auto_or_list("4, 1,4", "users", 9).unwrap(), Some(vec![1, 4]));
        for wrong in ["0", "10", "1,,2", "all", ""] {
            let refused = auto_or_list(wrong, "users", 9).unwrap_err();
            assert!(refused.contains("no number of users from 1 to 9"), "{refused}");
        }
    }
}
