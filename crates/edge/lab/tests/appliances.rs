//! Appliances that really run, natively and in guests, and the ways in which they fail. Their root is made of this host's
//! busybox-static, so that nothing is downloaded. They need root, QEMU and a guest kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use virtbench_lab::{
    Accelerator, Adapter, ApplianceError, ApplianceSpec, DEFAULT_ADAPTER, DiskSettings, Filesystem,
    GuestImage, GuestPlace, Network, NetworkNamespace, Place, Qemu, RunningAppliance, TierLinks, UmlDiskKind,
    UmlImage, UmlKernel, UmlPlace, find_adapter, find_kernel, make_filesystem, make_filesystem_with,
};
use virtbench_recipe::Recipe;

const MIB: u64 = 1 << 20;
const SOON: Duration = Duration::from_secs(20);
const PORT: u16 = 8080;

const HEAD: &str = "name = \"tiny\"\ndescription = \"a test\"\npackages = []\nmemory = \"96MiB\"\n";
const DATA: &str = "[data]\nfolder = \"/srv/data\"\nuser = \"web\"\nprepare = []\nsize = \"16MiB\"\n";
const WEB: &str = "[[services]]\nname = \"web\"\ncommand = [\"/bin/busybox\", \"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/srv/data\"]\n\
                   user = \"web\"\nfolders = [\"/run/web\"]\nready = { tcp = 8080 }\nports = [8080]\n";

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// A service `sh`, which does what a script says, with further lines of the recipe.
fn script(text: &str, more: &str) -> String {
    format!("[[services]]\nname = \"sh\"\ncommand = [\"/bin/sh\", \"-c\", '''{text}''']\n{more}\n")
}

/// A folder with the images of an appliance.
struct Images {
    folder: TempDir,
}

