//! A program with all that it starts: a job object of Windows, which ends with this process, however that ends.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
    TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{CREATE_NO_WINDOW, CREATE_SUSPENDED};

/// The exit code of what is ended.
const ENDED: u32 = 1;

#[link(name = "ntdll")]
unsafe extern "system" {
    /// Lets all threads of a process go on; what is below zero is an error.
    fn NtResumeProcess(process: HANDLE) -> i32;
}

/// The job of a program that was started.
#[derive(Debug)]
pub(crate) struct ProgramGroup(OwnedHandle);

impl ProgramGroup {
    /// Starts the program in a job of its own, which it is in before it executes anything.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        let job = Self::new()?;
        let mut child = command.creation_flags(CREATE_SUSPENDED | CREATE_NO_WINDOW).spawn()?;
        // SAFETY: both handles are open.
        let is_assigned = unsafe { AssignProcessToJobObject(job.handle(), child.as_raw_handle()) } != 0;
        // SAFETY: the handle is open.
        if is_assigned && unsafe { NtResumeProcess(child.as_raw_handle()) } >= 0 {
            return Ok((child, job));
        }
        let error = io::Error::last_os_error();
        let _ = child.kill().and_then(|()| child.wait());
        Err(error)
    }

    fn new() -> io::Result<Self> {
        // SAFETY: the call takes no name and makes a handle, or none.
        let job = unsafe { CreateJobObjectW(std::ptr::null(), std::ptr::null()) };
        if job.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle is open, and nobody else closes it.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(job) });
        // SAFETY: the struct is of numbers, for which zero is valid.
        let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = unsafe { std::mem::zeroed() };
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        let bytes = u32::try_from(size_of_val(&limits)).map_err(io::Error::other)?;
        // SAFETY: the struct has as many bytes as it is said to have.
        let is_set = unsafe {
            SetInformationJobObject(
                job.handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                bytes,
            )
        };
        if is_set == 0 { Err(io::Error::last_os_error()) } else { Ok(job) }
    }

    fn handle(&self) -> HANDLE {
        self.0.as_raw_handle()
    }

    /// Ends all of it at once: a program without a window cannot be asked to.
    pub(crate) fn ask_to_end(&self) {
        self.kill();
    }

    /// Ends all of it.
    pub(crate) fn kill(&self) {
        // SAFETY: the handle is open.
        unsafe { TerminateJobObject(self.handle(), ENDED) };
    }
}

/// The signal that ended a program: Windows has none.
pub(crate) fn signal_of(_status: ExitStatus) -> Option<i32> {
    None
}
