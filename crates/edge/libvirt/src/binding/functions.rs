//! libvirt's functions and structures, declared by hand after its headers (libvirt 9.0, `include/libvirt`).

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong, c_void};

/// `virDomainPtr`, `virStreamPtr` and so on, none of which anyone looks into.
pub(super) type Pointer = *mut c_void;
pub(super) type Text = *const c_char;
pub(super) type Release = unsafe extern "C" fn(Pointer) -> c_int;
pub(super) type OnEvent = unsafe extern "C" fn(Pointer, c_int, *mut c_void);
/// `virConnectDomainEventCallback`
pub(super) type OnDomainEvent = unsafe extern "C" fn(Pointer, Pointer, c_int, c_int, *mut c_void) -> c_int;
pub(super) type Free = unsafe extern "C" fn(*mut c_void);
pub(super) type OnError = unsafe extern "C" fn(*mut c_void, *mut VirError);

/// `struct _virError`
#[repr(C)]
pub(super) struct VirError {
    pub(super) code: c_int,
    pub(super) domain: c_int,
    pub(super) message: *mut c_char,
    pub(super) level: c_int,
    pub(super) objects: [*mut c_void; 2],
    pub(super) texts: [*mut c_char; 3],
    pub(super) numbers: [c_int; 2],
    pub(super) network: *mut c_void,
}

/// `struct _virNodeInfo`
#[repr(C)]
#[derive(Default)]
pub(super) struct VirNodeInfo {
    pub(super) model: [u8; 32],
    pub(super) memory_kib: c_ulong,
    pub(super) cpus: c_uint,
    pub(super) mhz: c_uint,
    pub(super) nodes: c_uint,
    pub(super) sockets: c_uint,
    pub(super) cores: c_uint,
    pub(super) threads: c_uint,
}

/// `struct _virNodeCPUStats`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct VirCpuTime {
    pub(super) field: [u8; 80],
    pub(super) value: c_ulonglong,
}

/// `struct _virStoragePoolInfo`
#[repr(C)]
#[derive(Default)]
pub(crate) struct VirPoolInfo {
    pub(crate) state: c_int,
    pub(crate) capacity: c_ulonglong,
    pub(crate) allocation: c_ulonglong,
    pub(crate) available: c_ulonglong,
}

/// `struct _virTypedParameter`, whose value is a union of at most eight bytes
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct VirTypedParameter {
    pub(super) field: [u8; 80],
    pub(super) kind: c_int,
    pub(super) value: c_ulonglong,
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        #[allow(non_snake_case)]
        pub(super) struct Functions { $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> $result,)* }

        impl Functions {
            pub(super) fn find(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: each type is that of the function of this name in libvirt's headers.
                unsafe { Ok(Self { $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)* }) }
            }
        }
    };
}

