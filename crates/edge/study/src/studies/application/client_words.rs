//! The words of a client's command, with the appliance's address in place of what stands for it.

use std::net::SocketAddr;

use crate::disks::served::Served;

/// A command for this software: `{host}` and `{port}` are the address of its first port, `{port:N}` that of port N,
/// `{processors}` how many it has. Everything else stays as it is.
///
/// # Errors
/// It has no such port; in words.
pub(crate) fn client_words(words: &[String], served: &dyn Served) -> Result<Vec<String>, String> {
    let ports = served.ports();
    let address = |port: u16| served.address(port);
    words.iter().map(|word| filled(word, &ports, served.processors(), &address)).collect()
}

fn filled(
    word: &str,
    ports: &[u16],
    processors: u32,
    address: &dyn Fn(u16) -> Option<SocketAddr>,
) -> Result<String, String> {
    let first = ports.first().and_then(|port| address(*port));
    let mut filled = word.replace("{processors}", &processors.to_string());
    if filled.contains("{host}") || filled.contains("{port}") {
        let first = first.ok_or("the recipe's services have no port, so there is no {host} and no {port}")?;
        filled =
            filled.replace("{host}", &first.ip().to_string()).replace("{port}", &first.port().to_string());
    }
    for port in ports {
        let name = format!("{{port:{port}}}");
        if let Some(address) = address(*port).filter(|_| filled.contains(&name)) {
            filled = filled.replace(&name, &address.port().to_string());
        }
    }
    match filled.split_once("{port:").and_then(|(_, rest)| rest.split_once('}')) {
        Some((port, _)) => Err(format!("{{port:{port}}}: the recipe's services have the ports {ports:?}")),
        None => Ok(filled),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stand_in_for_their_names_and_the_rest_stays() {
        let address = |port: u16| Some(SocketAddr::from(([127, 0, 0, 1], port + 1000)));
        let fill = |word: &str| filled(word, &[80, 443], 2, &address);
        assert_eq!(fill("http://{host}:{port}/{x}").unwrap(), "http://127.0.0.1:1080/{x}");
        assert_eq!(fill("{port:443} {processors} {}").unwrap(), "1443 2 {}");
        assert!(fill("{port:99}").unwrap_err().contains("[80, 443]"));
        assert!(filled("{port}", &[], 1, &address).unwrap_err().contains("no port"));
    }
}
