//! Functions of domains that stay when they have ended: definitions, snapshots, devices, migration; copies of volumes.

use std::ffi::{c_int, c_uint, c_ulong};
use std::ptr::{null, null_mut};

use super::functions::VirTypedParameter;
use super::{Binding, METADATA_ELEMENT, Object, c_text, text_of};
use crate::error::LibvirtError;

/// `VIR_DOMAIN_METADATA_DESCRIPTION`
const DESCRIPTION: c_int = 0;

impl Binding {
    pub(crate) fn define_domain(&self, on: &Object, xml: &str) -> Result<Object, LibvirtError> {
        let xml = c_text(xml)?;
        let domain = call!(self.virDomainDefineXML(on.raw(), xml.as_ptr()));
        self.object(domain, self.functions.virDomainFree)
    }

    pub(crate) fn find_domain(&self, on: &Object, name: &str) -> Result<Object, LibvirtError> {
        let name = c_text(name)?;
        let domain = call!(self.virDomainLookupByName(on.raw(), name.as_ptr()));
        self.object(domain, self.functions.virDomainFree)
    }

    pub(crate) fn create_domain(&self, domain: &Object, flags: u32) -> Result<(), LibvirtError> {
        self.done(call!(self.virDomainCreateWithFlags(domain.raw(), flags))).map(drop)
    }

    pub(crate) fn undefine_domain(&self, domain: &Object, flags: u32) -> Result<(), LibvirtError> {
        self.done(call!(self.virDomainUndefineFlags(domain.raw(), flags))).map(drop)
    }

    pub(crate) fn set_description(
        &self,
        domain: &Object,
        text: &str,
        flags: u32,
    ) -> Result<(), LibvirtError> {
        let text = c_text(text)?;
        let set =
            call!(self.virDomainSetMetadata(domain.raw(), DESCRIPTION, text.as_ptr(), null(), null(), flags));
        self.done(set).map(drop)
    }

    pub(crate) fn set_element(
        &self,
        domain: &Object,
        element: &str,
        (prefix, namespace): (&str, &str),
        flags: u32,
    ) -> Result<(), LibvirtError> {
        let (element, prefix, namespace) = (c_text(element)?, c_text(prefix)?, c_text(namespace)?);
        let (kind, texts) = (METADATA_ELEMENT, [&element, &prefix, &namespace].map(|text| text.as_ptr()));
        let set = call!(self.virDomainSetMetadata(domain.raw(), kind, texts[0], texts[1], texts[2], flags));
        self.done(set).map(drop)
    }

    pub(crate) fn description(&self, domain: &Object) -> Result<String, LibvirtError> {
        self.owned_text(call!(self.virDomainGetMetadata(domain.raw(), DESCRIPTION, null(), 0)))
    }

    pub(crate) fn attach(&self, domain: &Object, device: &str, flags: c_uint) -> Result<(), LibvirtError> {
        let device = c_text(device)?;
        self.done(call!(self.virDomainAttachDeviceFlags(domain.raw(), device.as_ptr(), flags))).map(drop)
    }

    pub(crate) fn detach(&self, domain: &Object, device: &str, flags: c_uint) -> Result<(), LibvirtError> {
        let device = c_text(device)?;
        self.done(call!(self.virDomainDetachDeviceFlags(domain.raw(), device.as_ptr(), flags))).map(drop)
    }

    pub(crate) fn migrate(
        &self,
        domain: &Object,
        to: &Object,
        flags: u32,
        over: Option<&str>,
    ) -> Result<Object, LibvirtError> {
        let over = over.map(c_text).transpose()?;
        let over = over.as_ref().map_or(null(), |over| over.as_ptr());
        let flags = c_ulong::from(flags);
        let moved = call!(self.virDomainMigrate(domain.raw(), to.raw(), flags, null(), over, 0));
        self.object(moved, self.functions.virDomainFree)
    }

    pub(crate) fn create_snapshot(&self, domain: &Object, xml: &str) -> Result<Object, LibvirtError> {
        let xml = c_text(xml)?;
        let snapshot = call!(self.virDomainSnapshotCreateXML(domain.raw(), xml.as_ptr(), 0));
        self.object(snapshot, self.functions.virDomainSnapshotFree)
    }

    pub(crate) fn find_snapshot(&self, domain: &Object, name: &str) -> Result<Object, LibvirtError> {
        let name = c_text(name)?;
        let snapshot = call!(self.virDomainSnapshotLookupByName(domain.raw(), name.as_ptr(), 0));
        self.object(snapshot, self.functions.virDomainSnapshotFree)
    }

    pub(crate) fn delete_snapshot(&self, snapshot: &Object) -> Result<(), LibvirtError> {
        self.done(call!(self.virDomainSnapshotDelete(snapshot.raw(), 0))).map(drop)
    }

    pub(crate) fn copy_volume(
        &self,
        pool: &Object,
        xml: &str,
        from: &Object,
        flags: u32,
    ) -> Result<Object, LibvirtError> {
        let xml = c_text(xml)?;
        let volume = call!(self.virStorageVolCreateXMLFrom(pool.raw(), xml.as_ptr(), from.raw(), flags));
        self.object(volume, self.functions.virStorageVolFree)
    }

    pub(crate) fn find_volume(&self, pool: &Object, name: &str) -> Result<Object, LibvirtError> {
        let name = c_text(name)?;
        let volume = call!(self.virStorageVolLookupByName(pool.raw(), name.as_ptr()));
        self.object(volume, self.functions.virStorageVolFree)
    }
}

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
