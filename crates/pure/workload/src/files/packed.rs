//! A loadfile's names and operations on the wire: half a million operations are 40 MB of JSON, and less
//! than a megabyte packed. Base64 of deflated bytes; numbers in LEB128, seven bits a byte.

use std::io::{Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

use super::dbench::{DbenchAction, DbenchOp, MAX_DBENCH_OPS};

/// The most bytes that packed text may become.
const MAX_BYTES: u64 = 128 << 20;

fn pack<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(S::Error::custom)?;
    serializer.serialize_str(&BASE64.encode(packed))
}

fn unpack<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let packed = BASE64.decode(text).map_err(D::Error::custom)?;
    let mut bytes = Vec::new();
    DeflateDecoder::new(packed.as_slice())
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(D::Error::custom)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(D::Error::custom("a loadfile is larger than any that is read"));
    }
    Ok(bytes)
}

/// Names, each ended by a NUL, which none of them contains.
pub(super) mod names {
    use super::{Deserializer, MAX_DBENCH_OPS, Serializer, pack, unpack};
    use serde::de::Error as _;

    /// Writes them.
    pub(crate) fn serialize<S: Serializer>(names: &[String], serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = names.iter().flat_map(|name| name.bytes().chain([0])).collect();
        pack(&bytes, serializer)
    }

    /// Reads them.
    pub(crate) fn deserialize<'de, T: Deserializer<'de>>(deserializer: T) -> Result<Vec<String>, T::Error> {
        let text = String::from_utf8(unpack(deserializer)?).map_err(T::Error::custom)?;
        let names: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
        if names.len() > 2 * MAX_DBENCH_OPS {
            return Err(T::Error::custom("a loadfile has more names than any that is read"));
        }
        Ok(names)
    }
}

/// Operations, each its kind, the moment it is due and its numbers.
pub(super) mod ops {
    use super::{DbenchOp, Deserializer, Serializer, pack, read, unpack, write};

    /// Writes them.
    pub(crate) fn serialize<S: Serializer>(ops: &[DbenchOp], serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(ops.len() * 8);
        ops.iter().for_each(|op| write(op, &mut bytes));
        pack(&bytes, serializer)
    }

