//! Whose a thing is. virtbench writes a [`Mark`] on all that it makes (files, folders, tables, domains, volumes, VMs) and removes or
//! changes only what carries one. A name proves nothing: people rename, copy and choose names alike.
//!
//! ```text
//! make a thing -> write a Mark on it     (marker file, table's row, domain's metadata, VM's annotation)
//! remove it    -> read the Mark, then ask: is it ours, and has its maker ended?
//! ```

#[cfg(unix)]
mod announced;
#[cfg(unix)]
mod file;
mod folder;
mod mark;
mod removal;
mod system;

#[cfg(unix)]
pub use announced::{Announced, remove_announced};
#[cfg(unix)]
pub use file::{FileMarkError, make_marked_file, read_attribute, remove_marked_file, write_attribute};
pub use folder::{
    FolderMarkError, MARK_FILE, SHELL_MARK, mark_folder, read_folder_mark, remove_marked_folder,
};
pub use mark::{Maker, Mark, Owner, RunId};
pub use removal::{Marked, Removal, remove_left_over, remove_of_run};
