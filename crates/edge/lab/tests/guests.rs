//! Guests that really boot, and the ways in which they fail. They need QEMU and a guest kernel; if
//! one is missing they fail with the command that mends it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_agent::protocol::TargetRef;
use virtbench_lab::{
    Accelerator, DEFAULT_ADAPTER, Environment, Guest, GuestConfig, GuestDisk, GuestImage, GuestKernel,
    KVM_LIMIT, KvmCpu, LabError, MachineError, Qemu, Vm, choose_accelerator, find_kernel, probe_kvm,
};

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn kernel() -> GuestKernel {
    or_mend(find_kernel(None))
}

fn boot(image: &GuestImage, config: &GuestConfig) -> Result<Guest, MachineError> {
    Guest::boot(&or_mend(Qemu::find()), image, config)
}

fn config() -> GuestConfig {
    GuestConfig::new(Accelerator::Tcg)
}

fn guest() -> Guest {
    or_mend(boot(&or_mend(GuestImage::new(&kernel(), &[])), &config()))
}

fn is_gone(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat"));
    status.map_or(true, |text| text.contains(") Z"))
}

fn signal(process: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &process.to_string()]).status().unwrap().success());
}

/// A kernel whose image is a copy changed by `change`, with the real one's modules.
fn changed_kernel(directory: &Path, change: impl Fn(&mut [u8])) -> GuestKernel {
    let kernel = kernel();
    let mut bytes = fs::read(&kernel.image).unwrap();
    change(&mut bytes);
    let image = directory.join("vmlinuz");
    fs::write(&image, bytes).unwrap();
    GuestKernel { image, ..kernel }
}

#[test]
fn a_guest_boots_answers_and_powers_off() {
    let mut guest = guest();
    assert_eq!(guest.greeting().processors, 1);
    assert_eq!(guest.greeting().kernel, kernel().release);
    assert!(guest.greeting().clock_source.starts_with("tsc"), "{}", guest.greeting().clock_source);
    let before = guest.connection().synchronise(20).unwrap();
    thread::sleep(Duration::from_secs(1));
    let drift = before.drift_until(&guest.connection().synchronise(20).unwrap()).unwrap();
    assert!(!drift.is_suspect(), "{drift:?}");
    let process = guest.process_id();
    guest.shut_down();
    assert!(is_gone(process));
}

/// QEMU's side of the protocol's first message (RFC 6143, section 7.1.1).
#[test]
fn a_guests_screen_is_shown_to_the_holder_of_a_connection_and_to_nobody_else() {
    let image = or_mend(GuestImage::new(&kernel(), &[]));
    let mut guest = or_mend(boot(&image, &GuestConfig { screen: true, ..config() }));
    for _ in 0..2 {
        let mut screen = guest.connect_to_screen().unwrap();
        screen.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut version = [0; 12];
        screen.read_exact(&mut version).unwrap();
        assert_eq!(&version, b"RFB 003.008\n");
    }
    let listening = Command::new("ss").args(["-Hltnp"]).output().unwrap();
    let process = format!("pid={},", guest.process_id());
    assert!(!String::from_utf8_lossy(&listening.stdout).contains(&process), "it has opened no port");
    guest.shut_down();
    let error = self::guest().connect_to_screen().unwrap_err();
    assert!(error.to_string().contains("no screen"), "{error}");
}

#[test]
fn two_guests_with_disks_run_at_once() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let image = or_mend(GuestImage::new(&kernel(), &[DEFAULT_ADAPTER]));
    assert!(image.initramfs_bytes <= 16 << 20, "{} bytes", image.initramfs_bytes);
    let start = |name: &str| {
        let path = directory.path().join(name);
        fs::File::create(&path).unwrap().set_len(64 << 20).unwrap();
        let facts = virtbench_record::AcceleratorFacts { name: "tcg".into(), why: "a test".into() };
        let disk = GuestDisk::new(DEFAULT_ADAPTER, path);
        let mut vm = Vm::new(name, or_mend(Qemu::find()), image.clone(), facts, config(), disk);
        or_mend(vm.start())
    };
    let machines = thread::scope(|scope| {
        let threads = ["one", "two"].map(|name| scope.spawn(move || start(name)));
        threads.map(|thread| thread.join().unwrap())
    });
    for mut machine in machines {
        assert_eq!(machine.target(), TargetRef::Disk { name_prefix: "vd".into() });
        let facts = machine.guest().unwrap();
        assert!(facts.command_line.join(" ").contains("\"direct\":true") && facts.boot_ns > 0);
        machine.connection().ping().unwrap();
        machine.check().unwrap();
        machine.shut_down();
    }
}

