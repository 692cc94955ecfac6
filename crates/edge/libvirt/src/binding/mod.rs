//! libvirt's functions made safe to call. All that is unsafe in this crate is in this folder.

mod functions;
mod signal;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;

pub(crate) use functions::VirPoolInfo;
use functions::{Functions, Pointer, Release, Text, VirCpuTime, VirError, VirNodeInfo};
pub(crate) use lifecycle::Lifecycle;
pub(crate) use signal::Signal;
use signal::{forget, on_event};

use crate::error::LibvirtError;

/// The library's name, which has not changed since 2006.
const LIBRARY: &str = "libvirt.so.0";
/// `VIR_DOMAIN_METADATA_ELEMENT`
const METADATA_ELEMENT: c_int = 2;
/// `VIR_NODE_CPU_STATS_ALL_CPUS`
const ALL_PROCESSORS: c_int = -1;
/// `VIR_STREAM_NONBLOCK`
const NONBLOCK: c_uint = 1;
/// `VIR_STREAM_EVENT_READABLE`
const READABLE: c_int = 1;
/// `VIR_STREAM_EVENT_WRITABLE`
const WRITABLE: c_int = 2;
/// What a stream answers that has nothing now or takes nothing now.
const WOULD_BLOCK: c_int = -2;

/// Calls a function of the library with arguments of its types.
macro_rules! call {
    ($binding:ident.$name:ident($($argument:expr),*)) => {
        // SAFETY: objects live while they are borrowed, texts end with a zero, and what is written to is as large as the
        // function wants.
        unsafe { ($binding.functions.$name)($($argument),*) }
    };
}
mod lifecycle;
mod persistent;

/// The loaded library.
pub(crate) struct Binding {
    functions: Functions,
    // The functions are in it.
    _library: libloading::Library,
}

/// libvirt prints each error by itself unless it is given somebody to tell.
unsafe extern "C" fn say_nothing(_: *mut c_void, _: *mut VirError) {}

fn c_text(text: &str) -> Result<CString, LibvirtError> {
    CString::new(text).map_err(|_| LibvirtError::Local(format!("{text:?} has a zero byte in it")))
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// A machine as its hypervisor describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// Kind of processor, such as `x86_64`.
    pub processor: String,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Processors on line.
    pub processors: u32,
}

/// An object of libvirt's, given back when it is dropped.
pub(crate) struct Object {
    pointer: NonNull<c_void>,
    release: Release,
}

// SAFETY: libvirt's objects count their references and lock themselves; its documentation lets any thread use them.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: it was this value's alone, and `release` is the function for its kind.
        unsafe { (self.release)(self.pointer.as_ptr()) };
    }
}

impl Object {
    fn raw(&self) -> Pointer {
        self.pointer.as_ptr()
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Object")
    }
}

/// Kinds of objects that can be listed.
#[derive(Clone, Copy)]
pub(crate) enum Listed {
    Domains,
    Pools,
    Volumes,
}

impl std::fmt::Debug for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("libvirt")
    }
}

impl Binding {
    pub(crate) fn load() -> Result<Self, LibvirtError> {
        if cfg!(target_feature = "crt-static") {
            return Err(LibvirtError::Static);
        }
        let missing = |error: libloading::Error| LibvirtError::Missing { why: error.to_string() };
        let path = std::env::var_os("VIRTBENCH_LIBVIRT").unwrap_or_else(|| LIBRARY.into());
        // SAFETY: it is libvirt, whose initialisation does nothing to this process.
        let library = unsafe { libloading::Library::new(path) }.map_err(missing)?;
        let functions = Functions::find(&library).map_err(missing)?;
        let binding = Self { functions, _library: library };
        // SAFETY: `say_nothing` needs no state.
        unsafe { (binding.functions.virSetErrorFunc)(null_mut(), say_nothing) };
        // SAFETY: no arguments; the loop must be known before a connection is opened.
        binding.done(unsafe { (binding.functions.virEventRegisterDefaultImpl)() })?;
        // SAFETY: as above.
        binding.done(unsafe { (binding.functions.virInitialize)() })?;
        Ok(binding)
    }

    /// What this thread's last call said.
    fn last_error(&self) -> LibvirtError {
        // SAFETY: the error belongs to this thread and lasts until its next call.
        let said = unsafe {
            (self.functions.virGetLastError)().as_ref().map(|error| {
                let text = NonNull::new(error.message).map(|text| CStr::from_ptr(text.as_ptr()));
                (error.code, error.domain, text.map(|text| text.to_string_lossy().trim_end().to_owned()))
            })
        };
        let (code, part, message) = said.unwrap_or((0, 0, None));
        let message = message.unwrap_or_else(|| "libvirt failed and does not say why".into());
        LibvirtError::Refused { code, part, message }
    }

