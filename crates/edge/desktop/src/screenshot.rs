//! A picture that is kept.

use virtbench_rfb::Frame;

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