impl Images {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let tree = folder.path().join("tree");
        for name in ["bin", "etc", "srv/data", "home"] {
            fs::create_dir_all(tree.join(name)).unwrap();
        }
        let busybox = fs::copy("/bin/busybox", tree.join("bin/busybox"));
        busybox.expect("/bin/busybox is not there: apt install busybox-static");
        for name in ["sh", "sleep", "dd", "tail", "id", "kill", "cat", "hostname", "sync"] {
            symlink("busybox", tree.join("bin").join(name)).unwrap();
        }
        // Links of a root mean places in the root: this one leads to the host's own otherwise.
        symlink("/run", tree.join("srv/run")).unwrap();
        fs::write(tree.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nweb:x:77:78::/home:/bin/sh\n").unwrap();
        fs::write(tree.join("etc/group"), "root:x:0:\nweb:x:78:\nmore:x:79:web\n").unwrap();
        let images = Self { folder };
        or_mend(make_filesystem_with(&images.path("root"), 16 * MIB, Filesystem::Ext4, Some(&tree)));
        or_mend(make_filesystem(&images.path("data"), 16 * MIB, Filesystem::Ext4));
        images
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spec(&self, services: &str, place: Place, network: Network) -> ApplianceSpec {
        let recipe = Recipe::parse(&format!("{HEAD}{services}{DATA}")).unwrap();
        ApplianceSpec {
            name: "tested".into(),
            memory_bytes: recipe.memory,
            recipe,
            root: self.path("root"),
            data: Some(self.path("data")),
            vcpus: 1,
            network,
            tiers: TierLinks::default(),
            processors: Vec::new(),
            place,
        }
    }

    fn native(&self, services: &str) -> ApplianceSpec {
        self.spec(services, Place::Native, Network::User)
    }

    /// Nothing of this host is over the images any more.
    fn assert_unused(&self) {
        let until = Instant::now() + SOON;
        loop {
            let loops = fs::read_dir("/sys/block").unwrap().flatten();
            let files =
                loops.filter_map(|entry| fs::read_to_string(entry.path().join("loop/backing_file")).ok());
            let used: Vec<String> =
                files.filter(|file| file.starts_with(self.folder.path().to_str().unwrap())).collect();
            if used.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "loop devices are left: {used:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn guest(adapter: &'static Adapter) -> Place {
    let image = or_mend(GuestImage::for_appliances(&or_mend(find_kernel(None)), &[adapter], false));
    Place::Guest(Box::new(GuestPlace {
        qemu: or_mend(Qemu::find()),
        image,
        accelerator: Accelerator::Tcg,
        adapter,
        settings: DiskSettings::default(),
        boot_limit: Duration::from_secs(120),
    }))
}

fn uml(disk: UmlDiskKind) -> Place {
    let image = or_mend(UmlImage::for_appliances(&or_mend(UmlKernel::find()), disk));
    Place::Uml(Box::new(UmlPlace { image, disk, boot_limit: SOON }))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn says(appliance: &mut RunningAppliance, command: &[&str]) -> String {
    let end = or_mend(appliance.run(&words(command), "web", SOON));
    assert_eq!(end.trouble(), None, "{}", end.output);
    end.output.trim().to_owned()
}

fn get(appliance: &RunningAppliance, page: &str) -> String {
    let address = appliance.address(PORT).unwrap();
    let mut stream = appliance.reach().within(|| TcpStream::connect(address)).unwrap().unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    write!(stream, "GET /{page} HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.rsplit("\r\n\r\n").next().unwrap().to_owned()
}

/// What not even root may do: natively it would be done to this host.
fn keeps_its_hands_off(appliance: &mut RunningAppliance) {
    for command in ["mknod /home/disk b 7 0", "mount -t tmpfs none /home"] {
        let line: Vec<&str> = command.split(' ').collect();
        let end = or_mend(appliance.run(&words(&[&["/bin/busybox"], &line[..]].concat()), "root", SOON));
        assert!(end.exit_code != Some(0) && end.output.contains("ermi"), "{command}: {}", end.output);
    }
}

/// The error of a start that has to fail, and that nothing is left of it.
fn refused(images: &Images, spec: &ApplianceSpec) -> String {
    let error = RunningAppliance::start(spec).expect_err("it starts").to_string();
    images.assert_unused();
    error
}

fn crash(appliance: &mut RunningAppliance) -> ApplianceError {
    let until = Instant::now() + SOON;
    loop {
        if let Some(error) = appliance.crashed() {
            return error;
        }
        assert!(Instant::now() < until, "no crash was told");
        thread::sleep(Duration::from_millis(5));
    }
}

/// What every place has to show: who runs it, what clients get, what it is made of, how it ends.
fn runs_as_it_should(images: &Images, spec: &ApplianceSpec, page: &str, network: &str) {
    let mut appliance = or_mend(RunningAppliance::start(spec));
    assert_eq!(says(&mut appliance, &["/bin/id"]), "uid=77(web) gid=78(web) groups=78(web),79(more)");
    assert_eq!(says(&mut appliance, &["/bin/hostname"]), "tiny");
    keeps_its_hands_off(&mut appliance);
    says(
        &mut appliance,
        &["/bin/sh", "-c", &format!("echo written {page} > /srv/data/{page}; test -d /srv/run/web")],
    );
    assert_eq!(get(&appliance, page), format!("written {page}\n"));
    let facts = appliance.facts().clone();
    assert_eq!((facts.network.as_str(), facts.services[0].service.as_str()), (network, "web"));
    assert!(
        facts.services[0].ready_ns > 0 && facts.ready_ns > facts.services[0].ready_ns && facts.boot_ns > 0
    );
    let path = facts.path.unwrap();
    assert!(path.round_trips > 10 && path.round_trip_min_ns <= path.round_trip_p99_ns, "{path:?}");
    assert!(
        path.round_trip_min_ns > 1000 && path.to_bytes_per_s > 1e5 && path.from_bytes_per_s > 1e5,
        "{path:?}"
    );
    let state = or_mend(appliance.state());
    assert_eq!((state.running, state.oom_kills), (words(&["web"]), 0));
    assert!(state.data_free_bytes.unwrap() < state.data_bytes.unwrap());
    assert!(appliance.crashed().is_none());
    let processes = appliance.processes();
    let (ends, notes) = or_mend(appliance.stop());
    assert_eq!((ends[0].signal, ends[0].killed, notes), (Some(15), false, Vec::new()));
    assert!(!fs::exists(format!("/proc/{}", processes[0])).unwrap());
    images.assert_unused();
}

#[test]
fn an_appliance_runs_from_the_same_bytes_natively_and_in_guests_by_either_network() {
    let images = Images::new();
    runs_as_it_should(&images, &images.native(WEB), "native", "loopback");
    runs_as_it_should(
        &images,
        &images.spec(WEB, guest(or_mend(find_adapter("nvme"))), Network::User),
        "user",
        "user",
    );
    let network = Network::Namespace(or_mend(NetworkNamespace::new()));
    // The kernel takes more for each processor: 96 MiB was once too little for two.
    let spec = images.spec(WEB, guest(DEFAULT_ADAPTER), network.clone());
    let two = ApplianceSpec { vcpus: 2, memory_bytes: 128 * MIB, ..spec };
    runs_as_it_should(&images, &two, "tap", "tap");
    // What each has written is there for the next; what none has written to the root is not.
    let mut appliance = or_mend(RunningAppliance::open(&images.spec(WEB, Place::Native, network)));
    assert_eq!(
        says(
            &mut appliance,
            &["/bin/sh", "-c", "cd /srv/data; cat native user tap; ls -d /srv/data/* | cat"]
        )
        .lines()
        .count(),
        7
    );
}

#[test]
fn an_appliance_runs_in_a_guest_of_user_mode_linux_by_either_disk() {
    let images = Images::new();
    let network = Network::Namespace(or_mend(NetworkNamespace::new()));
    let ubd = UmlDiskKind::Ubd { synchronous: false };
    // With no network of QEMU's it has one for itself.
    for (disk, network, page) in [
        (UmlDiskKind::VirtioBlk, network.clone(), "virtio"),
        (ubd, network, "ubd"),
        (ubd, Network::User, "own"),
    ] {
        runs_as_it_should(&images, &images.spec(WEB, uml(disk), network), page, "tap");
    }
    let mut native = or_mend(RunningAppliance::open(&images.native(WEB)));
    let said = says(&mut native, &["/bin/sh", "-c", "cd /srv/data; cat virtio ubd own"]);
    assert_eq!(said, "written virtio\nwritten ubd\nwritten own");
    drop(native);
    let two = ApplianceSpec { vcpus: 2, ..images.spec(WEB, uml(ubd), Network::User) };
    assert!(refused(&images, &two).contains("2 processors: a guest of User Mode Linux has one"));
}

#[test]
fn guests_of_user_mode_linux_reach_each_other_by_a_cable() {
    let images = Images::new();
    let (mut front, mut back) = (TierLinks::default(), TierLinks::default());
    front.connect("back", &mut back, 3).unwrap();
    or_mend(make_filesystem(&images.path("other"), 16 * MIB, Filesystem::Ext4));
    let place = uml(UmlDiskKind::VirtioBlk);
    let back = ApplianceSpec { tiers: back, ..images.spec(WEB, place.clone(), Network::User) };
    let back = or_mend(RunningAppliance::start(&back));
    let data = Some(images.path("other"));
    let front = ApplianceSpec { tiers: front, data, ..images.spec(WEB, place, Network::User) };
    let mut front = or_mend(RunningAppliance::start(&front));
    let cost = or_mend(front.measure_path_to("back", &back));
    assert!(cost.round_trips > 10 && cost.to_bytes_per_s > 1e5 && cost.from_bytes_per_s > 1e5, "{cost:?}");
}

#[test]
fn a_service_that_crashes_is_told_at_once_with_its_last_words() {
    let images = Images::new();
    let dies = script("echo ready; sleep 0.3; echo no luck; exit 3", "ready = { output = \"ready\" }");
    let mut appliance = or_mend(RunningAppliance::start(&images.native(&dies)));
    let error = crash(&mut appliance).to_string();
    assert!(
        error.starts_with("tested: sh: it ended with exit code 3") && error.contains("| no luck"),
        "{error}"
    );
    assert!(appliance.crashed().is_none(), "it is told once");
    assert!(or_mend(appliance.log("sh")).contains("no luck"));
    assert!(appliance.log("none").unwrap_err().to_string().contains("no service \"none\""));
    let (ends, _) = or_mend(appliance.stop());
    assert!(ends.is_empty(), "there was nothing left to stop: {ends:?}");
    // In the middle of a command, and by a signal; one that does not end when it is told to is killed.
    let stubborn = script(
        "trap '' TERM; echo ready; while :; do sleep 0.1; done",
        "ready = { output = \"ready\" }\nstop_within = \"200ms\"",
    );
    let mut appliance = or_mend(RunningAppliance::start(&images.native(&format!("{WEB}{stubborn}"))));
    let kill = "sleep 0.2; kill -9 $(busybox pidof busybox | busybox tr ' ' '\\n' | busybox sort -n | busybox head -n 1); sleep 0.2";
    or_mend(appliance.run(&words(&["/bin/sh", "-c", kill]), "root", SOON));
    let error = crash(&mut appliance).to_string();
    assert!(error.contains("web: it was killed by signal 9"), "{error}");
    let (ends, notes) = or_mend(appliance.stop());
    assert_eq!((ends.len(), ends[0].service.as_str(), ends[0].killed), (1, "sh", true));
    assert_eq!(notes, Vec::<String>::new());
    images.assert_unused();
}

#[test]
fn services_that_do_not_start_say_why() {
    let images = Images::new();
    let ready = "ready = { output = \"never\" }\nready_within = \"300ms\"";
    for (services, expected) in [
        (
            script("echo begun; sleep 9", ready),
            "(it has not written \"never\") within 0.3 s; raise ready_within",
        ),
        (
            script("echo begun; sleep 9", "ready = { tcp = 1 }\nready_within = \"300ms\""),
            "on port 1) within 0.3 s",
        ),
        (
            script("echo begun; exit 7", "ready = { output = \"never\" }\nready_within = \"20s\""),
            "sh: it ended with exit code 7 before it was ready; its last lines:\n  | begun",
        ),
        (
            script("true", &format!("user = \"nobody\"\n{ready}")),
            "no user \"nobody\" in the root's /etc/passwd",
        ),
        (WEB.replace("/bin/busybox", "/bin/none"), "/bin/none is not in the root"),
        (
            format!("{WEB}{}", WEB.replace("\"web\"\nc", "\"two\"\nc").replace("ports = [8080]", "")),
            "two: something else accepts connections on port 8080 already",
        ),
    ] {
        let error = refused(&images, &images.native(&services));
        assert!(error.contains(expected), "{services}\n{error}");
    }
}

#[test]
fn what_is_invalid_is_refused_before_anything_starts() {
    let images = Images::new();
    let good = images.native(WEB);
    let less = ApplianceSpec { memory_bytes: 64 * MIB, ..good.clone() };
    assert!(refused(&images, &less).contains("needs at least 96"));
    fs::write(images.path("text"), "no file system").unwrap();
    let none = ApplianceSpec { root: images.path("text"), ..good.clone() };
    assert!(
        refused(&images, &none)
            .contains("is no ext4 file system; build it with `virtbench appliance build tiny`")
    );
    assert!(refused(&images, &ApplianceSpec { data: None, ..good.clone() }).contains("no image was given"));
    let missing = ApplianceSpec { root: images.path("missing"), ..good.clone() };
    assert!(refused(&images, &missing).contains("missing cannot be read"));
    // One that only begins like a file system is found out when it is mounted.
    let broken = File::create(images.path("broken")).unwrap();
    broken.set_len(16 * MIB).unwrap();
    broken.write_all_at(&[0x53, 0xef], 1024 + 0x38).unwrap();
    let error = refused(&images, &ApplianceSpec { root: images.path("broken"), ..good });
    assert!(
        error.contains("the root: cannot mount ext4") && error.contains("whole ext4 file system"),
        "{error}"
    );
}

const HUNGRY: &str = "echo ready; sleep 0.3; exec tail /dev/zero";
const GREEDY: &str = "echo ready; dd if=/dev/zero of=/srv/data/full bs=64k; exit 5";

#[test]
fn memory_and_disks_that_run_out_are_named_natively() {
    let images = Images::new();
    let ready = "ready = { output = \"ready\" }";
    let mut appliance = or_mend(RunningAppliance::start(&images.native(&script(HUNGRY, ready))));
    let notes = appliance.facts().notes.clone();
    assert!(notes.iter().all(|note| note.contains("unavailable")), "{notes:?}");
    if notes.is_empty() {
        let error = crash(&mut appliance).to_string();
        assert!(error.contains("killed by signal 9: the kernel was out of memory"), "{error}");
    }
    drop(appliance);
    let greedy = script(GREEDY, &format!("{ready}\nuser = \"web\""));
    let mut appliance = or_mend(RunningAppliance::start(&images.native(&greedy)));
    let error = crash(&mut appliance).to_string();
    assert!(
        error.contains("the file system of the data is full") && error.contains("No space left"),
        "{error}"
    );
    drop(appliance);
    images.assert_unused();
}

/// A program that panics when it is started first. Another process writes the script: were it open here for writing while a test
/// beside this one forks, it could not be executed ("text file busy").
fn panics_once(images: &Images, name: &str, program: &Path) -> (PathBuf, PathBuf) {
    let (path, flag) = (images.path(name), images.path(&format!("{name}.flag")));
    let once = format!("test -e {0} || {{ touch {0}; echo Kernel panic; exit 1; }}", flag.display());
    let text = format!("{once}\nexec {} \"$@\"", program.display());
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod +x "$2""#;
    assert!(Command::new("sh").args(["-c", write, "sh", &text]).arg(&path).status().unwrap().success());
    (path, flag)
}

fn guest_that_panics_once(images: &Images) -> Place {
    let Place::Guest(mut guest) = guest(DEFAULT_ADAPTER) else { panic!() };
    guest.qemu.path = panics_once(images, "qemu", &guest.qemu.path).0;
    Place::Guest(guest)
}

fn uml_that_panics_once(images: &Images) -> Place {
    let kernel = or_mend(UmlKernel::find());
    let (program, flag) = panics_once(images, "linux", &kernel.program);
    // It is asked for its configuration before it boots.
    fs::write(&flag, "").unwrap();
    let disk = UmlDiskKind::VirtioBlk;
    let image = or_mend(UmlImage::for_appliances(&UmlKernel { program, ..kernel }, disk));
    fs::remove_file(flag).unwrap();
    Place::Uml(Box::new(UmlPlace { image, disk, boot_limit: SOON }))
}

#[test]
fn memory_that_runs_out_in_a_guest_is_named_and_a_boot_that_failed_is_repeated() {
    let images = Images::new();
    let hungry = script(HUNGRY, "ready = { output = \"ready\" }");
    for place in [guest_that_panics_once(&images), uml_that_panics_once(&images)] {
        let mut appliance = or_mend(RunningAppliance::start(&images.spec(&hungry, place, Network::User)));
        let notes = appliance.facts().notes.clone();
        assert!(
            matches!(notes.as_slice(), [note] if note.contains("booted a second time, because")),
            "{notes:?}"
        );
        let error = crash(&mut appliance).to_string();
        assert!(error.contains("killed by signal 9: the kernel was out of memory"), "{error}");
        assert_eq!(or_mend(appliance.state()).oom_kills, 1);
    }
}

fn is_gone(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat"));
    status.map_or(true, |text| text.contains(") Z"))
}

fn descendants(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = children.split_whitespace().map(|word| word.parse().unwrap());
    children.flat_map(|child| descendants(child).into_iter().chain([child])).collect()
}

fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join(name)
}

#[test]
fn kill_9_of_the_controller_ends_an_appliance_wherever_it_runs() {
    let images = Images::new();
    let recipe = images.path("recipe.toml");
    fs::write(&recipe, format!("{HEAD}{WEB}{DATA}")).unwrap();
    for (place, network) in [("native", "user"), ("guest", "tap"), ("uml", "tap")] {
        let mut command = Command::new(example("appliance_figures"));
        command.arg(&recipe).arg(images.path("root")).arg(images.path("data")).args([place, network, "wait"]);
        let mut controller = command.stdout(Stdio::piped()).spawn().expect(
            "the example is built: `cargo test` does, `cargo test --test` needs `cargo build --examples`",
        );
        let mut line = String::new();
        BufReader::new(controller.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let first: u32 = line.trim().parse().expect("it prints who runs the appliance");
        let all: Vec<u32> = descendants(first).into_iter().chain([first]).collect();
        assert!(
            place == "guest" || all.len() >= 3,
            "{place}: agent and service are processes of this host: {all:?}"
        );
        controller.kill().unwrap();
        controller.wait().unwrap();
        let until = Instant::now() + SOON;
        while !all.iter().all(|process| is_gone(*process)) {
            assert!(Instant::now() < until, "{place}: {all:?} outlived their controller");
            thread::sleep(Duration::from_millis(10));
        }
        images.assert_unused();
    }
    // What a kill leaves of control groups goes when the next are made.
    or_mend(RunningAppliance::open(&images.native(WEB)));
    let groups = fs::read_dir("/sys/fs/cgroup/memory").into_iter().flatten().flatten();
    let left = groups.filter(|entry| entry.file_name().to_string_lossy().starts_with("virtbench-"));
    for entry in left {
        let name = entry.file_name().into_string().unwrap();
        let owner: u32 = name.split('-').nth(1).unwrap().parse().unwrap();
        assert!(!is_gone(owner), "{name} is left");
    }
}
