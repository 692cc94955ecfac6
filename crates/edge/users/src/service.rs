//! The seam between the loop of users and what they ask for.

use crate::fault::Fault;

/// Something that users ask for.
pub trait Service: Sync {
    /// A user of it.
    type User: ServiceUser;

    /// Names of the kinds of operation; there is one at least.
    fn kinds(&self) -> Vec<String>;

    /// Looks at the server, makes what users will ask for, and gives what the server says of itself.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn prepare(&self) -> impl Future<Output = Result<Option<String>, Fault>>;

    /// User number `number`, not connected yet, whose choices the seed determines.
    fn user(&self, number: u32, seed: u64) -> Self::User;
}

/// A user with a connection.
pub trait ServiceUser {
    /// Connects.
    ///
    /// # Errors
    /// Why not.
    fn connect(&mut self) -> impl Future<Output = Result<(), Fault>>;

    /// Chooses what to do next: the number of its kind.
    fn choose(&mut self) -> usize;

    /// Does it; connects first where the connection is gone. Dropped in the middle where that takes too long: the user then has
    /// no connection.
    ///
    /// # Errors
    /// Why it failed.
    fn perform(&mut self, kind: usize) -> impl Future<Output = Result<(), Fault>>;
}
