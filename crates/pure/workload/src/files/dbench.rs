//! dbench: clients that replay what a file server was asked by one ([ESX Disk 2003], section 4).

use serde::{Deserialize, Serialize};

use super::model::{FileLoadError, range};

/// The most clients.
pub const MAX_CLIENTS: u32 = 1024;
/// The most operations of a loadfile; the one that Debian ships has 458,344.
pub const MAX_DBENCH_OPS: usize = 4_000_000;

/// What a client asks for. Names are numbers of [`DbenchSpec::names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DbenchAction {
    /// Opens or creates a file or folder.
    NtCreateX {
        name: u32,
        options: u32,
        disposition: u32,
        handle: u32,
    },
    Close {
        handle: u32,
    },
    ReadX {
        handle: u32,
        offset: u64,
        size: u32,
    },
    WriteX {
        handle: u32,
        offset: u64,
        size: u32,
    },
    Flush {
        handle: u32,
    },
    LockX {
        handle: u32,
        offset: u64,
        size: u32,
    },
    UnlockX {
        handle: u32,
        offset: u64,
        size: u32,
    },
    QueryPathInformation {
        name: u32,
    },
    QueryFileInformation {
        handle: u32,
    },
    QueryFsInformation,
    SetFileInformation {
        handle: u32,
    },
    /// Lists at most so many names of a folder.
    FindFirst {
        name: u32,
        most: u32,
    },
    Unlink {
        name: u32,
    },
    Rename {
        from: u32,
        to: u32,
    },
    Mkdir {
        name: u32,
    },
    Rmdir {
        name: u32,
    },
    /// Deletes a folder with all it holds.
    Deltree {
        name: u32,
    },
}

impl DbenchAction {
    /// The names of all of them as loadfiles have them, in the order in which dbench reports them.
    pub const NAMES: [&'static str; 17] = [
        "Deltree",
        "Flush",
        "Close",
        "LockX",
        "Rmdir",
        "Mkdir",
        "Rename",
        "ReadX",
        "WriteX",
        "Unlink",
        "UnlockX",
        "FIND_FIRST",
        "SET_FILE_INFORMATION",
        "QUERY_FILE_INFORMATION",
        "QUERY_PATH_INFORMATION",
        "QUERY_FS_INFORMATION",
        "NTCreateX",
    ];

    /// Its place among [`DbenchAction::NAMES`].
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::Deltree { .. } => 0,
            Self::Flush { .. } => 1,
            Self::Close { .. } => 2,
            Self::LockX { .. } => 3,
            Self::Rmdir { .. } => 4,
            Self::Mkdir { .. } => 5,
            Self::Rename { .. } => 6,
            Self::ReadX { .. } => 7,
            Self::WriteX { .. } => 8,
            Self::Unlink { .. } => 9,
            Self::UnlockX { .. } => 10,
            Self::FindFirst { .. } => 11,
            Self::SetFileInformation { .. } => 12,
            Self::QueryFileInformation { .. } => 13,
            Self::QueryPathInformation { .. } => 14,
            Self::QueryFsInformation => 15,
            Self::NtCreateX { .. } => 16,
        }
    }
}

/// A line of a loadfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DbenchOp {
    /// When it is due, in nanoseconds since the client began the file; at once where absent.
    pub due_ns: Option<u64>,
    /// What is asked for.
    pub action: DbenchAction,
    /// Whether it succeeded when it was recorded, and so should again.
    pub succeeds: bool,
}

/// A loadfile and how many clients replay it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DbenchSpec {
    /// Clients, each with a folder of its own.
    pub clients: u32,
    /// Paths, relative to a client's share, with `/`. `client1` in them stands for the client's name.
    #[serde(with = "super::packed::names", default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub names: Vec<String>,
    /// The operations, which are begun again when they are through.
    #[serde(with = "super::packed::ops", default)]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub ops: Vec<DbenchOp>,
    /// Bytes per second that each client may move; no limit where absent.
    pub client_bytes_per_second: Option<f64>,
}

impl DbenchSpec {
    /// The same without the loadfile itself, which every record would repeat.
    pub(crate) fn without_loadfile(&self) -> Self {
        Self { names: Vec::new(), ops: Vec::new(), ..self.clone() }
    }

    pub(super) fn validate(&self) -> Result<(), FileLoadError> {
        range("threads", self.clients.into(), 1, MAX_CLIENTS.into())?;
        range("operations of the loadfile", self.ops.len() as u64, 1, MAX_DBENCH_OPS as u64)?;
        range("names of the loadfile", self.names.len() as u64, 0, 2 * MAX_DBENCH_OPS as u64)?;
        let inside = |name: &String| {
            let parts = || name.split('/').filter(|part| !part.is_empty());
            parts().all(|part| part != ".." && part != ".") && !name.contains('\0')
        };
        let known = |name: u32| (name as usize) < self.names.len();
        let all_known = self.ops.iter().all(|op| match op.action {
            DbenchAction::NtCreateX { name, .. }
            | DbenchAction::QueryPathInformation { name }
            | DbenchAction::FindFirst { name, .. }
            | DbenchAction::Unlink { name }
            | DbenchAction::Mkdir { name }
            | DbenchAction::Rmdir { name }
            | DbenchAction::Deltree { name } => known(name),
            DbenchAction::Rename { from, to } => known(from) && known(to),
            _ => true,
        });
        if !self.names.iter().all(inside) || !all_known {
            let why = "a name leaves the client's folder or does not exist";
            return Err(FileLoadError::Useless { flag: "the loadfile", why });
        }
        Ok(())
    }
}
