//! How far a build is.

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for another build.
    Waiting,
    /// Fetching lists of packages.
    Lists,
    /// Finding out which packages are needed.
    Resolving,
    /// Fetching packages.
    Downloading,
    /// Unpacking those that the distribution does not work without.
    Unpacking,
    /// Installing and configuring packages.
    Configuring,
    /// Putting files, users and scripts of the recipe into it.
    Finishing,
    /// Making the image.
    Image,
}

impl Phase {
    /// Its name, for people and programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Lists => "package lists",
            Self::Resolving => "resolving",
            Self::Downloading => "downloading",
            Self::Unpacking => "unpacking",
            Self::Configuring => "configuring",
            Self::Finishing => "finishing",
            Self::Image => "image",
        }
    }
}

/// How far a build is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// How much of it is done, from 0 to 1, where that is known.
    pub share: Option<f64>,
    /// With what.
    pub detail: String,
}

impl Progress {
    pub(crate) fn of(phase: Phase) -> Self {
        Self { phase, share: None, detail: String::new() }
    }
}

/// Reads a build's progress from what its programs say.
#[derive(Debug)]
pub(crate) struct Reader {
    phase: Phase,
    packages: usize,
    configured: usize,
}

impl Reader {
    /// Of a build of so many packages.
    pub fn new(packages: usize) -> Self {
        Self { phase: Phase::Unpacking, packages, configured: 0 }
    }

    /// What this line tells.
    pub fn read(&mut self, line: &str) -> Option<Progress> {
        let phase = match line {
            "I: extracting archives..." => Some(Phase::Unpacking),
            "I: installing essential packages..." => Some(Phase::Configuring),
            "virtbench: finishing" => Some(Phase::Finishing),
            "virtbench: image" => Some(Phase::Image),
            _ => None,
        };
        if let Some(phase) = phase {
            self.phase = phase;
            return Some(Progress::of(phase));
        }
        let package = line.strip_prefix("Setting up ")?.split([' ', ':']).next()?;
        self.configured += 1;
        let share = self.configured as f64 / self.packages.max(1) as f64;
        Some(Progress { phase: self.phase, share: Some(share.min(1.0)), detail: package.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_and_packages_are_read_from_what_is_said() {
        let mut reader = Reader::new(4);
        let read =
            |reader: &mut Reader, line: &str| reader.read(line).map(|now| (now.phase, now.share, now.detail));
        let phase = read(&mut reader, "I: installing essential packages...");
        assert_eq!(phase, Some((Phase::Configuring, None, String::new())));
        let package = read(&mut reader, "Setting up libc6:amd64 (2.36-9) ...");
        assert_eq!(package, Some((Phase::Configuring, Some(0.25), "libc6".into())));
        assert_eq!(read(&mut reader, "Unpacking passwd (1:4.13) ..."), None);
        assert_eq!(read(&mut reader, "virtbench: image").map(|now| now.0), Some(Phase::Image));
    }
}
