//! What can be done with a server, as calls, and how it is seen that it is done.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::session::{Call, action, encoded};

/// What a server is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewServer<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its description says.
    pub description: &'a str,
    /// What is written on it.
    pub metadata: &'a BTreeMap<String, String>,
    /// The flavor's id.
    pub flavor: &'a str,
    /// The image's id.
    pub image: &'a str,
    /// The network's id, `auto` or `none`.
    pub network: &'a str,
    /// The availability zone.
    pub zone: Option<&'a str>,
    /// The name of the key pair that its guest lets in.
    pub key: Option<&'a str>,
    /// Its security group.
    pub security_group: Option<&'a str>,
    /// Where its first disk is a volume of Cinder's, which goes with it: that volume's GiB.
    pub volume_gib: Option<u64>,
}

/// An operation on a server, or on an image of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Makes it; it runs then.
    Create(NewServer<'a>),
    /// Starts it.
    Start,
    /// Ends it: its guest is asked first.
    Stop,
    /// Lets it begin anew at once.
    Reboot,
    /// Lets it stand still, on its host's disk.
    Suspend,
    /// Lets it go on.
    Resume,
    /// Moves it to another host while it runs.
    LiveMigrate,
    /// Moves it to another host with a pause, and confirms that.
    ColdMigrate,
    /// Gives it another flavor, and confirms that.
    Resize {
        /// The flavor's id.
        flavor: &'a str,
    },
    /// Has it begin anew with this image.
    Rebuild {
        /// The image's id.
        image: &'a str,
        /// Whether it runs, and should afterwards.
        runs: bool,
    },
    /// Takes it from its host.
    Shelve,
    /// Puts it back onto one.
    Unshelve,
    /// Makes an image of it.
    CreateImage {
        /// Its name.
        name: &'a str,
        /// What is written on it.
        metadata: &'a BTreeMap<String, String>,
    },
    /// Removes an image.
    DeleteImage {
        /// Its id.
        image: &'a str,
    },
    /// Makes a volume.
    CreateVolume {
        /// Its name.
        name: &'a str,
        /// What its description says.
        description: &'a str,
        /// What is written on it.
        metadata: &'a BTreeMap<String, String>,
        /// Its GiB.
        gib: u64,
    },
    /// Gives it a volume as another disk.
    AttachVolume {
        /// The volume's id.
        volume: &'a str,
    },
    /// Takes that from it.
    DetachVolume {
        /// The volume's id.
        volume: &'a str,
    },
    /// Removes a volume.
    DeleteVolume {
        /// Its id.
        volume: &'a str,
    },
    /// Gives it another port, which goes with it.
    AttachPort {
        /// The network's id, or `auto`.
        network: &'a str,
    },
    /// Takes that from it; a port that was made for it goes.
    DetachPort {
        /// The port's id.
        port: &'a str,
    },
    /// Writes something on it.
    Note {
        /// Its name among the metadata.
        name: &'a str,
        /// 255 characters at most.
        text: &'a str,
    },
    /// Has a console of it opened.
    Console,
    /// Removes it.
    Delete,
}

/// When an operation is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Once nothing is done with the server any more, and it has one of these states.
    Settled(&'static [&'static str]),
    /// Once the server is gone.
    Gone,
    /// With its answer.
    Answered,
    /// Once the image that the answer names is whole, and nothing is done with the server.
    ImageMade,
    /// Once the image is gone.
    ImageGone,
    /// Once the volume has this status.
    VolumeIs(&'static str),
    /// Once the volume is gone.
    VolumeGone,
    /// Once the server has the port, or has it no more.
    PortIs(bool),
}

const RUNS: &[&str] = &["ACTIVE"];
const IS_OFF: &[&str] = &["SHUTOFF"];
/// What follows a confirmation: as it was before.
const CONFIRMED: &[&str] = &["ACTIVE", "SHUTOFF"];
const TO_CONFIRM: &[&str] = &["VERIFY_RESIZE"];

