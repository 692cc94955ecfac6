//! Of several runs the one that counts.

/// The one in the middle by a figure, the upper of two; `None` of none.
pub(super) fn middle<T>(mut runs: Vec<T>, figure: impl Fn(&T) -> f64) -> Option<T> {
    runs.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    let place = runs.len() / 2;
    (place < runs.len()).then(|| runs.swap_remove(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_in_the_middle_counts() {
        assert_eq!(middle(vec![3.0, 1.0, 2.0], |run| *run), Some(2.0));
        assert_eq!(middle(vec![1.0, 4.0], |run| *run), Some(4.0));
        assert_eq!(middle(Vec::<f64>::new(), |run| *run), None);
    }
}
