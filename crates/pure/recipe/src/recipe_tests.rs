use super::*;

const LEAST: &str = r#"
name = "one"
description = "a test"
packages = ["redis-server"]
memory = "128MiB"

[[services]]
name = "redis"
command = ["/usr/bin/redis-server"]
ready = { tcp = 6379 }
ports = [6379]
"#;

fn refused(text: &str) -> String {
    Recipe::parse(text).expect_err("it is refused").to_string()
}

#[test]
fn supplied_recipes_are_read_and_named_as_listed() {
    for supplied in supplied::ALL {
        let recipe = supplied.recipe().unwrap_or_else(|error| panic!("{}: {error}", supplied.name));
        assert_eq!(recipe.name, supplied.name);
        assert!(!recipe.ports().is_empty());
    }
    assert!(supplied::find("postgresq").is_none());
}

#[test]
fn what_a_recipe_leaves_out_has_a_value() {
    let recipe = Recipe::parse(LEAST).expect("it is whole");
    assert_eq!(recipe.memory, 128 << 20);
    let service = &recipe.services[0];
    assert_eq!((service.user.as_str(), service.stop), ("root", StopSignal::Term));
    assert_eq!(service.ready_within, 120_000_000_000);
    assert_eq!(service.ready, Probe::Tcp(6379));
    assert_eq!((recipe.init, recipe.data), (Init::Agent, None));
}

#[test]
fn a_service_runs_where_its_recipe_says() {
    let text =
        LEAST.replace("ports =", "only = \"vm\"\nports =").replace("memory =", "screen = true\nmemory =");
    let recipe = Recipe::parse(&text).expect("it is whole");
    assert!(recipe.screen);
    assert_eq!(recipe.at(ServicePlace::Vm), recipe);
    assert_eq!((recipe.ports(), recipe.at(ServicePlace::Native).ports()), (vec![6379], Vec::new()));
    let everywhere = Recipe::parse(LEAST).expect("it is whole");
    assert_eq!(everywhere.at(ServicePlace::Native), everywhere);
    // Without a screen a VM has what shows the same natively.
    let without = recipe.in_vm_without_screen();
    assert!(!without.screen && without.services.is_empty());
    let in_vms = Recipe::parse(&text.replace("screen = true\n", "")).expect("it is whole");
    assert_eq!(in_vms.in_vm_without_screen(), in_vms);
    assert!(refused(&LEAST.replace("ports =", "only = \"moon\"\nports =")).contains("moon"));
}

#[test]
fn a_recipe_goes_through_json_unchanged() {
    for supplied in supplied::ALL {
        let recipe = supplied.recipe().expect("a test reads it");
        let json = serde_json::to_string(&recipe).expect("plain values");
        assert_eq!(serde_json::from_str::<Recipe>(&json).expect("as written"), recipe);
    }
}

#[test]
fn faults_of_a_recipe_name_their_line_or_field() {
    let typo = refused(&LEAST.replace("packages =", "package ="));
    assert!(typo.contains("line 4") && typo.contains("package"), "{typo}");
    let size = refused(&LEAST.replace("128MiB", "lots"));
    assert!(size.contains("line 5"), "{size}");
    for (from, to, names) in [
        ("\"one\"", "\"../one\"", "name: "),
        ("128MiB", "64MiB", "memory: "),
        ("\"redis-server\"]", "\"redis; reboot\"]", "packages: "),
        ("/usr/bin/redis-server", "redis-server", "services.redis.command: "),
        ("/usr/bin/redis-server", "/usr/../../redis", "services.redis.command: "),
        ("ports = [6379]", "ports = [6379, 6379]", "services.redis.ports: "),
        ("ready = { tcp = 6379 }", "ready = { command = [\"ping\"] }", "services.redis.ready.command: "),
        ("ports = [6379]", "ready_within = \"2h\"", "services.redis.ready_within: "),
    ] {
        let error = refused(&LEAST.replace(from, to));
        assert!(error.starts_with(names), "{to}: {error}");
    }
    for (added, names) in [
        ("init = \"full\"", "init: "),
        ("users = [{ name = \"a b\", home = \"/a\" }]", "users.name: "),
        ("users = [{ name = \"a\", home = \"a\" }]", "users.a.home: "),
        ("files = [{ path = \"/a\\nb\", text = \"\" }]", "files.path: "),
        ("files = [{ path = \"/a\", text = \"\" }, { path = \"/a\", text = \"\" }]", "files./a.path: "),
        ("files = [{ path = \"/a\", text = \"\", owner = \"a:b\" }]", "files./a.owner: "),
        (
            "files = [{ path = \"/a\", text = \"\", owner = \"a\", before_packages = true }]",
            "files./a.owner: ",
        ),
        ("build.exclude = [\"usr/*\"]", "build.exclude: "),
    ] {
        let error = refused(&LEAST.replace("memory =", &format!("{added}\nmemory =")));
        assert!(error.starts_with(names), "{added}: {error}");
    }
    let full = |from: &str, to: &str| {
        let text = LEAST.replace("packages = [", "packages = [\"systemd-sysv\", ");
        text.replace("memory =", "init = \"full\"\nmemory =").replace(from, to)
    };
    assert!(Recipe::parse(&full("", "")).is_ok());
    for (text, names) in [
        (LEAST.replace("ready = {", "unit = \"redis.service\"\nready = {"), "services.redis.unit: only init"),
        (
            full("ready = {", "unit = \"redis.service\"\nready = {"),
            "services.redis.command: a unit has its own",
        ),
        (
            full("command = [", "unit = \"redis.socket\" #"),
            "services.redis.unit: \"redis.socket\" is no service",
        ),
    ] {
        let error = refused(&text);
        assert!(error.starts_with(names), "{text}: {error}");
    }
    let twice = format!("{LEAST}{}", &LEAST[LEAST.find("[[services").unwrap_or(0)..]);
    assert!(refused(&twice).starts_with("services.redis: "));
}
