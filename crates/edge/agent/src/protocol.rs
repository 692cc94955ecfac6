//! What host and agent say to each other.
//!
//! A frame is a length (32 bits, little endian) and that many bytes of JSON. The host asks with
//! [`Request`], the agent answers with [`Reply`]:
//!
//! ```text
//! host                     agent
//! Hello ------------------> Hello      versions must agree, else Failed and the end
//! Ping -------------------> Pong       any time, also while measuring: holds the clocks together
//! Alive                                any time: the controller is still there
//! Describe ---------------> Device     once the disk is there: what the kernel says of it
//! Facts ------------------> Facts      of the machine
//! MakeFile ---------------> Making     while a test file is written
//!                           Made       when it is
//! Prepare ----------------> Prepared   opens the target, allocates buffers, makes data
//! Start {at} -------------> Measuring  when ramp-up is over (sent at that moment)
//!                           Finished   with the outcome, and what the machine's processors did meanwhile if the host cannot see it
//! Stop -------------------> Finished   early, with what was measured so far
//! Appliance --------------> Appliance  what is said of an appliance; that a service crashed comes unasked, at any time
//! Enclosing --------------> Enclosing  files and shares of a machine of the user's for appliances
//! Network ----------------> Network    about the path to another agent; `Measuring` comes when what passes over it counts
//! Shutdown ---------------> (the end; a guest powers off)
//! ```
//!
//! Instead of `Device`, `Facts`, `Made`, `Prepared`, `Measuring` or `Finished` a `Failed` can come; the agent then is idle
//! again. Neither side trusts the other with more than [`MAX_FRAME_BYTES`].

pub mod appliance;
pub mod network;

use std::io::{self, Read, Write};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_record::{CrossingCost, DeviceFacts, HostFacts, HostUse, JobOutcome, TargetFacts};
use virtbench_workload::JobSpec;

use self::appliance::{ApplianceReply, ApplianceRequest, EnclosingReply, EnclosingRequest};
use self::network::{NetworkReply, NetworkRequest};

/// Version of the protocol. Host and agent come from one build, so any difference is refused.
pub const VERSION: u32 = 10;

/// The largest frame either side accepts, in bytes.
pub const MAX_FRAME_BYTES: u32 = 4 << 20;

/// How long a remote agent works without a word from its controller.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(15);

/// The line with which a remote agent begins; what a login printed before is passed over.
pub const READY: &str = "virtbench-agent ready";

/// The line with which a remote agent that cannot begin says why.
pub const NOT_READY: &str = "virtbench-agent cannot start: ";

/// The test file in a remote agent's folder.
pub const TEST_FILE: &str = "disk";

/// Name of the virtio-serial port, as QEMU is told and as the guest finds it.
pub const PORT_NAME: &str = "virtbench.0";

/// What is to be loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetRef {
    /// This file or device.
    Path(String),
    /// A whole disk of a machine that exists.
    Device {
        /// As the machine's system names it.
        path: String,
        /// Whether its owner has allowed that it is written to.
        may_overwrite: bool,
    },
    /// The guest's first disk whose kernel name begins like this, such as `vd` or `nvme`.
    Disk {
        /// The beginning of its name under `/sys/block`.
        name_prefix: String,
    },
}

/// One thing to do: a load on a target, or a classic workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// What is loaded, or where a workload has its storage, if it needs any.
    pub target: TargetRef,
    /// What is done.
    pub spec: JobSpec,
}

/// What the host says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The first thing said.
    Hello {
        /// The host's [`VERSION`].
        version: u32,
    },
    /// Asks for the clock.
    Ping {
        /// Comes back in the answer.
        id: u64,
    },
    /// Asks what the kernel says of the first disk whose name begins like this.
    Describe {
        /// The beginning of its name under `/sys/block`.
        name_prefix: String,
    },
    /// Says that the controller still runs. A remote agent that hears nothing for [`SILENCE_LIMIT`] ends.
    Alive,
    /// Asks what the machine is, with the storage under a path.
    Facts {
        /// The path.
        path: String,
    },
    /// Write a test file whole, or take one that has the size.
    MakeFile {
        /// Where, from the agent's folder on.
        path: String,
        /// Its size, in bytes.
        size_bytes: u64,
    },
    /// Get ready for this job.
    Prepare(Box<Job>),
    /// Begin ramp-up when the agent's monotonic clock shows this, or now if that has passed.
    Start {
        /// Nanoseconds of the agent's monotonic clock.
        at_ns: u64,
    },
    /// Something about an appliance.
    Appliance(ApplianceRequest),
    /// Something about what an appliance gets of this machine.
    Enclosing(EnclosingRequest),
    /// Something about a network path from or to this machine.
    Network(NetworkRequest),
    /// End the load early, or what is done for an appliance.
    Stop,
    /// End the agent.
    Shutdown,
}

/// The agent's introduction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The agent's [`VERSION`].
    pub version: u32,
    /// Kernel release it runs on.
    pub kernel: String,
    /// Processors it sees.
    pub processors: u32,
    /// Memory it sees, in bytes.
    pub memory_bytes: u64,
    /// What keeps its clock, such as `tsc`.
    pub clock_source: String,
    /// What its programs pay for crossing into its kernel.
    pub crossing: CrossingCost,
}

