//! Flushes beside other operations. `FlushFileBuffers` blocks its caller, so a thread of its own calls it.

use std::fs::File;
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::{Arc, mpsc};
use std::thread;

use windows_sys::Win32::System::IO::PostQueuedCompletionStatus;

use super::number;

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
