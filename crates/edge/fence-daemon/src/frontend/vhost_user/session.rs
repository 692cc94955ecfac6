//! One connection: what the client and we have agreed on, message by message.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use vhost::vhost_user::message::{
    FrontendReq, VhostUserProtocolFeatures as Protocol, VhostUserVirtioFeatures,
};

use super::backend_channel::{BackendChannel, Call, eventfd};
use super::blk::Device;
use super::inflight::Inflight;
use super::memory::{ClientMemory, MOST_REGIONS, RegionAddresses};
use super::vring::{Addresses, Vring};
use super::wire::{self, Inbox, Message, WireError};
use crate::ring::WatchId;

/// `VHOST_USER_PROTOCOL_F_*` that we have.
const PROTOCOL: Protocol = Protocol::MQ
    .union(Protocol::REPLY_ACK)
    .union(Protocol::CONFIG)
    .union(Protocol::INFLIGHT_SHMFD)
    .union(Protocol::CONFIGURE_MEM_SLOTS)
    .union(Protocol::BACKEND_REQ);
/// The rest of a vring descriptor message: no descriptor comes along.
const NO_FD: u64 = 1 << 8;
const RING_MASK: u64 = 0xff;
/// Bytes before the data of a configuration message.
const CONFIG_HEADER_BYTES: usize = 12;
/// Bytes of a region in a message.
const REGION_BYTES: usize = 32;

/// What the front end is to do after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// Watch the kick of this ring.
    Kick(u16),
    /// The client can be told of changes from now on.
    Listens,
    /// Forget the kick of this ring, and answer when it has nothing in flight.
    Stopping(u16),
}

/// One connection.
#[derive(Debug)]
pub struct Session {
    /// The client.
    pub socket: UnixStream,
    /// Its watch.
    pub watch: WatchId,
    inbox: Inbox,
    /// Negotiated.
    pub features: u64,
    protocol: u64,
    /// Its memory.
    pub memory: ClientMemory,
    /// Its rings.
    pub rings: Vec<Vring>,
    /// What outlives us of the rings.
    pub inflight: Option<Inflight>,
    /// A ring that is being stopped.
    pub stopping: Option<u16>,
    /// By which the client hears of changes.
    pub backend: Option<BackendChannel>,
}

impl Session {
    /// A connection that has just been accepted.
    pub fn new(socket: UnixStream, watch: WatchId, queues: u16) -> Self {
        Self {
            socket,
            watch,
            inbox: Inbox::default(),
            features: 0,
            protocol: 0,
            memory: ClientMemory::new(),
            rings: (0..queues).map(Vring::new).collect(),
            inflight: None,
            stopping: None,
            backend: None,
        }
    }

    /// The next whole message, if there is one.
    pub fn receive(&mut self) -> Result<Option<Message>, WireError> {
        self.inbox.receive(&self.socket)
    }

    /// Tells the client that its device has another configuration. False if it cannot be told.
    pub fn tell_config_changed(&mut self) -> bool {
        let told = self.has(Protocol::CONFIG)
            && self.backend.as_ref().is_some_and(|backend| backend.config_changed().is_ok());
        if !told {
            self.backend = None;
        }
        told
    }

    /// Whether memory that the client shares has gone.
    #[inline]
    pub fn has_lost_memory(&mut self) -> bool {
        self.memory.is_dead() || self.inflight.as_ref().is_some_and(Inflight::is_dead)
    }

