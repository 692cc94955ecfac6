//! Numbers of RFC 6143, and what a client sends.

use crate::rectangle::Rectangle;

pub(crate) const SECURITY_NONE: u8 = 1;
pub(crate) const SECURITY_VNC: u8 = 2;

pub(crate) const RAW: i32 = 0;
pub(crate) const COPY_RECT: i32 = 1;
pub(crate) const HEXTILE: i32 = 5;
pub(crate) const ZRLE: i32 = 16;
pub(crate) const DESKTOP_SIZE: i32 = -223;
pub(crate) const LAST_RECT: i32 = -224;
/// The best first.
pub(crate) const ENCODINGS: [i32; 6] = [ZRLE, HEXTILE, COPY_RECT, RAW, DESKTOP_SIZE, LAST_RECT];

/// Messages of the server.
pub(crate) const UPDATE: u8 = 0;
pub(crate) const COLOURS: u8 = 1;
pub(crate) const BELL: u8 = 2;
pub(crate) const CUT_TEXT: u8 = 3;

/// 32 bits a pixel of which 24 count, least significant byte first, true colour; maxima 255; red from bit 16, green from 8, blue
/// from 0.
pub(crate) const PIXEL_FORMAT: [u8; 16] = [32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0];
pub(crate) const PIXEL_BYTES: usize = 4;

pub(crate) fn set_pixel_format(out: &mut Vec<u8>) {
    out.extend([0, 0, 0, 0]);
    out.extend(PIXEL_FORMAT);
}

pub(crate) fn set_encodings(out: &mut Vec<u8>) {
    let [.., count] = ENCODINGS.len().to_be_bytes();
    out.extend([2, 0, 0, count]);
    out.extend(ENCODINGS.iter().flat_map(|encoding| encoding.to_be_bytes()));
}

pub(crate) fn request_update(out: &mut Vec<u8>, part: Rectangle, incremental: bool) {
    out.extend([3, u8::from(incremental)]);
    out.extend([part.x, part.y, part.width, part.height].iter().flat_map(|number| number.to_be_bytes()));
}

pub(crate) fn key(out: &mut Vec<u8>, key: u32, pressed: bool) {
    out.extend([4, u8::from(pressed), 0, 0]);
    out.extend(key.to_be_bytes());
}

pub(crate) fn pointer(out: &mut Vec<u8>, buttons: u8, x: u16, y: u16) {
    out.extend([5, buttons]);
    out.extend(x.to_be_bytes());
    out.extend(y.to_be_bytes());
}
