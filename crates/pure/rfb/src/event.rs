//! What a server's bytes mean.

use crate::frame::Damage;

/// What a server's bytes mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerEvent {
    /// The server has let us in; the picture is black until the first update.
    Ready {
        /// What the desktop is called.
        name: String,
    },
    /// An update of the picture is complete.
    Updated(Damage),
    /// The picture has another size, and is black until the next update.
    Resized,
    /// The server rings.
    Bell,
}
