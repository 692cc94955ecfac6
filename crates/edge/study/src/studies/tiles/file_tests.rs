use proptest::prelude::*;
use virtbench_record::TileLoadKind;

use super::SUPPLIED_TILES;
use super::*;

const FILE: &str = "name = 'mine'\n[[member]]\nname = 'store'\nappliance = 'redis'\n\
                    load = { kind = 'key-value', users = 2, rate = 5 }\n\
                    levels = { response = '10ms', least = 4 }\n";

#[test]
fn what_is_not_said_has_its_default() {
    let file = TileFile::parse(FILE).unwrap();
    let member = &file.members[0];
    assert_eq!((member.appliance.as_str(), member.memory_bytes, member.plan.vcpus), ("redis", None, 1));
    let levels = &member.plan.levels;
    assert_eq!((levels.percentile, levels.response_ns, levels.errors_percent), (95.0, Some(10_000_000), 1.0));
    assert_eq!((levels.least_per_second, member.plan.reference), (Some(4.0), None));
    assert_eq!((member.plan.load.kind, member.plan.load.rate), (TileLoadKind::KeyValue, Some(5.0)));
    assert_eq!(file.network, None);
}

/// Table 1: a shop of four VMs, a web application of two, mail, and an idle one.
#[test]
fn tile_paper_has_the_vms_of_the_paper_s_table_1() {
    let tile = SUPPLIED_TILES.iter().find(|tile| tile.name == "tile-paper").unwrap();
    let file = TileFile::parse(tile.text).unwrap();
    assert_eq!(file.network, Some("tap"), "a mail server speaks first");
    let vms: Vec<(&str, &str, TileLoadKind)> = file
        .members
        .iter()
        .map(|member| (member.plan.name.as_str(), member.appliance.as_str(), member.plan.load.kind))
        .collect();
    let expected = [
        ("shop-fast", "shop", TileLoadKind::Web),
        ("shop-slow", "shop", TileLoadKind::Web),
        ("shop-orders", "shop", TileLoadKind::Web),
        ("shop-database", "mariadb", TileLoadKind::Idle),
        ("web", "mediawiki", TileLoadKind::Web),
        ("web-database", "mariadb", TileLoadKind::Idle),
        ("mail", "mail", TileLoadKind::Mail),
        ("standby", "nginx", TileLoadKind::Idle),
    ];
    assert_eq!(vms, expected);
    let uses = |member: &TileFileMember| member.plan.uses.get("database").cloned();
    let used: Vec<Option<String>> = file.members[..5].iter().map(uses).collect();
    let (shop, web) = (Some("shop-database".to_owned()), Some("web-database".to_owned()));
    assert_eq!(used, [shop.clone(), shop.clone(), shop, None, web]);
    let scored = file.members.iter().filter(|member| member.plan.load.kind != TileLoadKind::Idle);
    assert!(scored.clone().all(|member| member.plan.reference.is_some()));
    assert!(scored.clone().all(|member| member.plan.levels.response_ns.is_some()));
}

#[test]
fn the_tiles_that_come_along_is_valid() {
    for tile in SUPPLIED_TILES {
        let file = TileFile::parse(tile.text).unwrap();
        assert_eq!(file.name, tile.name);
        assert!(
            file.members.iter().all(|member| virtbench_recipe::supplied::find(&member.appliance).is_some())
        );
    }
}

