//! How the API names its objects.

use std::fmt;
use std::sync::Arc;

/// A managed object reference: what kind of object it is and which.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    kind: Arc<str>,
    id: Arc<str>,
}

impl Reference {
    /// The object of this kind with this identifier, such as `VirtualMachine` and `vm-12`.
    #[must_use]
    pub fn new(kind: &str, id: &str) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }

    /// What kind of object.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its name among all of its kind, such as `vm-42`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}
