//! Users of a root, by its own files.

use std::fs;

/// Who runs something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Further groups.
    pub(crate) groups: Vec<u32>,
    pub(crate) home: String,
}

/// The user of this name. Called inside the root.
///
/// # Errors
/// There is none, in words.
pub(crate) fn find_user(name: &str) -> Result<User, String> {
    let passwd = fs::read_to_string("/etc/passwd")
        .map_err(|error| format!("the root's /etc/passwd cannot be read: {error}"))?;
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    parse(name, &passwd, &groups).ok_or_else(|| {
        format!(
            "there is no user {name:?} in the root's /etc/passwd: name one of a package's, or add it to the recipe's [[users]]"
        )
    })
}

/// Formats of passwd(5) and group(5).
fn parse(name: &str, passwd: &str, group: &str) -> Option<User> {
    let fields: Vec<&str> =
        passwd.lines().find(|line| line.split(':').next() == Some(name))?.split(':').collect();
    let gid = fields.get(3)?.parse().ok()?;
    let is_member = |line: &&str| {
        line.rsplit(':').next().is_some_and(|members| members.split(',').any(|one| one == name))
    };
    let further = group.lines().filter(is_member).filter_map(|line| line.split(':').nth(2)?.parse().ok());
    Some(User {
        name: name.to_owned(),
        uid: fields.get(2)?.parse().ok()?,
        gid,
        groups: std::iter::once(gid).chain(further.filter(|further| *further != gid)).collect(),
        home: fields.get(5).filter(|home| !home.is_empty()).map_or("/", |home| home).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_groups_that_list_him() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\npostgres:x:101:103::/var/lib/postgresql:/bin/bash\nbad:x:y\n";
        let group =
            "root:x:0:\nssl-cert:x:104:postgres\nmail:x:8:a,postgres,b\npostgres:x:103:\nx:x:9:postgresql\n";
        let user = parse("postgres", passwd, group).unwrap();
        assert_eq!((user.uid, user.gid, user.groups.as_slice()), (101, 103, &[103, 104, 8][..]));
        assert_eq!(user.home, "/var/lib/postgresql");
        assert_eq!(parse("bad", passwd, group), None);
        assert_eq!(parse("postgre", passwd, group), None);
    }
}
