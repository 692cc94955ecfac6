//! A token, and where the services are that it is for.

use std::time::SystemTime;

use serde_json::Value;

use crate::clouds::Cloud;
use crate::time;

/// Names of services, as catalogues have them; the first that is found counts.
const COMPUTE: &[&str] = &["compute"];
const IMAGE: &[&str] = &["image"];
const NETWORK: &[&str] = &["network"];
const VOLUME: &[&str] = &["volumev3", "block-storage", "block-store", "volume"];

/// What Keystone gave.
#[derive(Clone)]
pub(crate) struct Token {
    /// It is not printed.
    pub text: String,
    /// When it ends, by the cloud's clock.
    pub ends: Option<SystemTime>,
}

/// Where services are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Catalogue {
    /// Nova's, without its version or project.
    pub compute: String,
    /// Glance's, without its version.
    pub image: String,
    /// Neutron's, without its version.
    pub network: Option<String>,
    /// Cinder's, with its version and the project.
    pub volume: Option<String>,
    /// The project that the token is for.
    pub project: String,
}

impl Catalogue {
    /// Reads the body of a token.
    ///
    /// # Errors
    /// It lacks a service in the region, and which.
    pub fn read(token: &Value, cloud: &Cloud) -> Result<Self, String> {
        let services = token["catalog"].as_array().map(Vec::as_slice).unwrap_or_default();
        let missing = |what: &str| {
            let found: Vec<&str> = services.iter().filter_map(|service| service["type"].as_str()).collect();
            let region =
                cloud.region.as_ref().map(|region| format!(" of region {region}")).unwrap_or_default();
            format!(
                "the catalogue{region} has no {} endpoint for {what}: it has {}; see the project, region_name and interface",
                cloud.interface,
                if found.is_empty() { "nothing".to_owned() } else { found.join(", ") }
            )
        };
        let compute = endpoint(services, COMPUTE, cloud)?.ok_or_else(|| missing("compute"))?;
        let image = endpoint(services, IMAGE, cloud)?.ok_or_else(|| missing("image"))?;
        let compute = compute.split_once("/v2").map_or(compute.as_str(), |(base, _)| base).to_owned();
        Ok(Self {
            compute,
            image: image.trim_end_matches("/v2").to_owned(),
            network: endpoint(services, NETWORK, cloud)?.map(|url| url.trim_end_matches("/v2.0").to_owned()),
            volume: endpoint(services, VOLUME, cloud)?,
            project: token["project"]["id"].as_str().unwrap_or_default().to_owned(),
        })
    }
}

/// When a token ends.
pub(crate) fn end(token: &Value) -> Option<SystemTime> {
    time::parse(token["expires_at"].as_str()?)
}

fn endpoint(services: &[Value], kinds: &[&str], cloud: &Cloud) -> Result<Option<String>, String> {
    let of_kinds =
        kinds.iter().flat_map(|kind| services.iter().filter(move |service| service["type"] == *kind));
    let all = of_kinds.flat_map(|service| service["endpoints"].as_array());
    let all: Vec<&Value> =
        all.flatten().filter(|endpoint| endpoint["interface"] == cloud.interface.as_str()).collect();
    let region = |endpoint: &Value| {
        let region = endpoint["region_id"].as_str().or(endpoint["region"].as_str());
        region.unwrap_or_default().to_owned()
    };
    let mut fit =
        all.iter().filter(|endpoint| cloud.region.as_ref().is_none_or(|wanted| *wanted == region(endpoint)));
    let Some(first) = fit.next() else { return Ok(None) };
    if fit.any(|other| region(other) != region(first)) {
        let mut regions: Vec<String> = all.into_iter().map(region).collect();
        regions.sort();
        regions.dedup();
        return Err(format!(
            "the cloud has the regions {}: name one by region_name in clouds.yaml, OS_REGION_NAME, or ?region=",
            regions.join(", ")
        ));
    }
    Ok(first["url"].as_str().map(|url| url.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use virtbench_https::Trust;

    use super::*;
    use crate::credentials::{Credentials, Settings};

    fn cloud(region: Option<&str>) -> Cloud {
        let mut settings = Settings::default();
        for (name, value) in [("username", "u"), ("password", "p"), ("project_name", "x")] {
            settings.set(name, value.to_owned());
        }
        Cloud {
            identity: String::new(),
            credentials: Credentials::read(&settings, None).unwrap(),
            region: region.map(str::to_owned),
            interface: "public".into(),
            trust: Trust::System,
        }
    }

    fn service(kind: &str, endpoints: &[(&str, &str, &str)]) -> Value {
        let endpoints: Vec<Value> = endpoints
            .iter()
            .map(|(interface, region, url)| json!({"interface": interface, "region_id": region, "url": url}))
            .collect();
        json!({"type": kind, "endpoints": endpoints})
    }

    #[test]
    fn services_are_found_by_interface_and_region() {
        let compute = [
            ("internal", "One", "http://in:8774/v2.1"),
            ("public", "One", "https://one/compute/v2.1/0123abc"),
            ("public", "Two", "https://two/compute/v2.1"),
        ];
        let image = [("public", "One", "https://one/image/v2/"), ("public", "Two", "https://two:9292")];
        let volume = [("public", "Two", "https://two/volume/v3/0123abc")];
        let catalog = [service("compute", &compute), service("image", &image), service("volumev3", &volume)];
        let token =
            json!({"catalog": catalog, "project": {"id": "p"}, "expires_at": "2026-11-29T05:00:00.000000Z"});
        let read = |region| Catalogue::read(&token, &cloud(region));
        let one = read(Some("One")).unwrap();
        assert_eq!((one.compute.as_str(), one.image.as_str()), ("https://one/compute", "https://one/image"));
        let volume = read(Some("Two")).unwrap().volume;
        assert_eq!((one.volume, volume.as_deref()), (None, Some("https://two/volume/v3/0123abc")));
        assert!(read(None).unwrap_err().contains("One, Two"));
        assert!(read(Some("Three")).unwrap_err().contains("region Three has no public endpoint for compute"));
        assert!(end(&token).is_some() && end(&json!({})).is_none());
    }
}
