//! The processors' use, summed over all of them and of each.

use std::ffi::c_void;
use std::io;
use std::time::Instant;

use virtbench_record::HostUse;
use windows_sys::Wdk::System::SystemInformation::{
    NtQuerySystemInformation, SystemProcessorPerformanceInformation,
};
use windows_sys::Win32::Foundation::RtlNtStatusToDosError;
use windows_sys::Win32::System::Threading::GetActiveProcessorGroupCount;
use windows_sys::Win32::System::WindowsProgramming::SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION;

/// Processors of one group, which is as many as one call tells of.
const MOST: usize = 64;

#[link(name = "ntdll")]
unsafe extern "system" {
    /// The question of [`NtQuerySystemInformation`] about one group of processors, whose number is `input`; since Windows 7.
    fn NtQuerySystemInformationEx(
        class: i32,
        input: *const c_void,
        input_bytes: u32,
        answer: *mut c_void,
        answer_bytes: u32,
        returned_bytes: *mut u32,
    ) -> i32;
}

/// The accounts cannot be read.
pub type Unreadable = io::Error;

/// Units of 100 ns.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    user: u64,
    /// With interrupts, and without the time in which nothing ran.
    system: u64,
}

/// The processors' time accounts at one instant.
#[derive(Debug, Clone)]
pub struct CpuSample {
    at: Instant,
    each: Vec<Spent>,
}

impl CpuSample {
    /// Asks the system, which counts by its clock's ticks of up to 16 ms.
    ///
    /// # Errors
    /// It does not say.
    pub fn take() -> Result<Self, Unreadable> {
        // SAFETY: the call only reads a number.
        let groups = unsafe { GetActiveProcessorGroupCount() };
        let mut each = accounts(None)?;
        if groups > 1 {
            each = (0..groups).map(|group| accounts(Some(group))).collect::<io::Result<Vec<_>>>()?.concat();
        }
        Ok(Self { at: Instant::now(), each })
    }

    /// What was used from this sample to a `later` one. What a hypervisor takes away Windows does not tell: it is 0 then, as on a
    /// Linux machine that does not know. Other programs and waiting threads are not counted.
    #[must_use]
    pub fn until(&self, later: &Self) -> HostUse {
        let seconds = later.at.saturating_duration_since(self.at).as_secs_f64().max(1e-9);
        let percent = |units: u64| units as f64 / 1e7 / seconds * 100.0;
        let both: Vec<(Spent, Spent)> = self.each.iter().copied().zip(later.each.iter().copied()).collect();
        let user = |(before, after): &(Spent, Spent)| percent(after.user.saturating_sub(before.user));
        let system = |(before, after): &(Spent, Spent)| percent(after.system.saturating_sub(before.system));
        let user_percent: f64 = both.iter().map(user).sum();
        let system_percent: f64 = both.iter().map(system).sum();
        let is_same = self.each.len() == later.each.len();
        HostUse {
            cpu_percent: user_percent + system_percent,
            user_percent,
            system_percent,
            processors: u32::try_from(later.each.len()).unwrap_or(u32::MAX),
            each_percent: both.iter().filter(|_| is_same).map(|one| user(one) + system(one)).collect(),
            each_user_percent: both.iter().filter(|_| is_same).map(user).collect(),
            ..HostUse::default()
        }
    }
}

/// The accounts of each processor of a group, or of the caller's own.
fn accounts(group: Option<u16>) -> io::Result<Vec<Spent>> {
    // SAFETY: the struct is of numbers, for which zero is valid.
    let mut accounts: [SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION; MOST] = unsafe { std::mem::zeroed() };
    let (at, size) =
        (accounts.as_mut_ptr().cast(), u32::try_from(size_of_val(&accounts)).map_err(io::Error::other)?);
    let (class, mut bytes) = (SystemProcessorPerformanceInformation, 0);
    // SAFETY: the buffer has as many bytes as it is said to have, and the group's number lives until the call returns.
    let status = unsafe {
        match &group {
            None => NtQuerySystemInformation(class, at, size, &raw mut bytes),
            Some(group) => NtQuerySystemInformationEx(
                class,
                std::ptr::from_ref(group).cast(),
                2,
                at,
                size,
                &raw mut bytes,
            ),
        }
    };
    if status < 0 {
        // SAFETY: the call only looks up a number.
        let code = unsafe { RtlNtStatusToDosError(status) };
        return Err(io::Error::from_raw_os_error(code.cast_signed()));
    }
    let count = bytes as usize / size_of::<SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION>();
    Ok(accounts.iter().take(count).map(Spent::from).collect())
}

impl From<&SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION> for Spent {
    fn from(account: &SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION) -> Self {
        Self {
            user: account.UserTime.unsigned_abs(),
            system: account.KernelTime.saturating_sub(account.IdleTime).unsigned_abs(),
        }
    }
}
