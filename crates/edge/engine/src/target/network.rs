//! Opening targets that are reached through a socket.

use std::path::Path;
use std::sync::Arc;

use virtbench_record::{TargetFacts, TargetKind};

use super::error::{TargetError, check_size};
use super::{Source, Target, TargetRequest};
use crate::nbd::{NbdAddress, NbdSource};
use crate::vhost_user::VhostUserSource;

pub(super) fn open_nbd(request: &TargetRequest, uri: &str) -> Result<Target, TargetError> {
    let address = NbdAddress::parse(uri)?;
    guard(request)?;
    let source = NbdSource::open(address)?;
    let export = *source.export();
    if request.writes && export.read_only() {
        return Err(TargetError::ReadOnly(uri.to_owned()));
    }
    let notes = vec!["what the NBD server caches is part of what was measured".to_owned()];
    let facts = facts(request, TargetKind::Nbd, export.size_bytes, export.min_block_bytes)?;
    Ok(Target { source: Source::Nbd(Arc::new(source)), facts, notes, faults: None, ledger: None })
}

pub(super) fn open_vhost_user(request: &TargetRequest, socket: &Path) -> Result<Target, TargetError> {
    guard(request)?;
    let source = VhostUserSource::open(socket, !request.writes)?;
    let disk = *source.facts();
    let facts = facts(request, TargetKind::VhostUser, disk.size_bytes, disk.alignment_bytes)?;
    Ok(Target {
        source: Source::VhostUser(Arc::new(source)),
        facts,
        notes: Vec::new(),
        faults: None,
        ledger: None,
    })
}

/// A server cannot say whose data it serves: none of it is ours.
fn guard(request: &TargetRequest) -> Result<(), TargetError> {
    if request.writes && !request.allow_overwrite {
        return Err(TargetError::Foreign(request.path.clone()));
    }
    Ok(())
}

/// No page cache of this machine lies between the load and a server.
fn facts(
    request: &TargetRequest,
    kind: TargetKind,
    size_bytes: u64,
    alignment_bytes: u32,
) -> Result<TargetFacts, TargetError> {
    check_size(&request.path, size_bytes, request.size_bytes.unwrap_or(0))?;
    let path = request.path.display().to_string();
    Ok(TargetFacts { path, kind, size_bytes, direct: true, alignment_bytes })
}
