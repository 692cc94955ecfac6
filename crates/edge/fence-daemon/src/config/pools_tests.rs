use std::os::unix::fs::symlink;

use super::*;

const TWO: &str = "
[scheduler]
name = 'VirtualFence'
slot_ms = 20.0
[cache]
free_target = 300
[pool.disks]
metrics = '127.0.0.1:9101'
[pool.disks.slow]
device = 'null:1 GiB'
[pool.disks.fast]
device = 'null:256 MiB'
[pool.disks.nbd]
listen = 'unix:/tmp/none/disks.nbd'
[pool.ssd]
control = '/tmp/none/ssd.control'
[pool.ssd.fast]
device = 'null:1 GiB'
[pool.ssd.scheduler]
name = 'SSD+NWC'
[pool.ssd.scheduler.predict]
fast_base_us = 7.0
[pool.ssd.cache]
scratch_blocks = 64
[[disk]]
name = 'web'
pool = 'disks'
size = '16 MiB'
cache = '4 MiB'
export = 'web'
[[disk]]
name = 'db'
pool = 'ssd'
size = '16 MiB'
socket = '/tmp/none/db.sock'
[[disk]]
name = 'mail'
pool = 'disks'
size = '16 MiB'
cache = '4 MiB'
socket = '/tmp/none/mail.sock'
";

fn load(text: &str) -> Result<Pools, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence.toml");
    fs::write(&path, text).unwrap();
    Pools::load(&path).map_err(|error| error.to_string())
}

#[test]
fn each_pool_is_a_fence_of_its_own_with_the_files_keys_where_it_has_none() {
    let pools = load(TWO).unwrap();
    let [disks, ssd] = pools.all() else { panic!() };
    let names = |fence: &Config| fence.disks.iter().map(|disk| disk.name.clone()).collect::<Vec<_>>();
    assert_eq!((names(disks), names(ssd)), (vec!["web".into(), "mail".into()], vec!["db".into()]));
    assert_eq!((disks.scheduler.name.name, ssd.scheduler.name.name), ("VirtualFence", "SSD+NWC"));
    assert_eq!((disks.scheduler.predict.fast_base_us, ssd.scheduler.predict.fast_base_us), (0.0, 7.0));
    assert_eq!((disks.cache.free_target, ssd.cache.free_target, ssd.cache.scratch_blocks), (300, 300, 64));
    assert_eq!((disks.slow.is_some(), ssd.slow.is_some(), ssd.nbd.is_some()), (true, false, false));
    let sockets = [disks, ssd].map(|fence| fence.control_socket().unwrap());
    assert_eq!(sockets, ["/tmp/none/mail.sock.control", "/tmp/none/ssd.control"].map(PathBuf::from));
    assert_eq!(pools.of_disk("db"), Some(ssd));
    assert!(pools.of_disk("none").is_none() && pools.named("none").is_none());
    for fence in pools.all() {
        let home = fence.home().unwrap();
        fence.fence(home, [8 << 30, 8 << 30], &[1; 16], [2; 16]).unwrap();
        assert_eq!(fence.check(), Ok(()));
    }
}

#[test]
fn a_file_without_pools_is_one_fence_and_one_with_several_is_not_taken_for_one() {
    let plain = "[fast]\ndevice = 'null:1 GiB'\n[[disk]]\nname = 'a'\nsize = 4096\nsocket = '/tmp/none/a'\n\
                 [scheduler]\nname = 'SSD+NWC'\n";
    let pools = load(plain).unwrap();
    assert!(!pools.are_named() && pools.all()[0].pool.is_none());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fence.toml");
    fs::write(&path, TWO).unwrap();
    let several = Config::load(&path).unwrap_err().to_string();
    assert!(several.contains("give --pool with one of disks, ssd"), "{several}");
}

#[test]
fn a_file_with_pools_is_written_as_it_is_read() {
    let pools = load(TWO).unwrap();
    let text = pools.clone().into_file().text().unwrap();
    assert_eq!(load(&text), Ok(pools), "{text}");
}

