//! What users have seen.

use virtbench_rfb::{Frame, Rectangle};

/// How long an operation took, in nanoseconds, from its last key or, where there is none, from the marker of its beginning.
/// Where nobody inside draws a marker, it is over with the last change of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// To the marker of its end.
    pub latency_ns: u64,
    /// To the first change of the picture elsewhere, if there was one.
    pub first_change_ns: Option<u64>,
    /// To the last change of the picture elsewhere before it stood still.
    pub last_change_ns: Option<u64>,
    /// By the session's own clock, where somebody is inside: shown, and used for nothing.
    pub inside_ns: Option<u64>,
    /// Within which `inside_ns` lies unless that clock runs fast: from the last key, or from the order, to the marker of the end.
    pub around_ns: Option<u64>,
    /// What arrived of the video, where one was played. `latency_ns` is then the time to the first of its frames.
    pub video: Option<VideoSeen>,
}

/// What arrived of a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VideoSeen {
    /// How many frames it has.
    pub frames: u32,
    /// Frames a second that it has.
    pub rate: u32,
    /// How many different ones were seen.
    pub seen: u32,
    /// From the first one seen to the last one, in nanoseconds.
    pub elapsed_ns: u64,
    /// The longest time from one frame to the next one, in nanoseconds.
    pub freeze_ns: u64,
    /// Pictures whose number could not be read: halves of two frames, or damaged.
    pub unreadable: u32,
}

/// An operation of a user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationDone {
    /// Whose, from nought on.
    pub user: u32,
    /// Its number in the day.
    pub operation: u8,
    /// When it began, in nanoseconds since the run began.
    pub begun_ns: u64,
    /// Whether it belongs to the first application, which all users start at once.
    pub is_storm: bool,
    /// How long it took; or why it failed.
    pub result: Result<Times, String>,
}

/// What is told while users work.
#[derive(Debug, Clone)]
pub enum UsersEvent {
    /// An operation is over. The picture is there if it failed, or took longer than all before.
    Done(OperationDone, Option<Screenshot>),
    /// A key was pressed and the picture changed after so many nanoseconds: the floor of everything interactive.
    Echo(u64),
    /// Parts of a user's picture change while nobody does anything; their changes are left out from here on.
    Restless {
        /// Whose desktop, from nought on.
        user: u32,
        /// Which parts.
        parts: Vec<Rectangle>,
    },
    /// A user's desktop is of no use any more.
    Gone {
        /// Whose desktop, from nought on.
        user: u32,
        /// What has happened, in words.
        why: String,
        /// The last picture.
        screenshot: Option<Screenshot>,
    },
}

/// A picture that is kept as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    width: u16,
    height: u16,
    pixels: Vec<u32>,
}

impl Screenshot {
    /// Of a frame; none if it has no pixels.
    #[must_use]
    pub fn of(frame: &Frame) -> Option<Self> {
        let pixels = frame.pixels();
        (!pixels.is_empty()).then(|| Self {
            width: frame.width(),
            height: frame.height(),
            pixels: pixels.to_vec(),
        })
    }

    /// As a PNG file.
    ///
    /// # Errors
    /// It has no pixels.
    pub fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width.into(), self.height.into());
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        let colours = |pixel: &u32| {
            let [_, red, green, blue] = pixel.to_be_bytes();
            [red, green, blue]
        };
        let data: Vec<u8> = self.pixels.iter().flat_map(colours).collect();
        writer.write_image_data(&data)?;
        writer.finish()?;
        Ok(bytes)
    }
}
