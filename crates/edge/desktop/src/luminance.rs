//! How light a pixel is.

/// How light a pixel is, from 0 to 255: ITU-R BT.601, as lossy encodings reckon it.
pub(crate) fn luminance(pixel: u32) -> u8 {
    let [_, red, green, blue] = pixel.to_be_bytes().map(u32::from);
    u8::try_from((red * 77 + green * 150 + blue * 29) >> 8).unwrap_or(u8::MAX)
}
