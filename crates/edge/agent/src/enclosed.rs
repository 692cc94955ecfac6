//! The agent of an appliance on a machine of the user's: it gives the appliance what it gets of the machine, and passes on what the
//! host and an agent that is alone in there say to each other.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::io::{FdFlags, fcntl_setfd};

use crate::enclosure::{
    INTERFACE, Limits, LoopCache, LoopDevice, OwnNetwork, join_bridge, processors_in_turn, usable_processors,
};
use crate::protocol::appliance::{EncloseOrder, Enclosed, EnclosingReply, EnclosingRequest};
use crate::protocol::{FailureKind, ProtocolError, Reply, Request, receive, send};
use crate::session::hello;
use crate::stored_file::{copy, is_plain};
use crate::work_folder::beside;

/// The file of its data, in its folder.
const DATA: &str = "data";
/// What is passed on at once, in bytes.
const PASSED_ON: usize = 64 << 10;

/// What an appliance has got of the machine. It goes with this, after all that runs in there.
pub(crate) struct Enclosure {
    alone: Child,
    _disks: Vec<LoopDevice>,
    _limits: Limits,
}

impl Drop for Enclosure {
    fn drop(&mut self) {
        // Whatever runs in its namespaces is killed with it.
        let _ = self.alone.kill();
        let _ = self.alone.wait();
    }
}

impl Enclosure {
    /// Makes one in `folder`, with an agent in it that speaks on `connection`.
    fn make(folder: &Path, order: &EncloseOrder, connection: OwnedFd) -> Result<(Self, Enclosed), String> {
        let kept = |name: &str| -> Result<PathBuf, String> {
            let from = beside(folder, &order.kept_by).filter(|_| is_plain(name));
            from.map(|from| from.join(name))
                .ok_or_else(|| format!("{name} is no file that is kept: a defect"))
        };
        let attached =
            |disk: Result<LoopDevice, _>| disk.map_err(|error| format!("on that machine: {error}"));
        let root = attached(LoopDevice::attach_read_only(&kept(&order.root)?, LoopCache::Direct))?;
        let data = match &order.data {
            None => None,
            Some(name) => {
                let own = folder.join(DATA);
                copy(&kept(name)?, &own)?;
                Some(attached(LoopDevice::attach(&own, LoopCache::Direct))?)
            }
        };
        let failed = |error: io::Error| format!("it cannot be enclosed there: {error}");
        let network = OwnNetwork::new().map_err(failed)?;
        join_bridge(&network, &order.bridge)?;
        let allowed = usable_processors().map_err(failed)?;
        let processors = processors_in_turn(&allowed, order.number, order.vcpus);
        let mut limits = Limits::make(order.memory_bytes, order.vcpus, &processors).map_err(failed)?;
        if order.has_init {
            limits.add_init()?;
        }
        let inherited = [connection, network.descriptor().map_err(failed)?];
        let alone = start_alone(inherited, &limits).map_err(failed)?;
        let path = |disk: &LoopDevice| disk.path().to_string_lossy().into_owned();
        let enclosed = Enclosed {
            root: path(&root),
            data: data.as_ref().map(path),
            interface: INTERFACE.to_owned(),
            notes: limits.notes.clone(),
        };
        let disks = [root].into_iter().chain(data).collect();
        Ok((Self { alone, _disks: disks, _limits: limits }, enclosed))
    }
}

/// Starts this program in namespaces of its own, with a connection and a network that it inherits.
fn start_alone(inherited: [OwnedFd; 2], limits: &Limits) -> io::Result<Child> {
    // It leads to the program after its file was removed, too.
    let mut command = Command::new("/proc/self/exe");
    command.arg("--alone").args(inherited.iter().map(|one| one.as_raw_fd().to_string()));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    limits.apply(&mut command)?;
    let lend = move || {
        inherited.iter().try_for_each(|one| fcntl_setfd(one, FdFlags::empty())).map_err(io::Error::from)
    };
    // SAFETY: between fork and exec there are two system calls.
    unsafe { command.pre_exec(lend) };
    command.spawn()
}

/// Encloses an appliance in `folder` once the host says what it gets, gives that to `keep`, and passes on what is said until either
/// side hangs up.
///
/// # Errors
/// The connection failed, or what came over it was no message.
pub(crate) fn serve(
    folder: &Path,
    mut reader: impl Read + Send + 'static,
    mut writer: impl Write,
    keep: impl FnOnce(Enclosure),
) -> Result<(), ProtocolError> {
    let order = loop {
        match receive::<Request>(&mut reader) {
            Ok(Request::Hello { version }) => send(&mut writer, &hello(version))?,
            Ok(Request::Alive) => {}
            Ok(Request::Enclosing(EnclosingRequest::Enclose(order))) => break order,
            Ok(Request::Shutdown) | Err(ProtocolError::Closed) => return Ok(()),
            Ok(_) => {
                let message = "first of all this agent has to enclose something: a defect".to_owned();
                send(&mut writer, &Reply::Failed { kind: FailureKind::Request, message })?;
            }
            Err(error) => return Err(error),
        }
    };
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut towards = ours.try_clone()?;
    // From here on, so that the host is heard while a copy is made.
    thread::spawn(move || {
        let _ = pass_on(&mut reader, &mut towards);
        let _ = towards.shutdown(Shutdown::Write);
    });
    match Enclosure::make(folder, &order, theirs.into()) {
        Ok((enclosure, enclosed)) => {
            keep(enclosure);
            send(&mut writer, &Reply::Enclosing(EnclosingReply::Enclosed(enclosed)))?;
            Ok(pass_on(&mut ours, &mut writer)?)
        }
        Err(message) => send(&mut writer, &Reply::Failed { kind: FailureKind::Appliance, message }),
    }
}

/// Passes on what comes, at once, until nothing comes any more.
fn pass_on(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; PASSED_ON];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
