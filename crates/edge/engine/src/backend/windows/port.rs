//! Operations through an I/O completion port.

#![allow(clippy::cast_possible_truncation, reason = "sizes of small structs, and halves of numbers")]

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::sync::{Arc, mpsc};
use std::{io, thread};

use virtbench_record::TargetFacts;
use virtbench_workload::{Direction, LoadSpec, Op};
use windows_sys::Win32::Foundation::{
    ERROR_INVALID_FUNCTION, ERROR_IO_PENDING, ERROR_NOT_SUPPORTED, INVALID_HANDLE_VALUE,
    RtlNtStatusToDosError, WAIT_TIMEOUT,
};
use windows_sys::Win32::Storage::FileSystem::{FILE_FLAG_OVERLAPPED, ReadFile, WriteFile};
use windows_sys::Win32::System::IO::{
    CancelIoEx, CreateIoCompletionPort, DeviceIoControl, GetQueuedCompletionStatusEx, OVERLAPPED,
    OVERLAPPED_ENTRY, PostQueuedCompletionStatus,
};
use windows_sys::Win32::System::Ioctl::{FILE_LEVEL_TRIM, FILE_LEVEL_TRIM_RANGE, FSCTL_FILE_LEVEL_TRIM};

use super::{number, open_again};
use crate::backend::{Backend, Completion};
use crate::buffers::Buffers;
use crate::clock::monotonic_ns;
use crate::error::{EngineError, resource};

/// Completions taken by one call.
const BATCH: usize = 64;

/// How often a waiting worker is woken to look at its stop flag, in milliseconds.
const HEARTBEAT_MS: u32 = 50;

/// How often cancelled operations are waited for, each time for [`HEARTBEAT_MS`].
const LAST_WAITS: u32 = 20;

/// What the system needs of an operation until it is over. It must not move meanwhile.
#[repr(C)]
struct Request {
    /// First, so that its address is the request's.
    overlapped: OVERLAPPED,
    trim: FILE_LEVEL_TRIM,
}

/// One port and one opened file, used by the thread that made them.
pub(crate) struct Port {
    port: Arc<OwnedHandle>,
    file: File,
    requests: ManuallyDrop<Box<[Request]>>,
    entries: Box<[OVERLAPPED_ENTRY; BATCH]>,
    /// What the system refused at once, for which no completion comes.
    refused: Vec<Completion>,
    flusher: Option<Flusher>,
    /// Operations that the system has, flushes left out.
    under_way: u32,
}

impl Port {
    /// A port for `slots` operations on the target, which is opened once more.
    ///
    /// # Errors
    /// The system refuses, or the load asks for what only io_uring has or for trims that there are not.
    pub(crate) fn new(
        _file: &Arc<File>,
        facts: &TargetFacts,
        slots: u32,
        _buffers: &mut Buffers,
        spec: &LoadSpec,
    ) -> Result<(Self, Option<String>), EngineError> {
        if spec.uring.submission_polling || spec.uring.completion_polling {
            return Err(EngineError::Misfit(
                "polling is io_uring's (--sqpoll, --iopoll), and Windows has I/O completion ports: leave it out".into(),
            ));
        }
        let failed = |error| resource("opening the target", error);
        refuse_unavailable_trims(&open_again(facts, spec, 0).map_err(failed)?, spec)?;
        let file = open_again(facts, spec, FILE_FLAG_OVERLAPPED).map_err(failed)?;
        let port = attach(&file).map(Arc::new).map_err(|error| resource("an I/O completion port", error))?;
        let flushes = spec.flush_every.is_some() || spec.access.writes();
        let flusher = flushes.then(|| Flusher::start(&file, Arc::clone(&port))).transpose();
        // SAFETY: requests and entries are of numbers and pointers, for which zero is valid.
        let (requests, entries) =
            unsafe { ((0..slots).map(|_| std::mem::zeroed()).collect(), std::mem::zeroed()) };
        let port = Self {
            port,
            file,
            requests: ManuallyDrop::new(requests),
            entries: Box::new(entries),
            refused: Vec::new(),
            flusher: flusher.map_err(|error| resource("a thread that flushes", error))?,
            under_way: 0,
        };
        Ok((port, None))
    }

