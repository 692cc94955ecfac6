//! What the kernel does for applications, piece by piece: how long each takes, and how much of that is
//! processor time. What is left is waiting.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;

use memmap2::MmapMut;
use virtbench_engine::{monotonic_ns, thread_cpu_ns};
use virtbench_record::Better;
use virtbench_workload::{SystemKernel, SystemPart, SystemSpec};

use crate::machine::kernel_threads_ns;
use crate::mount::Mount;
use crate::runner::{RunError, Runner, Sheet, Storage, Watch};
use crate::storage_folder::folder;

/// Bytes of the file in memory, and of one copy.
const FILE_BYTES: usize = 1 << 20;
const COPY_BYTES: usize = 64 << 10;
const BLOCK_BYTES: usize = 4096;
/// Files in the folder that is listed, pages that are touched at once, bytes that are said in a talk.
const LISTED_FILES: u32 = 64;
const FAULTS: usize = 64;
const TALK_BYTES: usize = 1024;

/// A folder with a file, and everything that is measured of it.
pub(crate) struct System {
    kernel_ns: u64,
    kernels: Vec<SystemKernel>,
    folder: PathBuf,
    file: File,
    buffer: Vec<u8>,
    made: u64,
    _mount: Option<Mount>,
}

impl System {
    /// Makes the file.
    pub(crate) fn new(
        spec: &SystemSpec,
        place: Option<&Storage>,
        notes: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        let (mount, parent) = folder(place, notes)?;
        let failed = |error: io::Error| {
            RunError::Storage(format!("cannot make files in {}: {error}", parent.display()))
        };
        let folder = parent.join(format!("virtbench-system-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(folder.join("file"));
        let mut file = file.map_err(failed)?;
        let names = folder.join("names");
        fs::create_dir_all(&names).map_err(failed)?;
        for name in 0..LISTED_FILES {
            File::create(names.join(format!("file-{name}"))).map_err(failed)?;
        }
        let buffer = vec![0x5a; COPY_BYTES];
        file.write_all(&vec![0x5a; FILE_BYTES]).and_then(|()| file.sync_all()).map_err(failed)?;
        let kernels = spec.kernels.clone();
        Ok(Self { kernel_ns: spec.kernel_ns, kernels, folder, file, buffer, made: 0, _mount: mount })
    }

    fn operation(&mut self, kernel: SystemKernel) -> io::Result<()> {
        self.made += 1;
        let spots = (FILE_BYTES / COPY_BYTES) as u64;
        let at = self.made.wrapping_mul(7) % spots * COPY_BYTES as u64;
        let path = self.folder.join("file");
        match kernel {
            SystemKernel::Call => {
                // SAFETY: takes nothing and has no memory effects; asked of the kernel each time.
                unsafe { libc::syscall(libc::SYS_getppid) };
                Ok(())
            }
            SystemKernel::Read => self.file.read_exact_at(&mut self.buffer[..1], at),
            SystemKernel::Stat => fs::metadata(path).map(drop),
            SystemKernel::Open => File::open(path).map(drop),
            SystemKernel::Create => self.new_file(BLOCK_BYTES, false),
            SystemKernel::Fill => self.new_file(COPY_BYTES, false),
            SystemKernel::Write => self.file.write_all_at(&self.buffer[..BLOCK_BYTES], at),
            SystemKernel::Rename => {
                let name = |number: u64| self.folder.join(format!("name-{}", number % 2));
                if self.made == 1 || !name(self.made - 1).exists() {
                    File::create(name(self.made - 1))?;
                }
                fs::rename(name(self.made - 1), name(self.made))
            }
            SystemKernel::Folder => {
                let path = self.folder.join("folder");
                fs::create_dir(&path)?;
                fs::remove_dir(path)
            }
            SystemKernel::List => {
                fs::read_dir(self.folder.join("names"))?.count();
                Ok(())
            }
            SystemKernel::Fork => fork(),
            SystemKernel::Fault => {
                let mut page = MmapMut::map_anon(BLOCK_BYTES)?;
                page[0] = 1;
                Ok(())
            }
            SystemKernel::Faults => {
                let mut pages = MmapMut::map_anon(FAULTS * BLOCK_BYTES)?;
                for page in pages.chunks_mut(BLOCK_BYTES) {
                    page[0] = 1;
                }
                Ok(())
            }
            SystemKernel::CopyOut => self.file.read_exact_at(&mut self.buffer, at),
            SystemKernel::CopyIn => self.file.write_all_at(&self.buffer, at),
            SystemKernel::Flush => {
                self.file.write_all_at(&self.buffer[..BLOCK_BYTES], at)?;
                self.file.sync_data()
            }
            SystemKernel::FlushNew => self.new_file(BLOCK_BYTES, true),
            SystemKernel::Switch | SystemKernel::Talk => Ok(()),
        }
    }

    fn new_file(&self, bytes: usize, flush: bool) -> io::Result<()> {
        let path = self.folder.join(format!("new-{}", self.made));
        let mut file = File::create_new(&path)?;
        file.write_all(&self.buffer[..bytes])?;
        if flush {
            file.sync_all()?;
        }
        fs::remove_file(path)
    }

    /// Repeats one; gives operations, elapsed and processor time in nanoseconds.
    fn repeat(&mut self, kernel: SystemKernel, watch: &Watch<'_>) -> io::Result<(u64, u64, u64)> {
        match kernel {
            SystemKernel::Switch => {
                let (here, to_here) = io::pipe()?;
                let (there, to_there) = io::pipe()?;
                return exchange((here, to_there), (there, to_here), 1, self.kernel_ns, watch);
            }
            SystemKernel::Talk => {
                let (here, there) = UnixStream::pair()?;
                let twice = |end: UnixStream| Ok::<_, io::Error>((end.try_clone()?, end));
                return exchange(twice(here)?, twice(there)?, TALK_BYTES, self.kernel_ns, watch);
            }
            _ => {}
        }
        let cpu = || thread_cpu_ns().iter().sum::<u64>();
        // What others left unwritten is not to be paid for here.
        if matches!(kernel, SystemKernel::Flush | SystemKernel::FlushNew) {
            self.file.sync_all()?;
        }
        let (begin_ns, cpu_before, mut operations) = (monotonic_ns(), cpu(), 0);
        loop {
            self.operation(kernel)?;
            operations += 1;
            let elapsed_ns = monotonic_ns() - begin_ns;
            if elapsed_ns >= self.kernel_ns || watch.is_over() {
                return Ok((operations, elapsed_ns, cpu() - cpu_before));
            }
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Runner for System {
    fn threads(&self) -> u32 {
        1
    }

    fn round(&mut self, watch: &Watch<'_>, sheet: &mut Sheet) -> Result<(), RunError> {
        for kernel in self.kernels.clone() {
            let threads_before = kernel_threads_ns();
            let (operations, elapsed_ns, own_ns) = self
                .repeat(kernel, watch)
                .map_err(|source| RunError::resource(format!("the kernel's {}", kernel.name()), source))?;
            if elapsed_ns < self.kernel_ns {
                return Ok(());
            }
            watch.count(operations, 0);
            let each = |ns: u64| ns as f64 / operations as f64;
            sheet.sample(kernel.name(), "ns", Better::Lower, each(elapsed_ns));
            // The journal's threads work for the threads that wait for them, so that their time counts there.
            let waits = kernel.part() == SystemPart::Wait;
            let threads_ns = if waits { kernel_threads_ns().saturating_sub(threads_before) } else { 0 };
            let cpu_ns = own_ns + threads_ns;
            sheet.sample(&format!("{} cpu", kernel.name()), "ns", Better::Lower, each(cpu_ns));
        }
        Ok(())
    }
}

/// Makes a process that ends at once.
fn fork() -> io::Result<()> {
    // SAFETY: the child makes one call, which is async-signal-safe and does not return.
    let child = unsafe {
        match libc::fork() {
            0 => libc::_exit(0),
            child => child,
        }
    };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut status = 0;
    // SAFETY: waits for that child, and writes to the integer it is given.
    if unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Hands bytes to another thread and back; two switches an operation.
fn exchange<R: Read + Send, W: Write + Send>(
    (mut here, mut to_there): (R, W),
    (mut there, mut to_here): (R, W),
    bytes: usize,
    time_ns: u64,
    watch: &Watch<'_>,
) -> io::Result<(u64, u64, u64)> {
    thread::scope(|scope| {
        // Ends when the other end is closed.
        scope.spawn(move || {
            let mut ball = vec![0; bytes];
            while there.read_exact(&mut ball).is_ok() && to_here.write_all(&ball).is_ok() {}
        });
        let mut play = move || -> io::Result<(u64, u64, u64)> {
            let (begin_ns, mut operations, mut ball) = (monotonic_ns(), 0, vec![0; bytes]);
            loop {
                to_there.write_all(&ball)?;
                here.read_exact(&mut ball)?;
                operations += 1;
                let elapsed_ns = monotonic_ns() - begin_ns;
                if elapsed_ns >= time_ns || watch.is_over() {
                    return Ok((operations, elapsed_ns, elapsed_ns));
                }
            }
        };
        play()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::prepare;
    use virtbench_engine::Control;
    use virtbench_workload::parse_workload;

    #[test]
    fn every_kernel_is_measured_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let spec = parse_workload("system:kernel=2ms,runs=2").unwrap();
        let mut prepared = prepare(&spec, Some(&Storage::Path(folder.path().into()))).unwrap();
        let outcome = prepared.run(&Control::new(1), 0, |_| ()).unwrap();
        drop(prepared);
        assert_eq!((outcome.runs, outcome.errors), (2, 0), "{outcome:?}");
        for kernel in SystemKernel::ALL {
            let metric = outcome.metric(kernel.name()).unwrap();
            assert!(metric.samples.len() == 2 && metric.mean > 0.0, "{metric:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