#[test]
fn a_killed_qemu_is_noticed_at_once() {
    let mut guest = guest();
    signal(guest.process_id(), "-9");
    let began = Instant::now();
    let error = guest.connection().ping().unwrap_err();
    let error = guest.explain(error);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(matches!(&error, MachineError::Ended { console, .. } if !console.is_empty()));
    let text = error.to_string();
    assert!(text.contains("killed by signal 9") && text.contains("\n  | ["), "{text}");
    assert!(guest.check().is_err());
}

#[test]
fn a_stopped_qemu_runs_into_the_time_limit() {
    let mut guest = guest();
    signal(guest.process_id(), "-STOP");
    let error = guest.connection().ping().unwrap_err();
    let text = guest.explain(error).to_string();
    assert!(text.contains("did not answer a ping within 10 s") && text.contains("\n  | ["), "{text}");
    let process = guest.process_id();
    drop(guest);
    assert!(is_gone(process));
}

#[test]
fn a_guest_that_never_greets_runs_into_the_time_limit() {
    // No program at all: the kernel panics. To be silent, init must run: it waits for signals that do not come.
    let image = or_mend(GuestImage::with_init(&kernel(), &[], &silent_program()));
    let limit = Duration::from_secs(20);
    let began = Instant::now();
    let error = boot(&image, &GuestConfig { boot_limit: limit, ..config() }).unwrap_err();
    assert!(began.elapsed() < limit + Duration::from_secs(5));
    let text = error.to_string();
    assert!(text.contains("did not answer its greeting within 20 s") && text.contains("/init"), "{text}");
}

#[test]
fn a_panicking_guest_is_told_apart() {
    let image = or_mend(GuestImage::with_init(&kernel(), &[], b"not a program"));
    let error = boot(&image, &config()).unwrap_err();
    assert!(matches!(&error, MachineError::Panicked { .. }), "{error}");
    assert!(error.to_string().contains("Kernel panic"), "{error}");
}

#[test]
fn a_kernel_with_a_ruined_payload_ends_in_a_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    // The header stays, so that it passes for a kernel; what is to be executed is garbage.
    let kernel = changed_kernel(directory.path(), |bytes| bytes[0x4000..].fill(0xf4));
    let image = or_mend(GuestImage::new(&kernel, &[]));
    let limit = Duration::from_secs(5);
    let began = Instant::now();
    let error = boot(&image, &GuestConfig { boot_limit: limit, ..config() }).unwrap_err();
    assert!(began.elapsed() < limit + Duration::from_secs(5), "{error}");
    assert!(!error.to_string().is_empty());
}