    /// Hands an operation to the system.
    fn begin(&mut self, slot: u32, op: Op, buffer: *mut u8) -> io::Result<()> {
        let request: *mut Request = &raw mut self.requests[slot as usize];
        let handle = self.file.as_raw_handle();
        // SAFETY: the request stays where it is until its completion (or for ever, see `drop`), and is not in use now; the buffer holds the
        // operation's bytes until then (`Backend::queue`).
        let begun = unsafe {
            (*request).overlapped = std::mem::zeroed();
            (*request).overlapped.Anonymous.Anonymous.Offset = low(op.offset);
            (*request).overlapped.Anonymous.Anonymous.OffsetHigh = low(op.offset >> 32);
            let overlapped = &raw mut (*request).overlapped;
            match op.direction {
                Direction::Read => ReadFile(handle, buffer, op.len, std::ptr::null_mut(), overlapped) != 0,
                Direction::Write => WriteFile(handle, buffer, op.len, std::ptr::null_mut(), overlapped) != 0,
                Direction::Trim => {
                    (*request).trim = order(op.offset, op.len);
                    return pending(begin(&self.file, &raw const (*request).trim, overlapped));
                }
                // Never handed over: the flusher has it.
                Direction::Flush => true,
            }
        };
        pending(if begun { Ok(()) } else { Err(io::Error::last_os_error()) })
    }

    /// Waits for completions, at most so long; takes what has come.
    fn wait(&mut self, limit_ms: u32, completions: &mut Vec<Completion>) -> io::Result<()> {
        let mut count = 0;
        // SAFETY: the port is open, and the array has as many entries as it is said to have.
        let has_come = unsafe {
            GetQueuedCompletionStatusEx(
                self.port.as_raw_handle(),
                self.entries.as_mut_ptr(),
                BATCH as u32,
                &raw mut count,
                limit_ms,
                0,
            )
        };
        if has_come == 0 {
            let error = io::Error::last_os_error();
            return if error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed()) {
                Ok(())
            } else {
                Err(error)
            };
        }
        for entry in &self.entries[..(count as usize).min(BATCH)] {
            let moved = entry.dwNumberOfBytesTransferred;
            let Some(slot) = u32::try_from(entry.lpCompletionKey).unwrap_or_default().checked_sub(1) else {
                let (slot, result) = finished(&self.requests, entry.lpOverlapped, moved);
                self.under_way = self.under_way.saturating_sub(1);
                completions.push(Completion { slot, result });
                continue;
            };
            completions.push(Completion { slot, result: -moved.cast_signed() });
        }
        Ok(())
    }
}

/// Which operation an address is that of, and what came of it.
fn finished(requests: &[Request], overlapped: *mut OVERLAPPED, moved: u32) -> (u32, i32) {
    let place = (overlapped as usize - requests.as_ptr() as usize) / size_of::<Request>();
    // The status of the kernel: the call's own error is only that of the last one that it takes.
    let status = requests[place].overlapped.Internal as u32;
    let slot = u32::try_from(place).unwrap_or(u32::MAX);
    if status == 0 {
        return (slot, i32::try_from(moved).unwrap_or(i32::MAX));
    }
    // SAFETY: the call only looks up a number.
    let code = unsafe { RtlNtStatusToDosError(status.cast_signed()) };
    (slot, -code.cast_signed())
}

/// A new port with a file attached under the key 0.
fn attach(file: &File) -> io::Result<OwnedHandle> {
    // SAFETY: the file is open, and no other port was given.
    let port = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, std::ptr::null_mut(), 0, 1) };
    if port.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the port is new, and nobody else's.
    let port = unsafe { OwnedHandle::from_raw_handle(port) };
    // SAFETY: both are open.
    let attached = unsafe { CreateIoCompletionPort(file.as_raw_handle(), port.as_raw_handle(), 0, 0) };
    if attached.is_null() { Err(io::Error::last_os_error()) } else { Ok(port) }
}

/// What began counts as begun, whether it is over already or not: a completion comes in any case.
fn pending(begun: io::Result<()>) -> io::Result<()> {
    match begun {
        Err(error) if error.raw_os_error() == Some(ERROR_IO_PENDING.cast_signed()) => Ok(()),
        begun => begun,
    }
}

/// The lower half.
#[allow(clippy::cast_possible_truncation, reason = "that is what it is for")]
fn low(value: u64) -> u32 {
    value as u32
}

impl Backend for Port {
    #[inline]
    fn queue(&mut self, slot: u32, op: Op, buffer: *mut u8) {
        if op.direction == Direction::Flush {
            if !self.flusher.as_ref().is_some_and(|flusher| flusher.flush(slot)) {
                self.refused.push(Completion { slot, result: -crate::system::injected(libc::EIO) });
            }
            return;
        }
        match self.begin(slot, op, buffer) {
            Ok(()) => self.under_way += 1,
            Err(error) => self.refused.push(Completion { slot, result: -number(&error) }),
        }
    }

    fn drive(&mut self, until_ns: Option<u64>, completions: &mut Vec<Completion>) -> io::Result<()> {
        let limit_ms = match until_ns {
            _ if !self.refused.is_empty() => 0,
            None => HEARTBEAT_MS,
            // What is left of a millisecond is spun away by the caller: the system waits by milliseconds.
            Some(until_ns) => {
                let left_ms = until_ns.saturating_sub(monotonic_ns()) / 1_000_000;
                u32::try_from(left_ms).unwrap_or(u32::MAX).min(HEARTBEAT_MS)
            }
        };
        completions.append(&mut self.refused);
        self.wait(limit_ms, completions)
    }
}

