//! What is said of operations that had not ended when measuring did.

use virtbench_units::{Responses, format_duration_ns};

/// An operation that had waited for less is one of those that are always under way, in nanoseconds.
const USUAL_NS: u64 = 1_000_000_000;

/// A remark where one of them had waited for long beside the longest that an operation may take.
#[must_use]
pub fn unfinished_words(responses: &Responses, timeout_ns: u64, what: &str) -> Option<String> {
    let oldest_ns = responses.oldest_ns();
    (oldest_ns > timeout_ns.min(USUAL_NS)).then(|| {
        let oldest = format_duration_ns(oldest_ns / 1_000_000 * 1_000_000);
        format!(
            "{} {what} had not ended when measuring did, the oldest after {oldest}; they count with the time that they waited",
            responses.unfinished()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_units::{Ending, Window};

    #[test]
    fn what_is_always_under_way_needs_no_remark() {
        let window = Window { start_ns: 0, end_ns: 10_000_000_000 };
        let mut responses = Responses::new();
        responses.ended(window, 9_500_000_000, 10_100_000_000, Ending::Completed);
        assert_eq!(unfinished_words(&responses, 60_000_000_000, "operations"), None);
        assert!(unfinished_words(&responses, 400_000_000, "operations").is_some());
        responses.never_begun(window, 7_500_000_000);
        let said = unfinished_words(&responses, 60_000_000_000, "operations").unwrap();
        assert!(said.starts_with("2 operations had not ended") && said.contains("after 2s 500ms"), "{said}");
    }
}