/// Why something failed, in a form the host can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The request makes no sense, or not now.
    Request,
    /// The target cannot be used for this load.
    Target,
    /// The load cannot be applied on this kernel.
    Engine,
    /// The target stopped working while it was loaded.
    Run,
    /// The appliance cannot do it.
    Appliance,
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The first thing said.
    Hello(Greeting),
    /// The clock.
    Pong {
        /// From the question.
        id: u64,
        /// Nanoseconds of the agent's monotonic clock when it answered.
        clock_ns: u64,
    },
    /// A disk as the kernel describes it.
    Device(DeviceFacts),
    /// What the machine is.
    Facts(HostFacts),
    /// A test file is being written.
    Making {
        /// Bytes written.
        done_bytes: u64,
        /// Bytes in all.
        total_bytes: u64,
    },
    /// The test file is whole.
    Made {
        /// What a reader of results should know about it.
        notes: Vec<String>,
    },
    /// Ready to start.
    Prepared {
        /// The target as it was found; nothing where the job has none.
        target: Option<TargetFacts>,
    },
    /// Ramp-up is over.
    Measuring {
        /// Nanoseconds of the agent's monotonic clock when measuring began.
        clock_ns: u64,
    },
    /// The job is over.
    Finished {
        /// What came of it.
        outcome: JobOutcome,
        /// What the machine's processors did in the measuring time; nothing where the controller sees that itself.
        host: Option<HostUse>,
    },
    /// Something about an appliance.
    Appliance(ApplianceReply),
    /// Something about what an appliance gets of this machine.
    Enclosing(EnclosingReply),
    /// Something about a network path from or to this machine.
    Network(NetworkReply),
    /// It could not be done.
    Failed {
        /// What kind of failure.
        kind: FailureKind,
        /// What to tell the user.
        message: String,
    },
}

/// A conversation that broke down.
#[derive(Debug, Error)]
pub enum ProtocolError {
    /// The other side closed the connection between frames.
    #[error("the connection was closed")]
    Closed,
    /// Reading or writing failed, or the time limit ran out.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    /// A frame larger than allowed.
    #[error("a frame of {bytes} bytes is over the limit of {MAX_FRAME_BYTES}")]
    TooLarge {
        /// Its length.
        bytes: u64,
    },
    /// A frame that is not a message.
    #[error("a frame is not a message of protocol version {VERSION}: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// Sends one message as one frame.
///
/// # Errors
/// The connection failed, or the message exceeds [`MAX_FRAME_BYTES`].
pub fn send<T: Serialize>(writer: &mut impl Write, message: &T) -> Result<(), ProtocolError> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|length| *length <= MAX_FRAME_BYTES)
        .ok_or(ProtocolError::TooLarge { bytes: body.len() as u64 })?;
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&body);
    writer.write_all(&frame)?;
    writer.flush()?;
    Ok(())
}

/// Receives one message. At most [`MAX_FRAME_BYTES`] are buffered, whatever the frame claims.
///
/// # Errors
/// The connection was closed or failed, or the frame is too large or no message.
pub fn receive<T: DeserializeOwned>(reader: &mut impl Read) -> Result<T, ProtocolError> {
    let mut header = [0; 4];
    let mut filled = 0;
    while filled < header.len() {
        match reader.read(&mut header[filled..]) {
            Ok(0) if filled == 0 => return Err(ProtocolError::Closed),
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let length = u32::from_le_bytes(header);
    if length > MAX_FRAME_BYTES {
        return Err(ProtocolError::TooLarge { bytes: length.into() });
    }
    let mut body = Vec::new();
    reader.take(length.into()).read_to_end(&mut body)?;
    if body.len() < length as usize {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(serde_json::from_slice(&body)?)
}

/// The line with which an agent that listens names its port.
pub const LISTENS: &str = "virtbench-agent listens ";

/// The word before an order on its command line.
pub const SESSION: &str = "--session";

/// An order, which is JSON in Base64 on its command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOrder {
    /// SHA-256 of the agent's program, in hexadecimal digits.
    pub digest: String,
    /// The folder to work in; a relative one begins where the session does, in the user's own folder.
    pub folder: String,
    /// The agent's name where several share the folder.
    pub name: Option<String>,
    /// Where the session's own streams do not reach the agent: it listens on loopback for one connection that begins with this word.
    pub secret: Option<String>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_travel() {
        let mut wire = Vec::new();
        send(&mut wire, &Request::Ping { id: 7 }).unwrap();
        send(&mut wire, &Request::Shutdown).unwrap();
        let mut reader = wire.as_slice();
        assert_eq!(receive::<Request>(&mut reader).unwrap(), Request::Ping { id: 7 });
        assert_eq!(receive::<Request>(&mut reader).unwrap(), Request::Shutdown);
        assert!(matches!(receive::<Request>(&mut reader), Err(ProtocolError::Closed)));
    }

    #[test]
    fn a_huge_claim_is_refused_before_anything_is_read() {
        let wire = u32::MAX.to_le_bytes();
        assert!(matches!(
            receive::<Reply>(&mut wire.as_slice()),
            Err(ProtocolError::TooLarge { bytes: 4_294_967_295 })
        ));
    }

    #[test]
    fn a_cut_frame_is_not_an_orderly_end() {
        let mut wire = Vec::new();
        send(&mut wire, &Request::Ping { id: 7 }).unwrap();
        for cut in 1..wire.len() {
            assert!(matches!(receive::<Request>(&mut &wire[..cut]), Err(ProtocolError::Io(_))), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_of_a_guest_panic(wire in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = receive::<Request>(&mut wire.as_slice());
            let _ = receive::<Reply>(&mut wire.as_slice());
        }
    }
}
