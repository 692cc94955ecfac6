//! A server's bytes, for tests.

#![allow(dead_code, reason = "each test uses a part of it")]

use flate2::{Compress, Compression, FlushCompress};
use virtbench_rfb::{Client, Limits, RfbError, ServerEvent};

/// Up to the size of the picture: version 3.8, no password.
pub fn greeting(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = b"RFB 003.008\n".to_vec();
    bytes.extend([1, 1]);
    bytes.extend([0; 4]);
    bytes.extend(init(width, height));
    bytes
}

pub fn init(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = [width.to_be_bytes(), height.to_be_bytes()].concat();
    bytes.extend([0; 16]);
    bytes.extend([0, 0, 0, 4]);
    bytes.extend(b"desk");
    bytes
}

pub fn client() -> Client {
    Client::new(None, Limits::default())
}

/// A client that a server of this size has let in.
pub fn ready(width: u16, height: u16) -> Client {
    let mut client = client();
    let events = client.take(&greeting(width, height)).unwrap();
    assert_eq!(events, [ServerEvent::Ready { name: "desk".into() }]);
    client
}

pub fn update(rectangles: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0, 0];
    bytes.extend(u16::try_from(rectangles.len()).unwrap().to_be_bytes());
    bytes.extend(rectangles.concat());
    bytes
}

pub fn rectangle(place: [u16; 4], encoding: i32, data: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = place.iter().flat_map(|number| number.to_be_bytes()).collect();
    bytes.extend(encoding.to_be_bytes());
    bytes.extend(data);
    bytes
}

pub fn pixel(colour: u32) -> [u8; 4] {
    colour.to_le_bytes()
}

pub fn short(colour: u32) -> [u8; 3] {
    let [blue, green, red, _] = colour.to_le_bytes();
    [blue, green, red]
}

/// ZRLE's data: its length, then one more part of the stream.
pub fn packed(stream: &mut Compress, plain: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(plain.len() + 1024);
    stream.compress_vec(plain, &mut data, FlushCompress::Sync).unwrap();
    let mut bytes = u32::try_from(data.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(data);
    bytes
}

pub fn stream() -> Compress {
    Compress::new(Compression::default(), true)
}

pub fn protocol_error(result: Result<Vec<ServerEvent>, RfbError>) -> String {
    match result {
        Err(RfbError::Protocol(why)) => why,
        other => panic!("{other:?}"),
    }
}