    /// Does what a message says, and answers it.
    ///
    /// # Errors
    /// It makes no sense: the connection ends.
    pub fn handle(&mut self, mut message: Message, device: &Device) -> Result<After, WireError> {
        let code =
            FrontendReq::try_from(message.code).map_err(|_| WireError::Malformed("an unknown message"))?;
        let mut after = After::Nothing;
        match code {
            FrontendReq::GET_FEATURES => {
                let features = device.features() | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
                return self.answer(&message, features);
            }
            FrontendReq::SET_FEATURES => self.features = message.u64(0)?,
            FrontendReq::GET_PROTOCOL_FEATURES => return self.answer(&message, PROTOCOL.bits()),
            FrontendReq::SET_PROTOCOL_FEATURES => self.protocol = message.u64(0)? & PROTOCOL.bits(),
            FrontendReq::GET_QUEUE_NUM => return self.answer(&message, device.queues.into()),
            FrontendReq::GET_MAX_MEM_SLOTS => return self.answer(&message, MOST_REGIONS as u64),
            FrontendReq::SET_OWNER | FrontendReq::RESET_OWNER => {}
            FrontendReq::SET_MEM_TABLE => self.set_memory(&mut message)?,
            FrontendReq::ADD_MEM_REG => {
                let fd = message.one_fd()?;
                self.memory.add(place(&message, 8)?, fd)?;
                self.relocate()?;
            }
            FrontendReq::REM_MEM_REG => {
                self.memory.remove(place(&message, 8)?)?;
                self.relocate()?;
            }
            FrontendReq::GET_VRING_BASE => {
                let number = message.u32(0)?;
                self.ring(number)?;
                let number = u16::try_from(number).unwrap_or(0);
                self.stopping = Some(number);
                return Ok(After::Stopping(number));
            }
            FrontendReq::SET_VRING_KICK => after = self.set_kick(&mut message)?,
            FrontendReq::SET_VRING_NUM
            | FrontendReq::SET_VRING_BASE
            | FrontendReq::SET_VRING_ADDR
            | FrontendReq::SET_VRING_CALL
            | FrontendReq::SET_VRING_ERR
            | FrontendReq::SET_VRING_ENABLE => self.set_ring(code, &mut message)?,
            FrontendReq::GET_CONFIG => return self.get_config(&message, device),
            // Nothing in it can be changed.
            FrontendReq::SET_CONFIG => {}
            FrontendReq::SET_BACKEND_REQ_FD => {
                self.backend = Some(BackendChannel::new(message.one_fd()?)?);
                after = After::Listens;
            }
            FrontendReq::GET_INFLIGHT_FD => return self.get_inflight(&message, device),
            FrontendReq::SET_INFLIGHT_FD => {
                let fd = message.one_fd()?;
                let [queues, size] = halves(message.u32(16)?);
                let (len, offset) = (message.u64(0)?, message.u64(8)?);
                self.inflight = Some(Inflight::open(fd, offset, len, queues, size)?);
            }
            _ => return Err(WireError::Malformed("a message that was not offered")),
        }
        self.acknowledge(&message)?;
        Ok(after)
    }

    /// Changes what a ring is.
    fn set_ring(&mut self, code: FrontendReq, message: &mut Message) -> Result<(), WireError> {
        match code {
            FrontendReq::SET_VRING_NUM => {
                let size = message.u32(4)?;
                self.stopped(message)?.set_size(size)?;
            }
            FrontendReq::SET_VRING_BASE => {
                let base = message.u32(4)?;
                self.stopped(message)?.set_base(base)?;
            }
            FrontendReq::SET_VRING_ADDR => {
                let addresses = Addresses {
                    descriptors: message.u64(8)?,
                    used: message.u64(16)?,
                    available: message.u64(24)?,
                };
                let memory = self.memory.clone();
                self.ring(message.u32(0)?)?.set_addresses(addresses, &memory)?;
            }
            FrontendReq::SET_VRING_CALL => {
                let (number, call) = descriptor(message, Call::new)?;
                self.ring(number)?.set_call(call);
            }
            FrontendReq::SET_VRING_ERR => {
                let (number, fd) = descriptor(message, eventfd)?;
                self.ring(number)?.err = fd;
            }
            FrontendReq::SET_VRING_ENABLE => {
                let enabled = message.u32(4)? != 0;
                self.ring(message.u32(0)?)?.enable(enabled);
            }
            _ => return Err(WireError::Malformed("a message about no ring")),
        }
        Ok(())
    }

    /// The ring that was being stopped has nothing in flight: answers where it ends.
    pub fn stopped_at(&mut self, number: u16) -> Result<(), WireError> {
        self.stopping = None;
        let base = self.ring(number.into())?.stop();
        let payload = [u32::from(number), base.into()].map(u32::to_ne_bytes).concat();
        wire::reply(&self.socket, FrontendReq::GET_VRING_BASE.into(), &payload, None)
    }

    fn has(&self, feature: Protocol) -> bool {
        self.protocol & feature.bits() != 0
    }

    fn ring(&mut self, number: u32) -> Result<&mut Vring, WireError> {
        self.rings.get_mut(number as usize).ok_or(WireError::Malformed("no such ring"))
    }

    /// The ring of a message that only one at rest may get.
    fn stopped(&mut self, message: &Message) -> Result<&mut Vring, WireError> {
        let ring = self.ring(message.u32(0)?)?;
        if ring.is_started() { Err(WireError::Malformed("a ring changed while it runs")) } else { Ok(ring) }
    }