functions! {
    virInitialize() -> c_int;
    virGetLastError() -> *mut VirError;
    virSetErrorFunc(*mut c_void, OnError) -> ();
    virEventRegisterDefaultImpl() -> c_int;
    virEventRunDefaultImpl() -> c_int;
    virConnectOpen(Text) -> Pointer;
    virConnectClose(Pointer) -> c_int;
    virConnectSetKeepAlive(Pointer, c_int, c_uint) -> c_int;
    virConnectGetType(Pointer) -> Text;
    virConnectGetHostname(Pointer) -> *mut c_char;
    virConnectGetCapabilities(Pointer) -> *mut c_char;
    virConnectGetSysinfo(Pointer, c_uint) -> *mut c_char;
    virConnectGetVersion(Pointer, *mut c_ulong) -> c_int;
    virConnectGetLibVersion(Pointer, *mut c_ulong) -> c_int;
    virNodeGetInfo(Pointer, *mut VirNodeInfo) -> c_int;
    virNodeGetCPUStats(Pointer, c_int, *mut VirCpuTime, *mut c_int, c_uint) -> c_int;
    virConnectDomainEventRegisterAny(Pointer, Pointer, c_int, OnDomainEvent, *mut c_void, Free) -> c_int;
    virConnectDomainEventDeregisterAny(Pointer, c_int) -> c_int;
    virConnectListAllDomains(Pointer, *mut *mut Pointer, c_uint) -> c_int;
    virConnectListAllStoragePools(Pointer, *mut *mut Pointer, c_uint) -> c_int;
    virDomainCreateXML(Pointer, Text, c_uint) -> Pointer;
    virDomainDefineXML(Pointer, Text) -> Pointer;
    virDomainLookupByName(Pointer, Text) -> Pointer;
    virDomainCreateWithFlags(Pointer, c_uint) -> c_int;
    virDomainUndefineFlags(Pointer, c_uint) -> c_int;
    virDomainSetMetadata(Pointer, c_int, Text, Text, Text, c_uint) -> c_int;
    virDomainAttachDeviceFlags(Pointer, Text, c_uint) -> c_int;
    virDomainDetachDeviceFlags(Pointer, Text, c_uint) -> c_int;
    virDomainMigrate(Pointer, Pointer, c_ulong, Text, Text, c_ulong) -> Pointer;
    virDomainGetJobStats(Pointer, *mut c_int, *mut *mut VirTypedParameter, *mut c_int, c_uint) -> c_int;
    virTypedParamsFree(*mut VirTypedParameter, c_int) -> ();
    virDomainSnapshotCreateXML(Pointer, Text, c_uint) -> Pointer;
    virDomainSnapshotLookupByName(Pointer, Text, c_uint) -> Pointer;
    virDomainSnapshotDelete(Pointer, c_uint) -> c_int;
    virDomainSnapshotFree(Pointer) -> c_int;
    virDomainFree(Pointer) -> c_int;
    virDomainGetName(Pointer) -> Text;
    virDomainGetXMLDesc(Pointer, c_uint) -> *mut c_char;
    virDomainGetMetadata(Pointer, c_int, Text, c_uint) -> *mut c_char;
    virDomainGetState(Pointer, *mut c_int, *mut c_int, c_uint) -> c_int;
    virDomainSuspend(Pointer) -> c_int;
    virDomainResume(Pointer) -> c_int;
    virDomainDestroy(Pointer) -> c_int;
    virDomainOpenChannel(Pointer, Text, Pointer, c_uint) -> c_int;
    virDomainOpenConsole(Pointer, Text, Pointer, c_uint) -> c_int;
    virStoragePoolLookupByName(Pointer, Text) -> Pointer;
    virStoragePoolFree(Pointer) -> c_int;
    virStoragePoolGetName(Pointer) -> Text;
    virStoragePoolGetInfo(Pointer, *mut VirPoolInfo) -> c_int;
    virStoragePoolGetXMLDesc(Pointer, c_uint) -> *mut c_char;
    virStoragePoolRefresh(Pointer, c_uint) -> c_int;
    virStoragePoolListAllVolumes(Pointer, *mut *mut Pointer, c_uint) -> c_int;
    virStorageVolCreateXML(Pointer, Text, c_uint) -> Pointer;
    virStorageVolCreateXMLFrom(Pointer, Text, Pointer, c_uint) -> Pointer;
    virStorageVolLookupByName(Pointer, Text) -> Pointer;
    virStorageVolFree(Pointer) -> c_int;
    virStorageVolGetName(Pointer) -> Text;
    virStorageVolGetPath(Pointer) -> *mut c_char;
    virStorageVolGetXMLDesc(Pointer, c_uint) -> *mut c_char;
    virStorageVolUpload(Pointer, Pointer, c_ulonglong, c_ulonglong, c_uint) -> c_int;
    virStorageVolDelete(Pointer, c_uint) -> c_int;
    virStreamNew(Pointer, c_uint) -> Pointer;
    virStreamFree(Pointer) -> c_int;
    virStreamSend(Pointer, Text, usize) -> c_int;
    virStreamRecv(Pointer, *mut c_char, usize) -> c_int;
    virStreamFinish(Pointer) -> c_int;
    virStreamAbort(Pointer) -> c_int;
    virStreamEventAddCallback(Pointer, c_int, OnEvent, *mut c_void, Free) -> c_int;
    virStreamEventUpdateCallback(Pointer, c_int) -> c_int;
    virStreamEventRemoveCallback(Pointer) -> c_int;
}