impl Drop for Port {
    /// Cancels what is under way. What even that does not end the system may yet write to: memory lost is better than memory corrupted.
    fn drop(&mut self) {
        if self.under_way > 0 {
            // SAFETY: the file is open, and all operations on it are this port's.
            unsafe { CancelIoEx(self.file.as_raw_handle(), std::ptr::null()) };
        }
        for _ in 0..LAST_WAITS {
            if self.under_way == 0 || self.wait(HEARTBEAT_MS, &mut Vec::new()).is_err() {
                break;
            }
        }
        if self.under_way == 0 {
            // SAFETY: nothing uses it afterwards.
            unsafe { ManuallyDrop::drop(&mut self.requests) };
        }
    }
}

/// A thread that flushes one file. It ends with this value, once a flush under way is over.
pub(super) struct Flusher(mpsc::Sender<u32>);

impl Flusher {
    /// Posts to `port` the slot of each flush that is over, with one added as the key, and its error's number, or 0, as the bytes moved.
    ///
    /// # Errors
    /// No thread or handle is to be had.
    pub(super) fn start(file: &File, port: Arc<OwnedHandle>) -> io::Result<Self> {
        let (sender, slots) = mpsc::channel::<u32>();
        let file = file.try_clone()?;
        thread::Builder::new().name("flush".into()).spawn(move || {
            for slot in slots {
                let code = file.sync_all().map_or_else(|error| number(&error), |()| 0);
                // SAFETY: the port is open as long as this thread holds it, and nothing is pointed to.
                unsafe {
                    PostQueuedCompletionStatus(
                        port.as_raw_handle(),
                        code.cast_unsigned(),
                        slot as usize + 1,
                        std::ptr::null(),
                    )
                };
            }
        })?;
        Ok(Self(sender))
    }

    /// Has a flush done; answers whether the thread is there.
    pub(super) fn flush(&self, slot: u32) -> bool {
        self.0.send(slot).is_ok()
    }
}

/// A trim of so many bytes.
pub(super) fn order(offset: u64, length: u32) -> FILE_LEVEL_TRIM {
    FILE_LEVEL_TRIM {
        Key: 0,
        NumRanges: 1,
        Ranges: [FILE_LEVEL_TRIM_RANGE { Offset: offset, Length: length.into() }],
    }
}

/// Begins a trim.
///
/// # Safety
/// `order` and `overlapped` live where they are until the trim is over; a null `overlapped` is for a file that is not overlapped.
pub(super) unsafe fn begin(
    file: &File,
    order: *const FILE_LEVEL_TRIM,
    overlapped: *mut OVERLAPPED,
) -> io::Result<()> {
    let mut bytes = 0;
    // SAFETY: the caller's.
    let is_begun = unsafe {
        DeviceIoControl(
            file.as_raw_handle(),
            FSCTL_FILE_LEVEL_TRIM,
            order.cast(),
            size_of::<FILE_LEVEL_TRIM>() as u32,
            std::ptr::null_mut(),
            0,
            &raw mut bytes,
            overlapped,
        )
    };
    if is_begun == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Trims, and waits for it.
pub(super) fn trim_now(file: &File, offset: u64, length: u32) -> io::Result<()> {
    let order = order(offset, length);
    // SAFETY: the file is not overlapped, so that the call is over when it returns.
    unsafe { begin(file, &raw const order, std::ptr::null_mut()) }
}

/// Refuses a load with trims where the file system or device has none. The question is a trim of nothing, which changes nothing and which one that
/// has trims answers or calls wrong.
///
/// # Errors
/// There are none.
pub(super) fn refuse_unavailable_trims(file: &File, spec: &LoadSpec) -> Result<(), EngineError> {
    if !spec.access.lines.iter().any(|line| line.trim_percent > 0.0) {
        return Ok(());
    }
    let question = FILE_LEVEL_TRIM { NumRanges: 0, ..order(0, 0) };
    // SAFETY: `file` is one that is not overlapped, so that the call is over when it returns.
    match unsafe { begin(file, &raw const question, std::ptr::null_mut()) } {
        Err(error)
            if [ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED]
                .map(u32::cast_signed)
                .contains(&error.raw_os_error().unwrap_or_default()) =>
        {
            Err(EngineError::Misfit(format!(
                "trims are unavailable: the file system there has no FSCTL_FILE_LEVEL_TRIM ({error}); leave them out"
            )))
        }
        _ => Ok(()),
    }
}
