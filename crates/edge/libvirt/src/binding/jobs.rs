//! What libvirt tells of a job that a hypervisor does, such as a migration.

use std::ptr::null_mut;

use super::functions::VirTypedParameter;
use super::{Binding, Object, text_of};
use crate::error::LibvirtError;

/// `VIR_DOMAIN_JOB_STATS_COMPLETED`
const COMPLETED: u32 = 1;
/// `VIR_TYPED_PARAM_INT`, `VIR_TYPED_PARAM_UINT`
const SMALL: [i32; 2] = [1, 2];
/// `VIR_TYPED_PARAM_LLONG`, `VIR_TYPED_PARAM_ULLONG`
const LARGE: [i32; 2] = [3, 4];

impl VirTypedParameter {
    /// Its name and value; nothing where that is no whole number.
    fn number(&self) -> Option<(String, u64)> {
        let [a, b, c, d, ..] = self.value.to_ne_bytes();
        let value = match self.kind {
            kind if SMALL.contains(&kind) => u64::from(u32::from_ne_bytes([a, b, c, d])),
            kind if LARGE.contains(&kind) => self.value,
            _ => return None,
        };
        Some((text_of(&self.field), value))
    }
}

impl Binding {
    /// Figures of the job that a domain is in, or of the last one that is completed, by libvirt's names.
    pub(crate) fn job(
        &self,
        domain: &Object,
        is_completed: bool,
    ) -> Result<Vec<(String, u64)>, LibvirtError> {
        let (mut kind, mut list, mut count) = (0, null_mut::<VirTypedParameter>(), 0);
        let flags = if is_completed { COMPLETED } else { 0 };
        let told = call!(self.virDomainGetJobStats(
            domain.raw(),
            &raw mut kind,
            &raw mut list,
            &raw mut count,
            flags
        ));
        self.done(told)?;
        let numbers = (0..usize::try_from(count).unwrap_or(0)).filter_map(|index| {
            // SAFETY: libvirt made so many of them.
            unsafe { &*list.add(index) }.number()
        });
        let numbers = numbers.collect();
        // SAFETY: libvirt made them for the caller.
        unsafe { (self.functions.virTypedParamsFree)(list, count) };
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_either_size_are_read_and_others_left_out() {
        let parameter = |kind, value| {
            let mut field = [0; 80];
            field[..8].copy_from_slice(b"downtime");
            VirTypedParameter { field, kind, value }
        };
        // What stands beside a small number in its place is not its own.
        let small = u64::from_ne_bytes([7, 0, 0, 0, 9, 9, 9, 9]);
        assert_eq!(parameter(1, small).number(), Some(("downtime".into(), 7)));
        assert_eq!(parameter(4, 1 << 40).number(), Some(("downtime".into(), 1 << 40)));
        assert_eq!(parameter(7, 1).number(), None, "a text");
    }
}
