//! As whom to log in to a cloud, and for which project.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};
use virtbench_https::Secret;

/// What stands below `auth:`. It has secrets in it, so that it is not printed.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Settings(BTreeMap<String, Option<String>>);

impl Settings {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_deref().filter(|value| !value.is_empty())
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), Some(value));
    }

    pub fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The first of these that is given.
    fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }
}

/// What a request for a token has, and its secret apart.
#[derive(Clone)]
pub struct Credentials {
    /// `identity` of a request for a token, but for its secret.
    identity: Value,
    /// Where its secret belongs.
    secret_at: &'static str,
    secret: Secret,
    /// `scope`; none for an application credential, which has its own.
    scope: Option<Value>,
    /// What errors call it.
    name: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.name)
    }
}

impl Credentials {
    /// Those of a cloud's settings.
    ///
    /// # Errors
    /// Something is missing, and what.
    pub(crate) fn read(settings: &Settings, kind: Option<&str>) -> Result<Self, String> {
        let kind = kind.map(|kind| kind.strip_prefix("v3").unwrap_or(kind));
        let has_credential = settings.has("application_credential_secret");
        match kind {
            Some("applicationcredential" | "application_credential") => Self::application(settings),
            Some("token") => Self::token(settings),
            Some("password") => Self::password(settings),
            None if has_credential => Self::application(settings),
            None if settings.has("token") && !settings.has("password") => Self::token(settings),
            None => Self::password(settings),
            Some(other) => Err(format!(
                "auth_type {other}: virtbench logs in by v3password, v3applicationcredential or v3token"
            )),
        }
    }

    fn application(settings: &Settings) -> Result<Self, String> {
        let missing = |what: &str| {
            format!("an application credential needs {what} in clouds.yaml or an OS_... variable")
        };
        let secret = settings.get("application_credential_secret");
        let secret = secret.ok_or_else(|| missing("application_credential_secret"))?;
        let (credential, name) = match settings.get("application_credential_id") {
            Some(id) => (json!({ "id": id }), id),
            None => {
                let name = settings.get("application_credential_name");
                let name = name.ok_or_else(|| missing("application_credential_id"))?;
                (json!({ "name": name, "user": user(settings)? }), name)
            }
        };
        Ok(Self {
            identity: json!({ "methods": ["application_credential"], "application_credential": credential }),
            secret_at: "/application_credential/secret",
            secret: Secret::new(secret.to_owned()),
            scope: None,
            name: format!("the application credential {name}"),
        })
    }

    fn password(settings: &Settings) -> Result<Self, String> {
        let secret = settings.get("password").ok_or_else(|| {
            "there is no password: give it as password in secure.yaml or clouds.yaml, or in OS_PASSWORD"
                .to_owned()
        })?;
        let name = settings.first(&["username", "user_id"]).unwrap_or_default().to_owned();
        Ok(Self {
            identity: json!({ "methods": ["password"], "password": { "user": user(settings)? } }),
            secret_at: "/password/user/password",
            secret: Secret::new(secret.to_owned()),
            scope: Some(scope(settings)?),
            name: format!("the user {name}"),
        })
    }

    fn token(settings: &Settings) -> Result<Self, String> {
        let secret = settings.get("token").ok_or("there is no token: give it in OS_TOKEN")?;
        Ok(Self {
            identity: json!({ "methods": ["token"], "token": {} }),
            secret_at: "/token/id",
            secret: Secret::new(secret.to_owned()),
            scope: Some(scope(settings)?),
            name: "a token".to_owned(),
        })
    }

    /// Whether a token that has ended can be had anew.
    pub(crate) fn can_be_repeated(&self) -> bool {
        self.secret_at != "/token/id"
    }

    /// The body of a request for a token.
    pub(crate) fn request(&self) -> Value {
        let mut identity = self.identity.clone();
        let (place, field) = self.secret_at.rsplit_once('/').unwrap_or_default();
        if let Some(place) = identity.pointer_mut(place) {
            place[field] = self.secret.reveal().into();
        }
        let mut auth = json!({ "identity": identity });
        if let Some(scope) = &self.scope {
            auth["scope"] = scope.clone();
        }
        json!({ "auth": auth })
    }
}

fn user(settings: &Settings) -> Result<Value, String> {
    if let Some(id) = settings.get("user_id") {
        return Ok(json!({ "id": id }));
    }
    let name =
        settings.get("username").ok_or("there is no user: give username in clouds.yaml, or OS_USERNAME")?;
    Ok(json!({ "name": name, "domain": domain(settings, ["user_domain_id", "user_domain_name"]) }))
}

fn scope(settings: &Settings) -> Result<Value, String> {
    if let Some(id) = settings.first(&["project_id", "tenant_id"]) {
        return Ok(json!({ "project": { "id": id } }));
    }
    let name = settings.first(&["project_name", "tenant_name"]).ok_or(
        "there is no project, and servers belong to one: give project_name in clouds.yaml, or OS_PROJECT_NAME",
    )?;
    let domain = domain(settings, ["project_domain_id", "project_domain_name"]);
    Ok(json!({ "project": { "name": name, "domain": domain } }))
}

fn domain(settings: &Settings, [id, name]: [&str; 2]) -> Value {
    if let Some(id) = settings.get(id) {
        return json!({ "id": id });
    }
    if let Some(name) = settings.get(name) {
        return json!({ "name": name });
    }
    match settings.get("default_domain") {
        Some(name) => json!({ "name": name }),
        None => json!({ "id": settings.get("default_domain_id").unwrap_or("default") }),
    }
}
