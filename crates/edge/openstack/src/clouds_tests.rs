use std::fs;

use super::*;

const FILE: &str = "
clouds:
  lab:
    auth:
      auth_url: http://lab.example:5000
      username: me
      project_name: bench
      user_domain_name: Default
      project_domain_id: default
    region_name: RegionOne
    interface: internalURL
    verify: false
  app:
    auth: {auth_url: 'https://app.example/identity/v3/', application_credential_id: 21dced0fd20347869b93710d2b98aae0}
    cacert: /etc/app.pem
  tenant:
    auth: {auth_url: https://h:5000/v3, username: 1234, password: 007, project_id: p}
  rented:
    profile: vexxhost
    auth: {username: me}
";
const SECURE: &str = "
clouds:
  lab: {auth: {password: hunter2}}
  app:
    auth_type: v3applicationcredential
    auth: {application_credential_secret: hunter3}
";

fn find(text: &str, variables: &[(&str, &str)]) -> Result<Cloud, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("clouds.yaml"), FILE).unwrap();
    fs::write(folder.path().join("secure.yaml"), SECURE).unwrap();
    let variable =
        |name: &str| variables.iter().find(|(found, _)| *found == name).map(|(_, value)| (*value).to_owned());
    let folders = vec![folder.path().join("none"), folder.path().to_owned()];
    Cloud::find(&Address::parse(text).unwrap(), &Surroundings { variable: &variable, folders })
}

#[test]
fn a_cloud_is_read_from_its_two_files_and_its_secret_is_not_printed() {
    let lab = find("openstack:lab", &[]).unwrap();
    assert_eq!(lab.identity, "http://lab.example:5000/v3");
    assert_eq!((lab.region.as_deref(), lab.interface.as_str()), (Some("RegionOne"), "internal"));
    assert_eq!(lab.trust, Trust::Anybody);
    let asked = lab.credentials.request();
    assert_eq!(asked["auth"]["identity"]["password"]["user"]["password"], "hunter2");
    assert_eq!(asked["auth"]["identity"]["password"]["user"]["domain"]["name"], "Default");
    assert_eq!(asked["auth"]["scope"]["project"]["domain"]["id"], "default");
    assert!(lab.credentials.can_be_repeated() && !format!("{lab:?}").contains("hunter2"), "{lab:?}");
    let app = find("openstack:app?region=Two&interface=admin", &[]).unwrap();
    assert_eq!(app.identity, "https://app.example/identity/v3");
    assert_eq!((app.region.as_deref(), app.interface.as_str()), (Some("Two"), "admin"));
    assert_eq!(app.trust, Trust::Authorities("/etc/app.pem".into()));
    let asked = app.credentials.request();
    assert_eq!(asked["auth"]["identity"]["application_credential"]["secret"], "hunter3");
    assert!(asked["auth"].get("scope").is_none(), "{asked}");
    let number = find("openstack:", &[("OS_CLOUD", "tenant")]).unwrap().credentials.request();
    assert_eq!(number["auth"]["identity"]["password"]["user"]["password"], "007", "as it is written");
}

#[test]
fn a_cloud_is_read_from_variables() {
    let password = [
        ("OS_AUTH_URL", "https://h/v3"),
        ("OS_USERNAME", "u"),
        ("OS_PASSWORD", "p"),
        ("OS_PROJECT_NAME", "x"),
        ("OS_INSECURE", "True"),
    ];
    let cloud = find("openstack:", &password).unwrap();
    assert_eq!((cloud.identity.as_str(), cloud.trust), ("https://h/v3", Trust::Anybody));
    let token =
        [("OS_AUTH_URL", "https://h"), ("OS_TOKEN", "t"), ("OS_PROJECT_ID", "x"), ("OS_CACERT", "/c")];
    let cloud = find("openstack:", &token).unwrap();
    assert_eq!(cloud.trust, Trust::Authorities("/c".into()));
    assert_eq!(cloud.credentials.request()["auth"]["identity"]["token"]["id"], "t");
    assert!(!cloud.credentials.can_be_repeated());
}

#[test]
fn what_a_cloud_lacks_is_said_without_a_secret() {
    for (text, variables, word) in [
        ("openstack:none", &[][..], "app, lab, rented, tenant"),
        ("openstack:rented", &[], "vexxhost"),
        ("openstack:", &[], "OS_CLOUD"),
        ("openstack:lab", &[("OS_CLIENT_CONFIG_FILE", "/nowhere")], "not there"),
        ("openstack:", &[("OS_AUTH_URL", "h:5000")], "no address of Keystone"),
        ("openstack:", &[("OS_AUTH_URL", "https://h/v2.0")], "no address of Keystone"),
        ("openstack:", &[("OS_AUTH_URL", "https://h"), ("OS_PASSWORD", "hunter2")], "no user"),
        ("openstack:", &[("OS_AUTH_URL", "https://h"), ("OS_USERNAME", "u")], "OS_PASSWORD"),
        (
            "openstack:",
            &[("OS_AUTH_URL", "https://h"), ("OS_USERNAME", "u"), ("OS_PASSWORD", "hunter2")],
            "OS_PROJECT_NAME",
        ),
        ("openstack:", &[("OS_AUTH_URL", "https://h"), ("OS_AUTH_TYPE", "v3oidcpassword")], "v3password"),
    ] {
        let error = find(text, variables).unwrap_err();
        assert!(error.contains(word) && !error.contains("hunter2"), "{text}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    fs::write(&file, "clouds:\n  a:\n    auth: {password: hunter2\n").unwrap();
    let error = find("openstack:a", &[("OS_CLIENT_CONFIG_FILE", file.to_str().unwrap())]).unwrap_err();
    assert!(error.contains("no YAML file of clouds") && !error.contains("hunter2"), "{error}");
}