#[test]
fn a_disk_that_is_not_there_is_qemus_error_in_its_words() {
    let image = or_mend(GuestImage::new(&kernel(), &[DEFAULT_ADAPTER]));
    let disk = GuestDisk::new(DEFAULT_ADAPTER, "/nonexistent/disk".into());
    let error = boot(&image, &GuestConfig { disks: vec![disk], ..config() }).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[test]
fn no_qemu_outlives_a_killed_host_process() {
    // Cargo builds examples before it runs tests.
    let mut helper = Command::new(example("boot_and_wait")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(helper.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let qemu: u32 = line.trim().parse().expect("the helper prints QEMU's process id");
    assert!(!is_gone(qemu));
    helper.kill().unwrap();
    helper.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_gone(qemu) {
        assert!(Instant::now() < deadline, "QEMU {qemu} outlived its host process");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_accelerator_is_chosen_by_a_boot_and_remembered() {
    let (qemu, kernel) = (or_mend(Qemu::find()), kernel());
    let choice = or_mend(choose_accelerator(&qemu, &kernel, KVM_LIMIT));
    assert!(choice.why.contains("booted"), "{}", choice.why);
    let began = Instant::now();
    assert_eq!(or_mend(choose_accelerator(&qemu, &kernel, KVM_LIMIT)), choice);
    assert!(began.elapsed() < Duration::from_secs(2), "the second choice was probed again");
}

/// A shell script in QEMU's place. Another process writes it: were it open here for writing while a
/// test beside this one forks, it could not be executed ("text file busy").
fn script(directory: &Path, text: &str) -> Qemu {
    let path = directory.join("qemu");
    let write = r#"printf '#!/bin/bash\n%s\n' "$1" > "$2" && chmod +x "$2""#;
    let written = Command::new("sh").args(["-c", write, "sh", text]).arg(&path).status().unwrap();
    assert!(written.success());
    Qemu { path, version: String::new() }
}

#[test]
fn a_qemu_without_io_uring_is_used_without_and_that_is_said() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let complain =
        "case \"$*\" in *io_uring*) echo aio=io_uring is not supported in this build; exit 1;; esac";
    let real = or_mend(Qemu::find()).path;
    let qemu = script(directory.path(), &format!("{complain}\nexec {} \"$@\"", real.display()));
    let path = directory.path().join("disk");
    fs::File::create(&path).unwrap().set_len(16 << 20).unwrap();
    let image = or_mend(GuestImage::new(&kernel(), &[DEFAULT_ADAPTER]));
    let facts = virtbench_record::AcceleratorFacts { name: "tcg".into(), why: "a test".into() };
    let disk = GuestDisk::new(DEFAULT_ADAPTER, path);
    let machine = or_mend(Vm::new("vm", qemu, image, facts, config(), disk).start());
    assert!(machine.notes()[0].contains("not supported in this build"), "{:?}", machine.notes());
    assert!(machine.guest().unwrap().command_line.join(" ").contains("\"aio\":\"native\""));
}

/// Has a stand-in for QEMU emulate what it was to do under KVM, whose processor is whatever it is asked for.
fn under_emulation(qemu: &Qemu) -> String {
    format!(
        "words=()\nfor word in \"$@\"; do case $word in kvm) word=tcg;; host|host,*|max) word=max,-erms,-fsrm;; esac\n\
         words+=(\"$word\"); done\nexec {} \"${{words[@]}}\"",
        qemu.path.display()
    )
}

#[test]
fn a_kvm_that_refuses_the_host_s_processor_is_used_with_another_and_that_is_said() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let refuse = "case \" $* \" in *' host '*) echo 'qemu: error: failed to set MSR 0x10a to 0x1' >&2\n\
                  echo 'kvm.c:2893: kvm_buf_set_msrs: Assertion `ret == n'\"' failed.\" >&2; kill -ABRT $$;; esac";
    let real = under_emulation(&or_mend(Qemu::find()));
    let qemu = script(directory.path(), &format!("{refuse}\n{real}"));
    let image = or_mend(GuestImage::new(&kernel(), &[]));
    let (accelerator, why) = probe_kvm(&qemu, &image, Duration::from_secs(120)).unwrap();
    assert_eq!(accelerator, Accelerator::Kvm(KvmCpu::HostWithoutCapabilities));
    for words in ["-cpu host,-arch-capabilities", "failed to set MSR 0x10a", "Assertion"] {
        assert!(why.contains(words), "{words}: {why}");
    }
    let refused = script(directory.path(), "echo 'Could not access KVM kernel module' >&2; exit 1");
    let why = probe_kvm(&refused, &image, Duration::from_secs(10)).unwrap_err();
    assert_eq!(why.matches("Could not access KVM").count(), 3, "each processor is tried: {why}");
}

#[test]
fn a_slow_kvm_can_be_forced() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let real = under_emulation(&or_mend(Qemu::find()));
    let qemu = script(directory.path(), &format!("sleep 3\n{real}"));
    let image = or_mend(GuestImage::new(&kernel(), &[]));
    let why = probe_kvm(&qemu, &image, Duration::from_secs(1)).unwrap_err();
    assert_eq!(why.matches("-cpu").count(), 1, "another processor is no quicker: {why}");
    assert!(probe_kvm(&qemu, &image, Duration::from_secs(120)).is_ok());
}

/// Talks QMP as a QEMU does whose KVM gives up, and dumps more than an error carries.
const GIVES_UP: &str = r#"
for word in "$@"; do case $word in socket,id=qmp,fd=*) fd=${word##*fd=};; esac; done
say() { printf '%s\n' "$1" >&"$fd"; }
echo 'KVM internal error. Suberror: 1'
for number in {1..40}; do echo "R$number=0000000000000000"; done
say '{"QMP":{}}'
while read -r line <&"$fd"; do
  case $line in
    *qmp_capabilities*) say '{"return":{},"id":"ready"}'; say '{"event":"STOP"}';;
    *query-status*) say '{"return":{"status":"internal-error"},"id":"why"}';;
  esac
