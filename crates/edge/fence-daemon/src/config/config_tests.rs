use super::*;

const TWO: &str = r#"
[slow]
device = "file:/srv/slow.img"
[fast]
device = "ssd:/srv/fast.img?profile=spec"
[scheduler]
name = "VirtualFence"
slot_ms = 20
[[disk]]
name = "web"
size = "1 GiB"
cache = "64 MiB"
slots = 2
socket = "/run/web.sock"
[[disk]]
name = "mail"
size = 1073741824
cache = "64 MiB"
export = "mail"
[nbd]
listen = "unix:/run/nbd.sock"
"#;

fn parse(text: &str) -> Result<Config, String> {
    let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
    config.check()?;
    Ok(config)
}

#[test]
fn a_whole_configuration_makes_a_fence() {
    let config = parse(TWO).unwrap();
    let home = config.home().unwrap();
    assert_eq!(home, Built::Cached { shared: false });
    let fence = config.fence(home, [8 << 30, 1 << 30], &[1; 16], [2; 16]).unwrap();
    assert_eq!(fence.disks[1].offset_bytes, (1 << 20) + (1 << 30));
    let virtbench_fence::SchedulerConfig::Slots(slots) = fence.scheduler else { panic!() };
    assert_eq!(slots.owners.len(), 3);
    assert_ne!(config.place(&[1; 16])[0].uuid, config.place(&[3; 16])[0].uuid);
}

#[test]
fn a_bypass_is_the_cores_and_needs_a_cache() {
    let text = TWO.replace("slots = 2\n", "slots = 2\nbypass = \"4 MiB\"\n");
    let config = parse(&text).unwrap();
    let fence = config.fence(config.home().unwrap(), [8 << 30, 1 << 30], &[1; 16], [2; 16]).unwrap();
    let virtbench_fence::Backing::Cached(cache) = fence.backing else { panic!() };
    assert_eq!(cache.bypass_bytes, [Some(4 << 20), None]);
    let refused = parse(&text.replace("VirtualFence", "HDD+NWC")).unwrap_err();
    assert!(refused.contains("disk web: bypass: it has no cache"), "{refused}");
}

#[test]
fn every_variant_of_the_catalogue_is_served_or_refused_by_name() {
    for variant in catalogue::CATALOGUE {
        let name = variant.name;
        let config = parse(&TWO.replace("VirtualFence", name));
        if !variant.is_served() {
            let refusal = config.unwrap_err();
            assert!(catalogue::served().all(|variant| refusal.contains(variant.name)), "{refusal}");
            continue;
        }
        let config = config.unwrap();
        assert_eq!(config.scheduler.name, variant);
        config
            .fence(config.home().unwrap(), [8 << 30, 8 << 30], &[1; 16], [2; 16])
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_configuration_is_written_as_it_is_read() {
    let more = "fault = 'eio=1%,delay=5ms@2%'\nshare = 0.25\nbytes_per_s = '10 MiB'\nread_only = true";
    let one = TWO
        .replace("export = \"mail\"", &format!("export = \"mail\"\n{more}"))
        .replace("[nbd]", "[nbd.tls]\ncertificate = '/c'\nkey = '/k'\n[nbd]")
        .replacen("[slow]", "metrics = '127.0.0.1:9100'\n[slow]\ndepth = 4\nfault = 'stall@1%'", 1)
        .replace("slot_ms = 20", "slot_ms = 12.5\npredict = { slow_knots = [[0, 0.5]], fast_base_us = 3.0 }")
        .replace("profile=spec", "profile=paper-fit&read=1us&sync=off");
    for text in [TWO, &one] {
        let config = parse(text).unwrap();
        assert_eq!(parse(&config.text().unwrap()), Ok(config));
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |from: &str, to: &str| parse(&TWO.replacen(from, to, 1)).unwrap_err();
    assert!(refused("slot_ms", "slot_sm").contains("line 8"), "{}", refused("slot_ms", "slot_sm"));
    assert!(refused("1 GiB", "1 Gigglebyte").contains("size"));
    assert!(refused("\"1 GiB\"", "5000").contains("disk web: size 5000"));
    assert!(refused("cache = \"64 MiB\"", "").contains("disk web: no cache"));
    assert!(refused("\"mail\"", "\"web\"").contains("two of that name"));
    assert!(refused("file:/srv", "/srv").contains("is no device"));
    assert!(refused("export = \"mail\"", "").contains("nobody can reach it"));
    assert!(refused("[fast]\ndevice = \"ssd:/srv/fast.img?profile=spec\"", "").contains("needs [fast]"));
    assert!(refused("[nbd]", "metrics = \"10.0.0.1:80\"\n[nbd]").contains("unknown field"));
}

#[test]
fn nbd_addresses_and_bounds_are_checked() {
    let nbd = |lines: &str| parse(&TWO.replacen("listen = \"unix:/run/nbd.sock\"", lines, 1));
    let both = nbd("listen = [\"unix:/run/nbd.sock\", \"tcp:127.0.0.1:10809\"]").unwrap();
    assert_eq!(both.nbd.unwrap().listen.len(), 2);
    let tls = "[nbd.tls]\ncertificate = \"/c\"\nkey = \"/k\"";
    let far = "listen = \"tcp:10.0.0.1:10809\"";
    assert!(nbd(far).unwrap_err().contains("loopback"));
    assert!(nbd(&format!("{far}\n{tls}\nrequired = false")).unwrap_err().contains("loopback"));
    assert!(nbd(&format!("{far}\n{tls}")).is_ok());
    assert!(nbd("listen = \"/run/nbd.sock\"").unwrap_err().contains("unix:/PATH"));
    assert!(nbd("listen = []").unwrap_err().contains("nbd.listen"));
    let fine = "listen = \"unix:/s\"";
    for wrong in ["connections = 0", "requests = 0", "memory = \"1 MiB\"", "stall_s = 0"] {
        let name = wrong.split(' ').next().unwrap();
        assert!(nbd(&format!("{fine}\n{wrong}")).unwrap_err().contains(name), "{wrong}");
    }
}