    /// Reads them.
    pub(crate) fn deserialize<'de, T: Deserializer<'de>>(deserializer: T) -> Result<Vec<DbenchOp>, T::Error> {
        read(&unpack(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A bit each for a moment and for success, above the kind.
const IS_DUE: u64 = 1 << 5;
const SUCCEEDS: u64 = 1 << 6;

#[allow(clippy::cast_possible_truncation)]
fn write(op: &DbenchOp, bytes: &mut Vec<u8>) {
    let flag = |bit: u64, set: bool| if set { bit } else { 0 };
    let head = op.action.index() as u64 | flag(IS_DUE, op.due_ns.is_some()) | flag(SUCCEEDS, op.succeeds);
    let mut numbers = vec![head];
    numbers.extend(op.due_ns);
    numbers.extend(numbers_of(op.action).into_iter().flatten());
    for mut number in numbers {
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
    }
}

fn numbers_of(action: DbenchAction) -> [Option<u64>; 4] {
    let one = |number: u32| [Some(number.into()), None, None, None];
    match action {
        DbenchAction::NtCreateX { name, options, disposition, handle } => {
            [name, options, disposition, handle].map(|number| Some(number.into()))
        }
        DbenchAction::ReadX { handle, offset, size }
        | DbenchAction::WriteX { handle, offset, size }
        | DbenchAction::LockX { handle, offset, size }
        | DbenchAction::UnlockX { handle, offset, size } => {
            [Some(handle.into()), Some(offset), Some(size.into()), None]
        }
        DbenchAction::Close { handle }
        | DbenchAction::Flush { handle }
        | DbenchAction::QueryFileInformation { handle }
        | DbenchAction::SetFileInformation { handle } => one(handle),
        DbenchAction::QueryPathInformation { name }
        | DbenchAction::Unlink { name }
        | DbenchAction::Mkdir { name }
        | DbenchAction::Rmdir { name }
        | DbenchAction::Deltree { name } => one(name),
        DbenchAction::FindFirst { name: first, most: second }
        | DbenchAction::Rename { from: first, to: second } => {
            [Some(first.into()), Some(second.into()), None, None]
        }
        DbenchAction::QueryFsInformation => [None; 4],
    }
}

const DAMAGED: &str = "a packed loadfile is damaged";

fn read(bytes: &[u8]) -> Result<Vec<DbenchOp>, &'static str> {
    let mut rest = bytes;
    let mut ops = Vec::new();
    while !rest.is_empty() {
        if ops.len() == MAX_DBENCH_OPS {
            return Err("a loadfile has more operations than any that is read");
        }
        let head = number(&mut rest)?;
        let due_ns = if head & IS_DUE != 0 { Some(number(&mut rest)?) } else { None };
        let action = action(head & 0x1f, &mut rest)?;
        ops.push(DbenchOp { due_ns, action, succeeds: head & SUCCEEDS != 0 });
    }
    Ok(ops)
}

fn number(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(DAMAGED)?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(DAMAGED)
}

fn action(kind: u64, rest: &mut &[u8]) -> Result<DbenchAction, &'static str> {
    let mut small = || number(rest).and_then(|number| u32::try_from(number).map_err(|_| DAMAGED));
    Ok(match kind {
        0 => DbenchAction::Deltree { name: small()? },
        1 => DbenchAction::Flush { handle: small()? },
        2 => DbenchAction::Close { handle: small()? },
        3 | 7 | 8 | 10 => {
            let handle = small()?;
            let offset = number(rest)?;
            let size = number(rest).and_then(|size| u32::try_from(size).map_err(|_| DAMAGED))?;
            match kind {
                3 => DbenchAction::LockX { handle, offset, size },
                7 => DbenchAction::ReadX { handle, offset, size },
                8 => DbenchAction::WriteX { handle, offset, size },
                _ => DbenchAction::UnlockX { handle, offset, size },
            }
        }
        4 => DbenchAction::Rmdir { name: small()? },
        5 => DbenchAction::Mkdir { name: small()? },
        6 => DbenchAction::Rename { from: small()?, to: small()? },
        9 => DbenchAction::Unlink { name: small()? },
        11 => DbenchAction::FindFirst { name: small()?, most: small()? },
        12 => DbenchAction::SetFileInformation { handle: small()? },
        13 => DbenchAction::QueryFileInformation { handle: small()? },
        14 => DbenchAction::QueryPathInformation { name: small()? },
        15 => DbenchAction::QueryFsInformation,
        16 => DbenchAction::NtCreateX {
            name: small()?,
            options: small()?,
            disposition: small()?,
            handle: small()?,
        },
        _ => return Err(DAMAGED),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation)]
    use super::*;
    use crate::files::DbenchSpec;
    use proptest::prelude::*;

    fn op() -> impl Strategy<Value = DbenchOp> {
        let numbers = (any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>());
        (0u64..17, prop::option::of(any::<u64>()), any::<bool>(), numbers).prop_map(
            |(kind, due_ns, succeeds, (a, b, c, d))| {
                let mut bytes = Vec::new();
                let numbers = match kind {
                    3 | 7 | 8 | 10 => vec![a.into(), b, c.into()],
                    16 => vec![a.into(), c.into(), d.into(), a.into()],
                    6 | 11 => vec![a.into(), c.into()],
                    15 => vec![],
                    _ => vec![a.into()],
                };
                for mut number in numbers {
                    while number >= 0x80 {
                        bytes.push((number & 0x7f) as u8 | 0x80);
                        number >>= 7;
                    }
                    bytes.push(number as u8);
                }
                DbenchOp { due_ns, action: action(kind, &mut bytes.as_slice()).unwrap(), succeeds }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(
            ops in prop::collection::vec(op(), 0..60), names in prop::collection::vec("[a-z/~. ]{0,20}", 0..20),
        ) {
            let mut bytes = Vec::new();
            ops.iter().for_each(|op| write(op, &mut bytes));
            prop_assert_eq!(read(&bytes).unwrap(), ops.clone());
            prop_assert!(ops.iter().all(|op| op.action.index() < 17));
            let spec = DbenchSpec { clients: 3, names, ops, client_bytes_per_second: None };
            let text = serde_json::to_string(&spec).unwrap();
            prop_assert_eq!(serde_json::from_str::<DbenchSpec>(&text).unwrap(), spec);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[A-Za-z0-9+/=]{0,60}") {
            let _ = read(&bytes);
            let json = format!("{{\"clients\":1,\"names\":\"{text}\",\"ops\":\"{text}\"}}");
            let _ = serde_json::from_str::<DbenchSpec>(&json);
        }
    }
}
