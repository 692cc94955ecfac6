//! A table below a figure.

/// Texts in rows and columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// A title for each column.
    pub(crate) header: Vec<String>,
    /// The first columns are names, the others numbers.
    pub(crate) rows: Vec<Vec<String>>,
    /// How many of the columns are names.
    pub(crate) names: usize,
    /// What a reader must know of it.
    pub(crate) note: String,
}
