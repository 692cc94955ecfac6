//! How a guest of a cluster or a cloud is logged in to, as the address of its VM says.

use virtbench_lab::SshAddress;

/// How the settings begin that are for the login to the guest.
const PREFIX: &str = "ssh-";
/// Where the agent works where no folder is named.
const FOLDER: &str = "/var/tmp/virtbench";

/// A login to whichever address the guest has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuestLogin {
    user: Option<String>,
    port: Option<u16>,
    /// Where the agent works.
    pub folder: String,
    config: Option<String>,
}

impl GuestLogin {
    /// Takes `ssh-user=`, `ssh-port=`, `ssh-folder=` and `ssh-config=` out of an address; with what is left of it.
    ///
    /// # Errors
    /// One of them makes no sense.
    pub fn take_from(text: &str) -> Result<(Self, String), String> {
        let (server, query) = text.split_once('?').unwrap_or((text, ""));
        let (login, others): (Vec<&str>, Vec<&str>) =
            query.split('&').filter(|one| !one.is_empty()).partition(|one| one.starts_with(PREFIX));
        let platform =
            if others.is_empty() { server.to_owned() } else { format!("{server}?{}", others.join("&")) };
        let mut guest = Self { user: None, port: None, folder: FOLDER.into(), config: None };
        for setting in login {
            guest.take(setting).map_err(|why| format!("{server}: {why}"))?;
        }
        // What is wrong with it is said before a VM is made.
        guest.at("192.0.2.1")?;
        Ok((guest, platform))
    }

    fn take(&mut self, setting: &str) -> Result<(), String> {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        match name {
            "ssh-user" if !value.is_empty() => self.user = Some(value.to_owned()),
            "ssh-port" => self.port = Some(value.parse().map_err(|_| format!("{setting}: no such port"))?),
            "ssh-folder" if value.starts_with('/') => value.clone_into(&mut self.folder),
            "ssh-config" if !value.is_empty() => self.config = Some(value.to_owned()),
            _ => {
                return Err(format!(
                    "{setting} is no setting of the login to a guest: ssh-user=NAME, ssh-port=N, ssh-folder=/FOLDER, ssh-config=FILE"
                ));
            }
        }
        Ok(())
    }

    /// The guest at this address.
    ///
    /// # Errors
    /// The login is impossible.
    pub fn at(&self, ip: &str) -> Result<SshAddress, String> {
        let user = self.user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
        let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        let config = self.config.as_ref().map_or_else(String::new, |file| format!("?config={file}"));
        SshAddress::parse(&format!("ssh://{user}{host}{port}{}{config}", self.folder))
            .map_err(|error| error.to_string())
    }
}