/// What is changed into what, and what is said then.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "pool = 'ssd'",
        "pool = 'nvme'",
        "line 33: disk db: pool \"nvme\": there is no such pool: use one of disks, ssd",
    ),
    (
        "name = 'web'\npool = 'disks'\n",
        "name = 'web'\n",
        "line 25: disk web: no pool: say in which it is, such as pool = \"disks\": disks, ssd",
    ),
    (
        "pool = 'ssd'",
        "pool = 'disks'\ncache = '4 MiB'",
        "line 15: pool.ssd has no disk: write pool = \"ssd\"",
    ),
    ("[scheduler]", "[slow]\ndevice = 'null:1 GiB'\n[scheduler]", "line 2: slow cannot be beside pools"),
    ("[scheduler]", "[nbd]\nlisten = 'unix:/n'\n[scheduler]", "write it in [pool.disks.nbd]"),
    (
        "\n[scheduler]",
        "metrics = '127.0.0.1:1'\n[scheduler]",
        "line 1: metrics cannot be beside pools, each of which has its own: write it in [pool.disks]",
    ),
    ("\n[scheduler]", "control = '/c'\n[scheduler]", "line 1: control cannot"),
    ("name = 'db'", "name = 'web'", "line 31: disk web: there are two of that name"),
    ("db.sock'", "mail.sock'", "line 36: disk mail: its socket is another's too"),
    (
        "/tmp/none/mail.sock'",
        "/tmp/none/ssd.control'",
        "line 16: pool.ssd.control unix:/tmp/none/ssd.control: disk mail: socket is there too: give each its own",
    ),
    (
        "unix:/tmp/none/disks.nbd",
        "unix:/tmp/none/db.sock",
        "line 14: pool.disks.nbd.listen unix:/tmp/none/db.sock: disk db: socket is there too",
    ),
    (
        "unix:/tmp/none/disks.nbd",
        "tcp:127.0.0.1:9101",
        "line 14: pool.disks.nbd.listen tcp:127.0.0.1:9101: pool.disks.metrics is there too",
    ),
    (
        "control = '/tmp",
        "metrics = '127.0.0.1:9101'\ncontrol = '/tmp",
        "line 16: pool.ssd.metrics tcp:127.0.0.1:9101: pool.disks.metrics is there too",
    ),
    (
        "socket = '/tmp/none/db.sock'",
        "socket = '/tmp/none/db.sock'\nexport = 'web'",
        "disk db: its export is another's too",
    ),
    (
        "socket = '/tmp/none/db.sock'",
        "export = 'db'",
        "pool ssd: disk db: it has an export, but there is no [pool.ssd.nbd]",
    ),
    ("name = 'SSD+NWC'", "name = 'HDD+NWC'", "pool ssd: scheduler.name \"HDD+NWC\" needs [pool.ssd.slow]"),
    (
        "[pool.ssd.fast]\ndevice = 'null:1 GiB'\n",
        "",
        "pool ssd: scheduler.name \"SSD+NWC\" needs [pool.ssd.fast]",
    ),
    ("[pool.ssd.cache]", "[pool.ssd.cash]", "unknown field `cash`"),
    ("scratch_blocks = 64", "scratch_block = 64", "unknown field `scratch_block`"),
    ("scratch_blocks = 64", "scratch_blocks = 0", "line 24: pool.ssd.cache.scratch_blocks 0: use 1 to 65536"),
    ("slot_ms = 20.0", "slot_ms = 0.0", "line 4: scheduler.slot_ms 0: use"),
    ("name = 'SSD+NWC'", "name = 'SSD+NWC'\nslot_ms = 0.0", "line 21: pool.ssd.scheduler.slot_ms 0: use"),
    ("fast_base_us = 7.0", "fast_base_us = -7.0", "line 22: pool.ssd.scheduler.predict.fast_base_us -7: use"),
    (
        "listen = 'unix:/tmp/none/disks.nbd'",
        "listen = 'tcp:10.0.0.1:80'",
        "pool disks: nbd.listen 10.0.0.1:80",
    ),
    (
        "slot_ms = 20.0",
        "predict = { file = 'p.toml' }",
        "line 21: pool.ssd.scheduler.predict.file p.toml: another pool has it too, and devices of its own: write file in [pool.ssd.scheduler.predict]",
    ),
];

