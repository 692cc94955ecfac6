//! What a cloud cannot do.

use virtbench_record::OperationKind;

/// What bears upon which operations can be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Has {
    /// Hosts that are up, where the role may know.
    pub(super) hosts: Option<usize>,
    /// Another flavor is named.
    pub(super) other_flavor: bool,
    /// Cinder.
    pub(super) volumes: bool,
    /// First disks are volumes.
    pub(super) boots_volumes: bool,
    /// Servers are on a network.
    pub(super) network: bool,
}

pub(super) fn no_other_flavor() -> String {
    "there is no flavor to resize to: name one by other-flavor= in the address".to_owned()
}

/// What cannot be done there, and why.
pub(super) fn lacks(has: &Has, operation: OperationKind) -> Option<String> {
    let name = operation.name();
    match operation {
        OperationKind::Migrate | OperationKind::ColdMigrate if has.hosts.is_some_and(|hosts| hosts < 2) => {
            Some("there is one host only".to_owned())
        }
        OperationKind::Migrate | OperationKind::ColdMigrate if has.hosts.is_none() => {
            Some("servers are migrated by administrators, and this role may not even list hosts".to_owned())
        }
        OperationKind::Resize if !has.other_flavor => Some(no_other_flavor()),
        OperationKind::Shutdown => {
            Some("Nova asks a guest to end before it ends it: that is power_off".to_owned())
        }
        OperationKind::AttachDisk | OperationKind::DetachDisk if !has.volumes => {
            Some("the catalogue has no service for volumes (Cinder)".to_owned())
        }
        OperationKind::AttachPort | OperationKind::DetachPort if !has.network => {
            Some("servers have no network: name one by network= in the address".to_owned())
        }
        OperationKind::CreateSnapshot | OperationKind::DeleteSnapshot | OperationKind::RevertSnapshot
            if has.boots_volumes =>
        {
            Some(
                "of a server on a volume Nova makes a snapshot in Cinder, which stays when its image goes"
                    .to_owned(),
            )
        }
        OperationKind::Rebuild if has.boots_volumes => {
            Some("virtbench speaks no version of Nova's API that rebuilds servers on volumes".to_owned())
        }
        OperationKind::MoveDisk | OperationKind::ResizeDisk => {
            Some(format!("Nova has no {name} of a server's own disk"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Has =
        Has { hosts: Some(2), other_flavor: true, volumes: true, boots_volumes: false, network: true };

    #[test]
    fn what_a_cloud_lacks_is_said_by_its_hosts_flavors_and_services() {
        let lacks = |has: Has, kind| super::lacks(&has, kind).is_some();
        let hosts = |hosts| Has { hosts, ..ALL };
        assert!(lacks(hosts(Some(1)), OperationKind::Migrate) && !lacks(ALL, OperationKind::Migrate));
        assert!(lacks(hosts(None), OperationKind::ColdMigrate) && !lacks(hosts(None), OperationKind::Clone));
        assert!(lacks(Has { other_flavor: false, ..ALL }, OperationKind::Resize));
        let without = super::lacks(&Has { volumes: false, ..ALL }, OperationKind::AttachDisk).unwrap();
        assert!(without.contains("Cinder") && !lacks(ALL, OperationKind::AttachDisk));
        assert!(lacks(Has { network: false, ..ALL }, OperationKind::AttachPort));
        let on_volumes = Has { boots_volumes: true, ..ALL };
        assert!(
            lacks(on_volumes, OperationKind::CreateSnapshot) && lacks(on_volumes, OperationKind::Rebuild)
        );
        assert!(!lacks(on_volumes, OperationKind::AttachDisk) && !lacks(ALL, OperationKind::AttachPort));
        assert!(!lacks(ALL, OperationKind::Shelve) && lacks(ALL, OperationKind::MoveDisk));
    }
}