    fn done(&self, result: c_int) -> Result<c_int, LibvirtError> {
        if result < 0 { Err(self.last_error()) } else { Ok(result) }
    }

    fn object(&self, pointer: Pointer, release: Release) -> Result<Object, LibvirtError> {
        let pointer = NonNull::new(pointer).ok_or_else(|| self.last_error())?;
        Ok(Object { pointer, release })
    }

    /// A text that has to be given back.
    fn owned_text(&self, text: *mut c_char) -> Result<String, LibvirtError> {
        if text.is_null() {
            return Err(self.last_error());
        }
        // SAFETY: libvirt made it with malloc for the caller, with a zero at its end.
        unsafe {
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            libc::free(text.cast());
            Ok(copy)
        }
    }

    /// A text that belongs to an object.
    fn borrowed_text(&self, text: Text) -> Result<String, LibvirtError> {
        if text.is_null() {
            return Err(self.last_error());
        }
        // SAFETY: the object that it belongs to is borrowed by the caller.
        Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    pub(crate) fn run_events(&self) -> Result<(), LibvirtError> {
        self.done(call!(self.virEventRunDefaultImpl())).map(drop)
    }

    pub(crate) fn open(&self, uri: &str) -> Result<Object, LibvirtError> {
        let uri = c_text(uri)?;
        self.object(call!(self.virConnectOpen(uri.as_ptr())), self.functions.virConnectClose)
    }

    /// Whether the other side takes part.
    pub(crate) fn keep_alive(&self, on: &Object, interval_s: i32, count: u32) -> Result<bool, LibvirtError> {
        self.done(call!(self.virConnectSetKeepAlive(on.raw(), interval_s, count))).map(|code| code == 0)
    }

    pub(crate) fn type_name(&self, on: &Object) -> Result<String, LibvirtError> {
        self.borrowed_text(call!(self.virConnectGetType(on.raw())))
    }

    pub(crate) fn host_name(&self, on: &Object) -> Result<String, LibvirtError> {
        self.owned_text(call!(self.virConnectGetHostname(on.raw())))
    }

    pub(crate) fn capabilities(&self, on: &Object) -> Result<String, LibvirtError> {
        self.owned_text(call!(self.virConnectGetCapabilities(on.raw())))
    }

    pub(crate) fn system_information(&self, on: &Object) -> Result<String, LibvirtError> {
        self.owned_text(call!(self.virConnectGetSysinfo(on.raw(), 0)))
    }

    /// The hypervisor's version and that of libvirt there, in millions, thousands and ones.
    pub(crate) fn versions(&self, on: &Object) -> Result<[u64; 2], LibvirtError> {
        let (mut hypervisor, mut library) = (0, 0);
        self.done(call!(self.virConnectGetVersion(on.raw(), &raw mut hypervisor)))?;
        self.done(call!(self.virConnectGetLibVersion(on.raw(), &raw mut library)))?;
        Ok([hypervisor, library])
    }

    pub(crate) fn node(&self, on: &Object) -> Result<NodeInfo, LibvirtError> {
        let mut info = VirNodeInfo::default();
        self.done(call!(self.virNodeGetInfo(on.raw(), &raw mut info)))?;
        Ok(NodeInfo {
            processor: text_of(&info.model),
            memory_bytes: info.memory_kib.saturating_mul(1024),
            processors: info.cpus,
        })
    }

    /// Names and nanoseconds of what all processors have done since they started.
    pub(crate) fn cpu_times(&self, on: &Object) -> Result<Vec<(String, u64)>, LibvirtError> {
        let mut count = 0;
        let all = ALL_PROCESSORS;
        self.done(call!(self.virNodeGetCPUStats(on.raw(), all, null_mut(), &raw mut count, 0)))?;
        let mut times = vec![VirCpuTime { field: [0; 80], value: 0 }; usize::try_from(count).unwrap_or(0)];
        self.done(call!(self.virNodeGetCPUStats(on.raw(), all, times.as_mut_ptr(), &raw mut count, 0)))?;
        Ok(times.iter().map(|time| (text_of(&time.field), time.value)).collect())
    }

    pub(crate) fn list(&self, on: &Object, what: Listed) -> Result<Vec<Object>, LibvirtError> {
        let mut list: *mut Pointer = null_mut();
        let functions = &self.functions;
        let (function, release): (unsafe extern "C" fn(_, _, _) -> _, Release) = match what {
            Listed::Domains => (functions.virConnectListAllDomains, functions.virDomainFree),
            Listed::Pools => (functions.virConnectListAllStoragePools, functions.virStoragePoolFree),
            Listed::Volumes => (functions.virStoragePoolListAllVolumes, functions.virStorageVolFree),
        };
        // SAFETY: `on` is what the function lists things of.
        let count = self.done(unsafe { function(on.raw(), &raw mut list, 0) })?;
        let objects = (0..usize::try_from(count).unwrap_or(0)).filter_map(|index| {
            // SAFETY: the list has `count` pointers, each of which is ours now.
            let pointer = NonNull::new(unsafe { *list.add(index) })?;
            Some(Object { pointer, release })
        });
        let objects = objects.collect();
        // SAFETY: libvirt made the list with malloc for the caller.
        unsafe { libc::free(list.cast()) };
        Ok(objects)
    }

    pub(crate) fn start_domain(&self, on: &Object, xml: &str, flags: u32) -> Result<Object, LibvirtError> {
        let xml = c_text(xml)?;
        let domain = call!(self.virDomainCreateXML(on.raw(), xml.as_ptr(), flags));
        self.object(domain, self.functions.virDomainFree)
    }

    pub(crate) fn domain_name(&self, domain: &Object) -> Result<String, LibvirtError> {
        self.borrowed_text(call!(self.virDomainGetName(domain.raw())))
    }

    pub(crate) fn domain_xml(&self, domain: &Object) -> Result<String, LibvirtError> {
        self.owned_text(call!(self.virDomainGetXMLDesc(domain.raw(), 0)))
    }

    pub(crate) fn domain_metadata(&self, domain: &Object, namespace: &str) -> Result<String, LibvirtError> {
        let namespace = c_text(namespace)?;
        let kind = METADATA_ELEMENT;
        self.owned_text(call!(self.virDomainGetMetadata(domain.raw(), kind, namespace.as_ptr(), 0)))
    }

    /// One of `virDomainState`.
    pub(crate) fn domain_state(&self, domain: &Object) -> Result<i32, LibvirtError> {
        let (mut state, mut reason) = (0, 0);
        self.done(call!(self.virDomainGetState(domain.raw(), &raw mut state, &raw mut reason, 0)))?;
        Ok(state)
    }

    pub(crate) fn suspend_domain(&self, domain: &Object) -> Result<(), LibvirtError> {
        self.done(call!(self.virDomainSuspend(domain.raw()))).map(drop)
    }

    pub(crate) fn resume_domain(&self, domain: &Object) -> Result<(), LibvirtError> {
        self.done(call!(self.virDomainResume(domain.raw()))).map(drop)
    }

    pub(crate) fn destroy_domain(&self, domain: &Object) -> Result<(), LibvirtError> {
        self.done(call!(self.virDomainDestroy(domain.raw()))).map(drop)
    }

    pub(crate) fn open_channel(
        &self,
        domain: &Object,
        name: &str,
        stream: &Object,
    ) -> Result<(), LibvirtError> {
        let name = c_text(name)?;
        self.done(call!(self.virDomainOpenChannel(domain.raw(), name.as_ptr(), stream.raw(), 0))).map(drop)
    }

    /// The first serial console.
    pub(crate) fn open_console(&self, domain: &Object, stream: &Object) -> Result<(), LibvirtError> {
        self.done(call!(self.virDomainOpenConsole(domain.raw(), null(), stream.raw(), 0))).map(drop)
    }

    pub(crate) fn find_pool(&self, on: &Object, name: &str) -> Result<Object, LibvirtError> {
        let name = c_text(name)?;
        let pool = call!(self.virStoragePoolLookupByName(on.raw(), name.as_ptr()));
        self.object(pool, self.functions.virStoragePoolFree)
    }

    pub(crate) fn pool_name(&self, pool: &Object) -> Result<String, LibvirtError> {
        self.borrowed_text(call!(self.virStoragePoolGetName(pool.raw())))
    }

    pub(crate) fn pool_info(&self, pool: &Object) -> Result<VirPoolInfo, LibvirtError> {
        let mut info = VirPoolInfo::default();
        self.done(call!(self.virStoragePoolGetInfo(pool.raw(), &raw mut info)))?;
        Ok(info)
    }

    pub(crate) fn pool_xml(&self, pool: &Object) -> Result<String, LibvirtError> {
        self.owned_text(call!(self.virStoragePoolGetXMLDesc(pool.raw(), 0)))
    }

    pub(crate) fn refresh_pool(&self, pool: &Object) -> Result<(), LibvirtError> {
        self.done(call!(self.virStoragePoolRefresh(pool.raw(), 0))).map(drop)
    }

    pub(crate) fn create_volume(&self, pool: &Object, xml: &str) -> Result<Object, LibvirtError> {
        let xml = c_text(xml)?;
        let volume = call!(self.virStorageVolCreateXML(pool.raw(), xml.as_ptr(), 0));
        self.object(volume, self.functions.virStorageVolFree)
    }

    pub(crate) fn volume_name(&self, volume: &Object) -> Result<String, LibvirtError> {
        self.borrowed_text(call!(self.virStorageVolGetName(volume.raw())))
    }

    pub(crate) fn volume_path(&self, volume: &Object) -> Result<String, LibvirtError> {
        self.owned_text(call!(self.virStorageVolGetPath(volume.raw())))
    }

    pub(crate) fn volume_xml(&self, volume: &Object) -> Result<String, LibvirtError> {
        self.owned_text(call!(self.virStorageVolGetXMLDesc(volume.raw(), 0)))
    }

    pub(crate) fn upload(&self, volume: &Object, stream: &Object, length: u64) -> Result<(), LibvirtError> {
        self.done(call!(self.virStorageVolUpload(volume.raw(), stream.raw(), 0, length, 0))).map(drop)
    }

    pub(crate) fn delete_volume(&self, volume: &Object) -> Result<(), LibvirtError> {
        self.done(call!(self.virStorageVolDelete(volume.raw(), 0))).map(drop)
    }

    /// A stream that waits, or one that does not.
    pub(crate) fn stream(&self, on: &Object, waits: bool) -> Result<Object, LibvirtError> {
        let flags = if waits { 0 } else { NONBLOCK };
        self.object(call!(self.virStreamNew(on.raw(), flags)), self.functions.virStreamFree)
    }

    /// Bytes taken; nothing where none can be taken now.
    pub(crate) fn send(&self, stream: &Object, bytes: &[u8]) -> Result<Option<usize>, LibvirtError> {
        match call!(self.virStreamSend(stream.raw(), bytes.as_ptr().cast(), bytes.len())) {
            WOULD_BLOCK => Ok(None),
            count => self.done(count).map(|count| usize::try_from(count).ok()),
        }
    }

    /// Bytes that came, zero at the end; nothing where there is nothing now.
    pub(crate) fn receive(&self, stream: &Object, buffer: &mut [u8]) -> Result<Option<usize>, LibvirtError> {
        match call!(self.virStreamRecv(stream.raw(), buffer.as_mut_ptr().cast(), buffer.len())) {
            WOULD_BLOCK => Ok(None),
            count => self.done(count).map(|count| usize::try_from(count).ok()),
        }
    }

    pub(crate) fn finish(&self, stream: &Object) -> Result<(), LibvirtError> {
        self.done(call!(self.virStreamFinish(stream.raw()))).map(drop)
    }

    pub(crate) fn abort(&self, stream: &Object) {
        // A stream that has ended cannot be aborted, which is as well.
        let _ = call!(self.virStreamAbort(stream.raw()));
    }

    /// Raises a signal when something has come, once each time it is [`awaited`](Self::await_events).
    pub(crate) fn watch(&self, stream: &Object) -> Result<Arc<Signal>, LibvirtError> {
        let signal = Arc::new(Signal::new(self.functions.virStreamEventUpdateCallback)?);
        let given = Arc::into_raw(Arc::clone(&signal)).cast_mut().cast();
        let added = call!(self.virStreamEventAddCallback(stream.raw(), READABLE, on_event, given, forget));
        self.done(added).inspect_err(|_| {
            // SAFETY: libvirt did not take it.
            unsafe { forget(given) };
        })?;
        Ok(signal)
    }

    /// Has the signal raised again.
    pub(crate) fn await_events(&self, stream: &Object, also_writable: bool) -> Result<(), LibvirtError> {
        let events = if also_writable { READABLE | WRITABLE } else { READABLE };
        self.done(call!(self.virStreamEventUpdateCallback(stream.raw(), events))).map(drop)
    }

    pub(crate) fn unwatch(&self, stream: &Object) {
        let _ = call!(self.virStreamEventRemoveCallback(stream.raw()));
    }
}