impl Operation<'_> {
    /// The calls that have it done, one after the other, and when each is over.
    pub(crate) fn steps(&self, server: &str) -> Vec<(Call, End)> {
        let act = |name: &str, value: Value| action(server, name, value);
        let confirm = || (act("confirmResize", Value::Null), End::Settled(CONFIRMED));
        let path = |rest: &str| format!("servers/{}{rest}", encoded(server));
        let one = |call, end| vec![(call, end)];
        match self {
            Self::Create(new) => one(new.call(), End::Settled(RUNS)),
            Self::Start => one(act("os-start", Value::Null), End::Settled(RUNS)),
            Self::Stop => one(act("os-stop", Value::Null), End::Settled(IS_OFF)),
            Self::Reboot => one(act("reboot", json!({ "type": "HARD" })), End::Settled(RUNS)),
            Self::Suspend => one(act("suspend", Value::Null), End::Settled(&["SUSPENDED"])),
            Self::Resume => one(act("resume", Value::Null), End::Settled(RUNS)),
            Self::LiveMigrate => {
                let how = json!({ "host": null, "block_migration": "auto" });
                one(act("os-migrateLive", how), End::Settled(RUNS))
            }
            Self::ColdMigrate => vec![(act("migrate", Value::Null), End::Settled(TO_CONFIRM)), confirm()],
            Self::Resize { flavor } => {
                let resize = act("resize", json!({ "flavorRef": flavor }));
                vec![(resize, End::Settled(TO_CONFIRM)), confirm()]
            }
            Self::Rebuild { image, runs } => {
                let end = if *runs { RUNS } else { IS_OFF };
                one(act("rebuild", json!({ "imageRef": image })), End::Settled(end))
            }
            // Where Nova keeps shelved servers on their hosts for a while, the image is all that is waited for.
            Self::Shelve => one(act("shelve", Value::Null), End::Settled(&["SHELVED_OFFLOADED", "SHELVED"])),
            Self::Unshelve => one(act("unshelve", Value::Null), End::Settled(RUNS)),
            Self::CreateImage { name, metadata } => {
                let image = json!({ "name": name, "metadata": metadata });
                one(act("createImage", image), End::ImageMade)
            }
            Self::DeleteImage { image } => {
                one(Call::of("DELETE", format!("images/{}", encoded(image)), None).at_image(), End::ImageGone)
            }
            Self::CreateVolume { .. }
            | Self::AttachVolume { .. }
            | Self::DetachVolume { .. }
            | Self::DeleteVolume { .. }
            | Self::AttachPort { .. }
            | Self::DetachPort { .. } => self.attachment(server).into_iter().collect(),
            Self::Note { name, text } => {
                let body = json!({ "metadata": { *name: text } });
                one(Call::of("POST", path("/metadata"), Some(body)), End::Answered)
            }
            Self::Console => {
                let body = json!({ "remote_console": { "protocol": "vnc", "type": "novnc" } });
                one(Call::of("POST", path("/remote-consoles"), Some(body)), End::Answered)
            }
            Self::Delete => one(Call::of("DELETE", path(""), None), End::Gone),
        }
    }

    /// The call of what is for volumes and ports.
    fn attachment(&self, server: &str) -> Option<(Call, End)> {
        let path = |rest: &str| format!("servers/{}{rest}", encoded(server));
        match self {
            Self::CreateVolume { name, description, metadata, gib } => {
                let volume =
                    json!({ "name": name, "description": description, "metadata": metadata, "size": gib });
                let body = Some(json!({ "volume": volume }));
                Some((Call::of("POST", "volumes", body).at_volume(), End::VolumeIs("available")))
            }
            Self::AttachVolume { volume } => {
                let body = json!({ "volumeAttachment": { "volumeId": volume } });
                Some((Call::of("POST", path("/os-volume_attachments"), Some(body)), End::VolumeIs("in-use")))
            }
            Self::DetachVolume { volume } => {
                let path = path(&format!("/os-volume_attachments/{}", encoded(volume)));
                Some((Call::of("DELETE", path, None), End::VolumeIs("available")))
            }
            Self::DeleteVolume { volume } => {
                let path = format!("volumes/{}", encoded(volume));
                Some((Call::of("DELETE", path, None).at_volume(), End::VolumeGone))
            }
            Self::AttachPort { network } => {
                let wanted = if *network == "auto" { json!({}) } else { json!({ "net_id": network }) };
                let body = json!({ "interfaceAttachment": wanted });
                Some((Call::of("POST", path("/os-interface"), Some(body)), End::PortIs(true)))
            }
            Self::DetachPort { port } => {
                let path = path(&format!("/os-interface/{}", encoded(port)));
                Some((Call::of("DELETE", path, None), End::PortIs(false)))
            }
            _ => None,
        }
    }

    /// The id of the image, the volume or the port that it is about, if that was there before.
    pub(crate) const fn thing(&self) -> Option<&str> {
        match self {
            Self::DeleteImage { image } => Some(image),
            Self::AttachVolume { volume } | Self::DetachVolume { volume } | Self::DeleteVolume { volume } => {
                Some(volume)
            }
            Self::DetachPort { port } => Some(port),
            _ => None,
        }
    }

    /// Whether a guest should be heard of once it is done.
    pub(crate) fn starts_a_guest(&self) -> bool {
        matches!(
            self,
            Self::Create(_) | Self::Start | Self::Reboot | Self::Unshelve | Self::Rebuild { runs: true, .. }
        )
    }
}

