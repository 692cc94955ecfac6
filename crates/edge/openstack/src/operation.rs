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

    /// Whether a guest should be heard of once it is done.
    pub(crate) fn starts_a_guest(&self) -> bool {
        matches!(
            self,
            Self::Create(_) | Self::Start | Self::Reboot | Self::Unshelve | Self::Rebuild { runs: true, .. }
        )
    }
}

impl NewServer<'_> {
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
            "imageRef": self.image,
            "networks": networks,
        });
        if let Some(zone) = self.zone {
            server["availability_zone"] = zone.into();
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
            name: "n",
            description: "d",
            metadata: &metadata,
            flavor: "f",
            image: "i",
            network,
            zone: Some("z"),
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
        let image = Operation::DeleteImage { image: "i1" }.steps("")[0].0.clone();
        assert_eq!(image, Call::of("DELETE", "images/i1", None).at_image());
    }
}