#[test]
fn what_is_invalid_is_named_with_its_line_or_member() {
    let change = |from: &str, to: &str| FILE.replace(from, to);
    for (text, said) in [
        (change("name = 'store'", "name = 'store'\nspeed = 1"), "unknown field `speed`"),
        (format!("network = 'wire'\n{FILE}"), "unknown variant `wire`, expected `user` or `tap`"),
        (change("name = 'store'", "name = 'store'\nspeed = 1"), "line 4"),
        (change("users = 2", "loops = 2"), "unknown field `loops`"),
        (change("'key-value'", "'tape'"), "unknown variant `tape`"),
        (change("users = 2", "warehouses = 2"), "member store: load: key-value has no warehouses"),
        (change("users = 2", "think = '1s'"), "open loop has no think"),
        (change("'10ms'", "'soon'"), "member store: levels: response"),
        (change("least = 4", "least = 6"), "more than the load's rate of 5"),
        (change("least = 4", "percentile = 42"), "percentile 42"),
        (change("rate = 5", "rate = -5"), "load: rate: a number above 0"),
        (change("'store'", "'a b'"), "letters, digits"),
        (change("kind = 'key-value', users = 2, rate = 5", "kind = 'client'"), "a client needs its command"),
        (
            change(
                "kind = 'key-value', users = 2, rate = 5",
                "kind = 'client', command = ['x'], per_second = 'x'",
            ),
            "per_second: ",
        ),
        (
            change(
                "kind = 'key-value', users = 2, rate = 5",
                "kind = 'client', command = ['x'], per_second = '(x)'",
            ),
            "needs a pattern response_ms",
        ),
        (change("kind = 'key-value', users = 2, rate = 5", "kind = 'idle'"), "an idle member has none"),
        ("name = 'x'\n".into(), "0 members"),
        (format!("{FILE}{}", FILE.split_once('\n').unwrap().1), "member store: it is there twice"),
        (
            "name = 'x'\n[[member]]\nname = 'a'\nappliance = 'redis'\nload = { kind = 'idle' }\n".into(),
            "all members are idle",
        ),
    ] {
        let error = TileFile::parse(&text).unwrap_err().to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
}

/// A tile of redis members of these names, the first under load, each with further lines.
fn members(of: &[(&str, &str)]) -> String {
    let one =
        |(name, more): &(&str, &str)| format!("[[member]]\nname = '{name}'\nappliance = 'redis'\n{more}\n");
    let idle = "load = { kind = 'idle' }\n";
    let rest: String = of.iter().map(|each| one(each) + idle).collect();
    format!("{FILE}{rest}")
}

#[test]
fn members_that_cannot_use_each_other_are_named() {
    let (uses_a, uses_b, uses_c) = ("uses = { x = 'a' }", "uses = { x = 'b' }", "uses = { x = 'c' }");
    for (text, said) in [
        (members(&[("a", uses_b)]), "member a: uses: there is no member b"),
        (members(&[("a", "uses = { 'X Y' = 'store' }")]), "member a: uses: \"X Y\": a host's name"),
        (members(&[("a", "uses = { localhost = 'store' }")]), "\"localhost\": a host's name"),
        (members(&[("a", "uses = 'store'")]), "line 10"),
        (members(&[("a", uses_a)]), "member a: uses: members use each other in a circle: a, a"),
        (
            members(&[("d", uses_a), ("a", uses_b), ("b", uses_c), ("c", uses_a)]),
            "uses: members use each other in a circle: a, b, c, a",
        ),
        (
            members(&[("a", "prepare = [['x']]\nprepare_by = 'store'")]),
            "member a: prepare_by: no member store uses it",
        ),
        (
            members(&[("a", "prepare_by = 'b'"), ("b", uses_a)]),
            "member a: prepare_by: there are no commands: add prepare",
        ),
    ] {
        let error = TileFile::parse(&text).unwrap_err().to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
    let names: Vec<String> = (0..17).map(|number| format!("m{number}")).collect();
    let many: Vec<(&str, &str)> =
        names.iter().map(|name| (name.as_str(), "uses = { x = 'store' }")).collect();
    let error = TileFile::parse(&members(&many)).unwrap_err().to_string();
    assert!(error.contains("member store: uses: it is joined to others 17 times: 16 at most"), "{error}");
    TileFile::parse(&members(&many[..16])).unwrap();
}

#[test]
fn members_start_after_those_that_they_use() {
    let text =
        members(&[("a", "uses = { x = 'b', y = 'c' }"), ("b", "uses = { z = 'c' }"), ("c", ""), ("d", "")]);
    let file = TileFile::parse(&text).unwrap();
    let plans: Vec<TileMemberPlan> = file.members.iter().map(|member| member.plan.clone()).collect();
    assert_eq!(uses::stages(&plans), [vec![0, 3, 4], vec![2], vec![1]]);
    assert_eq!(uses::uses(&plans).len(), 3);
}

proptest! {
    #[test]
    fn no_text_of_a_tile_panics(text in "(name = 'x'\n\\[\\[member\\]\\]\n)?[a-z='\\[\\] 0-9{},.\n]{0,120}") {
        let _ = TileFile::parse(&text);
    }
}
