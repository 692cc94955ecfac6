//! Pictures that are kept of a number of desktops.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use virtbench_desktop::Screenshot;
use virtbench_record::DesktopPicture;

/// Pictures of failures that are kept.
const FAILURES: usize = 3;
/// A longer picture is left out, in bytes: records are read as a whole.
const LONGEST: usize = 1 << 20;

/// The one of the operation that took longest beside its limit, and some of failures.
#[derive(Default)]
pub(super) struct Pictures {
    worst: Option<(u32, String, Screenshot)>,
    failures: Vec<(u32, String, Screenshot)>,
}

impl Pictures {
    pub(super) fn worst(&mut self, user: u32, what: String, picture: Option<Screenshot>) {
        self.worst = picture.map(|picture| (user, what, picture)).or_else(|| self.worst.take());
    }

    pub(super) fn failure(&mut self, user: u32, what: String, picture: Option<Screenshot>) {
        if self.failures.len() < FAILURES {
            self.failures.extend(picture.map(|picture| (user, what, picture)));
        }
    }

    pub(super) fn kept(self) -> Vec<DesktopPicture> {
        let all = self.worst.into_iter().chain(self.failures);
        let kept = |(user, what, picture): (u32, String, Screenshot)| {
            let png = picture.png().ok().filter(|png| png.len() <= LONGEST)?;
            Some(DesktopPicture { user, what, png: BASE64_STANDARD.encode(png) })
        };
        all.filter_map(kept).collect()
    }
}