impl<'a> NewServer<'a> {
    /// One of this flavor and image, by their ids, with no network and nothing else that a cloud does not ask for.
    #[must_use]
    pub const fn new(
        name: &'a str,
        description: &'a str,
        metadata: &'a BTreeMap<String, String>,
        [flavor, image]: [&'a str; 2],
    ) -> Self {
        let (network, zone, key, security_group, volume_gib) = ("none", None, None, None, None);
        Self { name, description, metadata, flavor, image, network, zone, key, security_group, volume_gib }
    }

    fn call(&self) -> Call {
        let networks = match self.network {
            "auto" | "none" => json!(self.network),
            id => json!([{ "uuid": id }]),
        };
        let mut server = json!({
            "name": self.name,
            "description": self.description,
            "metadata": self.metadata,
            "flavorRef": self.flavor,
            "networks": networks,
        });
        match self.volume_gib {
            None => server["imageRef"] = self.image.into(),
            Some(gib) => {
                server["block_device_mapping_v2"] = json!([{
                    "boot_index": 0,
                    "source_type": "image",
                    "uuid": self.image,
                    "destination_type": "volume",
                    "volume_size": gib,
                    "delete_on_termination": true,
                }]);
            }
        }
        let named = [("availability_zone", self.zone), ("key_name", self.key)];
        for (field, name) in named.into_iter().filter_map(|(field, name)| Some((field, name?))) {
            server[field] = name.into();
        }
        if let Some(group) = self.security_group {
            server["security_groups"] = json!([{ "name": group }]);
        }
        Call::of("POST", "servers", Some(json!({ "server": server })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_of_openstack_is_the_calls_that_its_api_has() {
        let written = |operation: &Operation<'_>| -> Vec<String> {
            let steps = operation.steps("s1");
            steps
                .iter()
                .map(|(call, _)| format!("{call} {}", call.body.clone().unwrap_or_default()))
                .collect()
        };
        assert_eq!(written(&Operation::Stop), [r#"POST servers/s1/action os-stop {"os-stop":null}"#]);
        assert_eq!(written(&Operation::Delete), ["DELETE servers/s1 null"]);
        let resized = written(&Operation::Resize { flavor: "f2" });
        assert_eq!(resized.len(), 2);
        assert!(
            resized[0].contains(r#"{"resize":{"flavorRef":"f2"}}"#) && resized[1].contains("confirmResize")
        );
        let live = written(&Operation::LiveMigrate);
        assert!(live[0].contains(r#"{"block_migration":"auto","host":null}"#), "{live:?}");
        let metadata = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let new = |network| NewServer {
            network,
            zone: Some("z"),
            key: Some("k"),
            security_group: Some("g"),
            ..NewServer::new("n", "d", &metadata, ["f", "i"])
        };
        let body = |network| new(network).call().body.unwrap()["server"].clone();
        assert_eq!(
            (&body("none")["networks"], &body("0-1")["networks"]),
            (&json!("none"), &json!([{"uuid": "0-1"}]))
        );
        assert_eq!(
            (&body("auto")["metadata"]["a"], &body("auto")["availability_zone"]),
            (&json!("b"), &json!("z"))
        );
        let body_of = body("auto");
        assert_eq!(
            (&body_of["key_name"], &body_of["security_groups"]),
            (&json!("k"), &json!([{"name": "g"}]))
        );
        let body = NewServer { volume_gib: Some(3), ..new("none") }.call().body.unwrap()["server"].take();
        let disk = &body["block_device_mapping_v2"][0];
        assert_eq!(
            (&disk["uuid"], &disk["volume_size"], body.get("imageRef")),
            (&json!("i"), &json!(3), None)
        );
        let attached = written(&Operation::AttachVolume { volume: "v1" });
        assert_eq!(
            attached,
            [r#"POST servers/s1/os-volume_attachments {"volumeAttachment":{"volumeId":"v1"}}"#]
        );
        let port = |network| written(&Operation::AttachPort { network }).remove(0);
        assert!(port("auto").ends_with(r#"{"interfaceAttachment":{}}"#) && port("n1").contains("n1"));
        let image = Operation::DeleteImage { image: "i1" }.steps("")[0].0.clone();
        assert_eq!(image, Call::of("DELETE", "images/i1", None).at_image());
    }
}
