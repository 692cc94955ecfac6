//! Flow operations.

use virtbench_workload::files::{Action, Draw, FileChoice, FileSet, Flowop, Io};

use super::attributes::Attributes;
use super::error::FilebenchError;
use super::values::Value;

/// The size of a read or write for which none is given: all at once.
const WHOLE: Draw = Draw::Fixed(1 << 20);

/// Makes a step of its kind and attributes.
pub(super) fn step(
    kind: &str,
    mut attributes: Attributes,
    sets: &[FileSet],
    notes: &mut Vec<String>,
) -> Result<Flowop, FilebenchError> {
    let line = attributes.line();
    let name = attributes.take("name", |value| value.word().map(str::to_owned))?;
    let iters = attributes.take("iters", Value::small)?.unwrap_or(1);
    let set = set(&mut attributes, sets)?;
    let fd = attributes.take("fd", byte)?;
    let place = FileChoice { fd: fd.unwrap_or(0), set };
    let need_set =
        || set.ok_or_else(|| FilebenchError::syntax(line, format!("flowop {kind} needs filesetname")));
    let number = fd.unwrap_or(0);
    let action = match kind {
        "createfile" => Action::CreateFile { set: need_set()?, fd: number },
        "openfile" => Action::OpenFile { set: need_set()?, fd: number },
        "closefile" => Action::CloseFile { fd: number },
        "deletefile" => Action::DeleteFile { set: need_set()? },
        "statfile" => Action::StatFile { set: need_set()? },
        "listdir" => Action::ListDir { set: need_set()? },
        "fsync" => Action::Fsync { fd: number },
        "readwholefile" => Action::ReadWholeFile { place, io: size(&mut attributes)?.unwrap_or(WHOLE) },
        "writewholefile" => {
            let source = attributes.take("srcfd", byte)?;
            Action::WriteWholeFile { place, io: size(&mut attributes)?.unwrap_or(WHOLE), source }
        }
        "appendfile" | "appendfilerand" => {
            let size = attributes.need("iosize", Value::draw)?;
            Action::AppendFile { place, size, random: kind == "appendfilerand" }
        }
        "read" => Action::Read { place, io: part(&mut attributes)? },
        "write" => Action::Write { place, io: part(&mut attributes)? },
        "delay" => Action::Delay { seconds: attributes.need("value", Value::draw)? },
        "eventlimit" => Action::EventLimit,
        "opslimit" | "iopslimit" => Action::OpsLimit,
        "bwlimit" => Action::BandwidthLimit,
        "finishoncount" => Action::FinishOnCount { count: attributes.need("value", Value::number)? },
        "finishonbytes" => Action::FinishOnBytes { bytes: attributes.need("value", Value::number)? },
        other => {
            let other = super::tokens::shorten(other);
            return Err(FilebenchError::syntax(line, format!("flowop {other:?} is not supported")));
        }
    };
    if attributes.flag("directio")? {
        let why = format!("flowop {kind}: directio is not supported, because files have any size");
        return Err(FilebenchError::syntax(line, why));
    }
    // A deleted or closed file needs no number of its own; Filebench takes one all the same.
    attributes.leave_out(&["nousestats"], notes);
    attributes.end()?;
    Ok(Flowop { name: name.unwrap_or_else(|| kind.to_owned()), action, iters })
}

fn set(attributes: &mut Attributes, sets: &[FileSet]) -> Result<Option<u16>, FilebenchError> {
    let find = |value: &Value| {
        let name = value.word()?;
        let place = sets.iter().position(|set| set.name == name);
        let place =
            place.ok_or_else(|| format!("no fileset is called {:?}", super::tokens::shorten(name)))?;
        u16::try_from(place).map_err(|error| error.to_string())
    };
    let first = attributes.take("filesetname", find)?;
    Ok(first.or(attributes.take("filename", find)?))
}

fn size(attributes: &mut Attributes) -> Result<Option<Draw>, FilebenchError> {
    attributes.take("iosize", Value::draw)
}

fn part(attributes: &mut Attributes) -> Result<Io, FilebenchError> {
    Ok(Io {
        size: attributes.need("iosize", Value::draw)?,
        random: attributes.flag("random")?,
        working_set: attributes.take("workingset", Value::number)?.unwrap_or(0),
        dsync: attributes.flag("dsync")?,
    })
}

fn byte(value: &Value) -> Result<u8, String> {
    let number = value.number()?;
    u8::try_from(number).map_err(|_| format!("{number} is too large"))
}