#[test]
fn what_pools_cannot_be_is_refused_by_key_and_line() {
    for (from, to, says) in REFUSED {
        assert!(TWO.contains(from), "{from}");
        let message = load(&TWO.replacen(from, to, 1)).expect_err(to);
        assert!(message.contains(says), "{to}: {message}");
    }
    let lonely =
        "[fast]\ndevice = 'null:1 GiB'\n[[disk]]\nname = 'a'\nsize = 4096\npool = 'x'\nsocket = '/a'\n";
    let message = load(lonely).unwrap_err();
    assert!(message.contains("line 6: disk a: pool \"x\": the file has no pools"), "{message}");
}

#[test]
fn names_of_pools_are_plain_and_short() {
    for name in
        ["''", "'a b'", "'a/b'", "'../x'", "'-a'", "'ä'", "'a.b'", "'a\"b'", &format!("'{}'", "x".repeat(33))]
    {
        let text = TWO
            .replace("pool.ssd", &format!("pool.{name}"))
            .replace("pool = 'ssd'", &format!("pool = {name}"));
        let message = load(&text).expect_err(name);
        assert!(message.contains("use 1 to 32 letters") && message.contains("line 15"), "{name}: {message}");
    }
    let text = TWO.replace("pool.ssd", "pool.0-B_9").replace("'ssd'", "'0-B_9'");
    assert!(load(&text).unwrap().named("0-B_9").is_some());
}

#[test]
fn two_pools_never_have_one_device_by_whatever_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["one", "two"] {
        fs::write(path(name), "").unwrap();
    }
    symlink(path("one"), path("link")).unwrap();
    fs::hard_link(path("one"), path("hard")).unwrap();
    fs::create_dir(path("sub")).unwrap();
    let with = |slow: &str, fast: &str| {
        let [slow, fast] = [slow, fast].map(|name| format!("device = 'file:{}'", path(name).display()));
        let text =
            TWO.replacen("device = 'null:1 GiB'", &slow, 1).replacen("device = 'null:1 GiB'", &fast, 1);
        load(&text)
    };
    assert!(with("one", "two").is_ok());
    for same in ["one", "link", "hard", "sub/../one"] {
        let message = with("one", same).expect_err(same);
        assert!(message.contains("line 18: pool.ssd.fast.device"), "{same}: {message}");
        assert!(message.contains("it is the device of pool.disks.slow too"), "{same}: {message}");
    }
    // What is not there yet is told apart by its name.
    assert!(with("none", "none").is_err() && with("none", "nothing").is_ok());
}

#[test]
fn a_disk_more_is_held_to_all_pools() {
    let pools = load(TWO).unwrap();
    let disk = DiskTable {
        pool: Some("ssd".into()),
        socket: Some("/tmp/none/new.sock".into()),
        ..DiskTable::new("new".into(), 4096)
    };
    assert_eq!(pools.check_with(&disk), Ok(()));
    let taken = DiskTable { socket: Some("/tmp/none/mail.sock".into()), ..disk.clone() };
    assert!(pools.check_with(&taken).unwrap_err().contains("another's"));
    let control = DiskTable { socket: Some("/tmp/none/mail.sock.control".into()), ..disk.clone() };
    assert!(pools.check_with(&control).unwrap_err().contains("is there too"));
    let nowhere = DiskTable { pool: Some("tape".into()), ..disk };
    assert!(pools.check_with(&nowhere).unwrap_err().contains("no such pool"));
}