    fn answer(&self, message: &Message, value: u64) -> Result<After, WireError> {
        wire::reply(&self.socket, message.code, &value.to_ne_bytes(), None)?;
        Ok(After::Nothing)
    }

    fn acknowledge(&self, message: &Message) -> Result<(), WireError> {
        if message.need_reply && self.has(Protocol::REPLY_ACK) {
            wire::reply(&self.socket, message.code, &0u64.to_ne_bytes(), None)?;
        }
        Ok(())
    }

    fn set_memory(&mut self, message: &mut Message) -> Result<(), WireError> {
        let count = message.u32(0)? as usize;
        let fds = std::mem::take(&mut message.fds);
        if count != fds.len() || count > MOST_REGIONS {
            return Err(WireError::Malformed("a descriptor for each region of memory must come along"));
        }
        let mut regions = Vec::new();
        for (number, fd) in fds.into_iter().enumerate() {
            regions.push((place(message, 8 + number * REGION_BYTES)?, fd));
        }
        self.memory.replace(regions)?;
        self.relocate()
    }

    fn relocate(&mut self) -> Result<(), WireError> {
        let memory = &self.memory;
        // A ring at rest may lie in memory that comes later.
        self.rings.iter_mut().filter(|ring| ring.is_started()).try_for_each(|ring| ring.relocate(memory))
    }

    fn set_kick(&mut self, message: &mut Message) -> Result<After, WireError> {
        let (number, fd) = descriptor(message, eventfd)?;
        let (memory, features) = (self.memory.clone(), self.features);
        let negotiated = features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() != 0;
        let inflight = self.inflight.as_ref();
        let ring = self.rings.get_mut(number as usize).ok_or(WireError::Malformed("no such ring"))?;
        if ring.is_started() {
            return Err(WireError::Malformed("a ring started twice"));
        }
        ring.start(&memory, features, inflight)?;
        if !negotiated {
            ring.enable(true);
        }
        ring.kick = fd.map(|fd| (fd, None));
        Ok(After::Kick(u16::try_from(number).unwrap_or(0)))
    }

    fn get_config(&self, message: &Message, device: &Device) -> Result<After, WireError> {
        let (offset, size) = (message.u32(0)? as usize, message.u32(4)? as usize);
        let mut payload = message.payload.clone();
        let Some(into) = payload.get_mut(CONFIG_HEADER_BYTES..).filter(|into| into.len() == size) else {
            return Err(WireError::Malformed("a configuration of another length"));
        };
        let config = device.config();
        // A client of newer fields than ours reads zeroes there.
        for (at, byte) in into.iter_mut().enumerate() {
            *byte = config.get(offset.saturating_add(at)).copied().unwrap_or(0);
        }
        wire::reply(&self.socket, message.code, &payload, None)?;
        Ok(After::Nothing)
    }

    fn get_inflight(&mut self, message: &Message, device: &Device) -> Result<After, WireError> {
        let [queues, size] = halves(message.u32(16)?);
        if queues > device.queues {
            return Err(WireError::Malformed("in-flight memory for more rings than there are"));
        }
        let (inflight, fd, len) = Inflight::create(queues, size)?;
        self.inflight = Some(inflight);
        let mut payload = [len, 0].map(u64::to_ne_bytes).concat();
        payload.extend([queues, size].map(u16::to_ne_bytes).concat());
        payload.extend([0; 4]);
        wire::reply(&self.socket, message.code, &payload, Some(fd.as_fd()))?;
        Ok(After::Nothing)
    }
}

/// Two halves of a word, in the machine's order.
fn halves(word: u32) -> [u16; 2] {
    let [a, b, c, d] = word.to_ne_bytes();
    [u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])]
}

fn place(message: &Message, at: usize) -> Result<RegionAddresses, WireError> {
    Ok(RegionAddresses {
        base: message.u64(at)?,
        len: message.u64(at + 8)?,
        user: message.u64(at + 16)?,
        offset: message.u64(at + 24)?,
    })
}

/// A ring's number and the descriptor that came along, if one was to, as `take` has it.
fn descriptor<T>(
    message: &mut Message,
    take: impl FnOnce(OwnedFd) -> Result<T, WireError>,
) -> Result<(u32, Option<T>), WireError> {
    let word = message.u64(0)?;
    let number = u32::try_from(word & RING_MASK).unwrap_or(0);
    if word & NO_FD != 0 {
        return Ok((number, None));
    }
    Ok((number, Some(take(message.one_fd()?)?)))
}
