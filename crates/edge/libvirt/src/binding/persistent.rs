//! Functions of domains that stay when they have ended: definitions, snapshots, devices, migration; copies of volumes.

use std::ffi::{c_int, c_uint, c_ulong};
use std::ptr::null;

use super::{Binding, METADATA_ELEMENT, Object, c_text};
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
