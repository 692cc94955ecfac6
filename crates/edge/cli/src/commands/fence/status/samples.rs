//! What a daemon's OpenMetrics text says.

struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

/// Samples of families that are the fence's.
pub struct Samples(Vec<Sample>);

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
            let labels = labels.split(',').filter_map(label).collect();
            Some(Sample { name: name.to_owned(), labels, value: value.parse().ok()? })
        };
        Self(text.lines().filter_map(one).collect())
    }

    /// The sample of a family that has all these labels.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let has = |sample: &&Sample| {
            let own = |key: &str, value: &str| sample.labels.iter().any(|(k, v)| k == key && v == value);
            sample.name == name && labels.iter().all(|(key, value)| own(key, value))
        };
        self.0.iter().find(has).map(|sample| sample.value)
    }
}
