//! Memory that is taken away: ballast.

use memmap2::MmapMut;
use virtbench_units::format_bytes;

use crate::machine::available_memory_bytes;
use crate::runner::RunError;

/// Bytes of a page; every one is touched.
const PAGE_BYTES: usize = 4096;

/// Takes `bytes` of memory and keeps them resident until dropped. No page is like another, so that
/// none can be shared or compressed away.
///
/// # Errors
/// There is not as much memory, or the kernel refuses it.
pub(crate) fn take(bytes: u64, notes: &mut Vec<String>) -> Result<Option<MmapMut>, RunError> {
    if bytes == 0 {
        return Ok(None);
    }
    let available = available_memory_bytes().unwrap_or(u64::MAX);
    // Beyond this the kernel would have to kill something.
    if bytes > available / 10 * 9 {
        return Err(RunError::Misfit(format!(
            "ballast={}: only {} of memory are free; make it smaller",
            format_bytes(bytes),
            format_bytes(available >> 20 << 20)
        )));
    }
    let refused = |source| RunError::resource(format!("ballast of {}", format_bytes(bytes)), source);
    let length = usize::try_from(bytes).map_err(|_| refused(std::io::ErrorKind::OutOfMemory.into()))?;
    let mut memory = MmapMut::map_anon(length).map_err(refused)?;
    for (index, page) in memory.chunks_mut(PAGE_BYTES).enumerate() {
        let mark = (index as u64 ^ 0x9e37_79b9_7f4a_7c15).to_le_bytes();
        let marked = mark.len().min(page.len());
        page[..marked].copy_from_slice(&mark[..marked]);
    }
    let kept = match lock(&memory) {
        Ok(()) => "locked".to_owned(),
        Err(error) => format!("touched but not locked ({error}), so it may be swapped out"),
    };
    notes.push(format!("ballast of {}, {kept}", format_bytes(bytes)));
    Ok(Some(memory))
}

/// Keeps memory from being swapped out.
#[cfg(unix)]
fn lock(memory: &MmapMut) -> std::io::Result<()> {
    memory.lock()
}

#[cfg(windows)]
fn lock(memory: &MmapMut) -> std::io::Result<()> {
    use windows_sys::Win32::System::Memory::VirtualLock;
    // SAFETY: the memory is this process's, and so long.
    let is_locked = unsafe { VirtualLock(memory.as_ptr().cast(), memory.len()) } != 0;
    if is_locked { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ballast_is_resident_and_said() {
        let mut notes = Vec::new();
        let memory = take(1 << 20, &mut notes).unwrap().unwrap();
        assert_eq!(memory.len(), 1 << 20);
        assert!(memory.chunks(PAGE_BYTES).all(|page| page[..8] != [0; 8]));
        assert!(notes[0].contains("1 MiB"), "{notes:?}");
        assert!(take(0, &mut notes).unwrap().is_none());
    }

    #[test]
    fn more_than_there_is_is_refused_with_the_key() {
        let error = take(1 << 43, &mut Vec::new()).err().unwrap().to_string();
        assert!(error.contains("ballast=8 TiB"), "{error}");
    }
}
