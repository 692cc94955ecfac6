//! Costs of platforms that virtbench brings along, for whom has none of them: each with where and when it was measured.

use virtbench_record::Costs;

use super::costs::parse_costs;

/// By their names. Another comes of `virtbench costs --export NAME --out FILE` on a host that has the platform.
const PLATFORMS: [(&str, &str); 2] = [
    ("tcg", include_str!("../../../../../../docs/data/platforms/tcg.json")),
    ("uml", include_str!("../../../../../../docs/data/platforms/uml.json")),
];

/// How they are called.
#[must_use]
pub fn platform_names() -> Vec<&'static str> {
    PLATFORMS.map(|(name, _)| name).to_vec()
}

/// The costs of the platform of this name.
///
/// # Errors
/// There is none; in words.
pub fn platform_costs(name: &str) -> Result<Costs, String> {
    let found = PLATFORMS.into_iter().find(|(own, _)| *own == name);
    let (_, text) = found
        .ok_or_else(|| format!("there is no platform {name}: choose from {}", platform_names().join(", ")))?;
    parse_costs(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_platform_says_where_and_when_it_was_measured() {
        for name in platform_names() {
            let costs = platform_costs(name).unwrap();
            let origin = costs.origin.unwrap();
            assert!(origin.platform == name && origin.measured.starts_with("20"), "{origin:?}");
            assert!(!costs.host.cpu.is_empty() && costs.references.len() > 20);
        }
        assert!(platform_costs("hyper").unwrap_err().contains("tcg, uml"));
    }
}
