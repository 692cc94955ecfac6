//! The folder that a login made for this program: gone as soon as the program runs.

use std::path::Path;

use crate::work_folder::end_login;

/// Nothing is left to be removed later.
#[derive(Debug)]
pub(crate) struct Departure;

impl Departure {
    /// Removes the folder, if there is one.
    pub(crate) fn begin(login: Option<&Path>) -> Self {
        if let Some(login) = login {
            end_login(login);
        }
        Self
    }
}
