//! Which of the host's processors appliances are held to.

use virtbench_lab::{processors_in_turn, usable_processors};

use crate::study_error::StudyError;

/// The processors of the appliance of this number, of those that this process may use: the first one has the first ones, on every
/// side the same. Others have those that follow, as long as there are any, then the first ones again.
///
/// # Errors
/// There are fewer than one appliance needs.
pub(crate) fn processors_of(number: usize, vcpus: u32) -> Result<Vec<usize>, StudyError> {
    let allowed = usable_processors().map_err(|error| {
        StudyError::input(format!("this process's processors cannot be asked for: {error}"))
    })?;
    if allowed.len() < vcpus as usize {
        return Err(StudyError::input(format!(
            "a side of {vcpus} processors: this process may use {}, and both sides are held to the same ones",
            allowed.len()
        )));
    }
    Ok(processors_in_turn(&allowed, number, vcpus))
}
