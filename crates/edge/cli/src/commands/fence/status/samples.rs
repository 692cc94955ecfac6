//! What a daemon's OpenMetrics text says.

/// Lines of families that are the fence's.
pub struct Samples(Vec<(String, Vec<(String, String)>, f64)>);

impl Samples {
    /// `virtbench_fence_NAME{label="value",...} V`; names of disks have neither commas nor quotes.
    pub fn parse(text: &str) -> Self {
        let one = |line: &str| {
            let (name, rest) = line.strip_prefix("virtbench_fence_")?.split_once('{')?;
            let (labels, value) = rest.split_once("} ")?;
            let label = |label: &str| {
                let (name, value) = label.split_once('=')?;
                Some((name.to_owned(), value.trim_matches('"').to_owned()))
            };
            Some((name.to_owned(), labels.split(',').filter_map(label).collect(), value.parse().ok()?))
        };
        Self(text.lines().filter_map(one).collect())
    }

    /// The sample of a family that has all these labels.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |(found, own, _): &&(String, Vec<(String, String)>, f64)| {
            found == name && labels.iter().all(|(key, value)| own.iter().any(|(k, v)| k == key && v == value))
        };
        self.0.iter().find(has).map(|(.., value)| *value)
    }
}
