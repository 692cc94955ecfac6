//! What the head of a table of results says of all its rows.

/// Names and values in their order: title, source, host, ...
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableFacts(pub Vec<(String, String)>);

impl TableFacts {
    /// A fact by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
