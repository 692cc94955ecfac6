//! How many desktops fit ([Platform 2014], sections III.D and IV.D): the plan of the study.

use serde::{Deserialize, Serialize};

/// Which limit holds for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DesktopGroup {
    /// Interactive.
    A,
    /// Slow: opening, saving, compressing.
    B,
}

impl DesktopGroup {
    /// Both.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// Its letter.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// An operation that users do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopOperation {
    /// Of which application.
    pub application: String,
    /// Its name there.
    pub operation: String,
    /// Which limit holds for it.
    pub group: DesktopGroup,
}

/// How many desktops there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DesktopNumbers {
    /// Raised until users are no longer content.
    Auto {
        /// The most that are tried.
        most: u32,
    },
    /// These, one after the other.
    Given(Vec<u32>),
}

/// What a link between users and desktops adds to each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopLink {
    /// How much later everything arrives, in nanoseconds.
    pub delay_ns: u64,
    /// Bits a second at most.
    pub rate: Option<u64>,
    /// How many of a million segments are lost, and come later because they are sent again.
    #[serde(default)]
    pub loss_ppm: u32,
}

/// A part of a picture, in pixels from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PicturePart {
    /// Width.
    pub width: u16,
    /// Height.
    pub height: u16,
    /// Left edge.
    pub x: u16,
    /// Upper edge.
    pub y: u16,
}

impl std::fmt::Display for PicturePart {
    /// As X has it: `WIDTHxHEIGHT+X+Y`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}+{}+{}", self.width, self.height, self.x, self.y)
    }
}

impl std::str::FromStr for PicturePart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (size, place) = text.split_once('+')?;
            let ((width, height), (x, y)) = (size.split_once('x')?, place.split_once('+')?);
            let [width, height, x, y] = [width, height, x, y].map(|number| number.parse::<u16>().ok());
            Some(Self { width: width?, height: height?, x: x?, y: y? })
        };
        let part = read().filter(|part| part.width > 0 && part.height > 0);
        part.ok_or_else(|| {
            format!("{text:?} is no part of a picture: write WIDTHxHEIGHT+X+Y, such as 120x30+900+0")
        })
    }
}

/// What a study of desktops set out to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DesktopsPlan {
    /// The desktop: a recipe's name; nothing of existing desktops.
    pub recipe: String,
    /// Digest of its root, in hexadecimal digits; nothing of existing desktops.
    pub root: String,
    /// Where existing desktops serve VNC, in the order of users. Nobody is inside them, so their operations end with the last change
    /// of the picture. None where desktops are started from the recipe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Parts of every picture whose changes say nothing of an operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masks: Vec<PicturePart>,
    /// The link that is made between users and desktops, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<DesktopLink>,
    /// What users do: the day's name.
    pub day: String,
    /// The day's file.
    pub day_file: String,
    /// Its operations; records name them by their places here.
    pub operations: Vec<DesktopOperation>,
    /// Limit of group A, in nanoseconds.
    pub limit_a_ns: u64,
    /// Limit of group B, in nanoseconds.
    pub limit_b_ns: u64,
    /// The share of operations that have to be within the limit, from 0 to 1.
    pub share: f64,
    /// The share of operations that may fail, from 0 to 1.
    pub errors: f64,
    /// Whether each desktop is a VM; else a session of its own on this host.
    pub vm: bool,
    /// How many.
    pub desktops: DesktopNumbers,
    /// Repetitions of each number.
    pub repetitions: u32,
    /// How long users work, in nanoseconds.
    pub time_ns: u64,
    /// Processors of each desktop.
    pub vcpus: u32,
    /// Memory of each, in bytes.
    pub memory_bytes: u64,
    /// Seed of the users' orders and think times.
    pub seed: u64,
    /// What executes the VMs' instructions: `auto`, `kvm` or `tcg`.
    pub accelerator: String,
}

impl DesktopsPlan {
    /// Whether desktops are there already, and nobody is inside.
    #[must_use]
    pub fn are_existing(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// The limit of a group, in nanoseconds.
    #[must_use]
    pub fn limit_ns(&self, group: DesktopGroup) -> u64 {
        match group {
            DesktopGroup::A => self.limit_a_ns,
            DesktopGroup::B => self.limit_b_ns,
        }
    }
}