done"#;

#[test]
fn a_guest_that_qemu_pauses_is_an_end_with_qemu_s_own_words() {
    let directory = tempfile::tempdir().unwrap();
    let qemu = script(directory.path(), GIVES_UP);
    let image = or_mend(GuestImage::new(&kernel(), &[]));
    let began = Instant::now();
    let config = GuestConfig { boot_limit: Duration::from_secs(60), ..config() };
    let error = Guest::boot(&qemu, &image, &config).unwrap_err();
    assert!(matches!(error, MachineError::Paused { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("internal-error") && said.contains("KVM internal error. Suberror: 1"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(30), "it was noticed after {:?}", began.elapsed());
}

#[test]
fn a_qemu_that_is_none_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let qemu = script(directory.path(), "echo something else");
    let image = or_mend(GuestImage::new(&kernel(), &[]));
    let error = Guest::boot(&qemu, &image, &config()).unwrap_err();
    assert!(error.to_string().contains("something else"), "{error}");
    let qemu = Qemu { path: "/nonexistent/qemu".into(), version: String::new() };
    assert!(matches!(Guest::boot(&qemu, &image, &config()), Err(MachineError::Start { .. })));
}

#[test]
fn an_unknown_driver_is_named_before_anything_starts() {
    let kernel = kernel();
    let adapter = virtbench_lab::Adapter { modules: &["no_such_driver"], ..*DEFAULT_ADAPTER };
    let error: LabError = GuestImage::new(&kernel, &[&adapter]).unwrap_err().into();
    assert!(error.to_string().contains("no_such_driver"), "{error}");
}

/// The path of an example of this package, which stands beside the tests.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples").join(name)
}

/// The smallest ELF program that loops for ever.
fn silent_program() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    let mut program = Vec::new();
    program.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    program.extend([2, 0, 62, 0, 1, 0, 0, 0]); // an executable for x86-64
    program.extend((BASE + 120).to_le_bytes()); // entry
    program.extend(64u64.to_le_bytes()); // program headers
    program.extend([0; 12]);
    program.extend([64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    program.extend([1, 0, 0, 0, 5, 0, 0, 0]); // one segment, to be read and executed
    for word in [0, BASE, BASE, 129, 129, 0x1000] {
        program.extend(word.to_le_bytes());
    }
    program.extend([0xb8, 34, 0, 0, 0, 0x0f, 0x05]); // pause()
    program.extend([0xeb, 0xf7]); // and again
    program
}

#[test]
fn the_doctor_finds_all_that_guests_need() {
    let checks = virtbench_lab::examine_host(Path::new(env!("CARGO_TARGET_TMPDIR")), None);
    for needed in ["QEMU", "guest kernel", "guest modules", "agent"] {
        let check = checks.iter().find(|check| check.name == needed).unwrap();
        assert!(matches!(check.status, virtbench_lab::Status::Ok { .. }), "{check:?}");
    }
    let accelerator = checks.iter().find(|check| check.name == "accelerator").unwrap();
    assert!(!matches!(accelerator.status, virtbench_lab::Status::Missing { .. }), "{accelerator:?}");
    println!("{checks:#?}");
}
