//! The agent as a guest's init: nothing else runs there.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::sync;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::protocol::PORT_NAME;
use crate::serial_link::guest_ends;
use crate::session::{Accounts, Heard, Watched, serve};

/// The file in the initramfs that names the modules to load: a path a line, in load order.
pub const MODULE_LIST: &str = "/modules.list";

/// What a guest's kernel is told where its controller may be far away, so that its agent ends when nothing is heard. The kernel
/// hands words that it does not know to init, as settings of its environment.
pub const WATCH: &str = "VIRTBENCH_WATCH=1";

/// What a guest's kernel is told that nobody measures anything in: it only answers on its console, for as long as it runs.
pub const STAY: &str = "VIRTBENCH_STAY=1";

/// The setting that names the serial line by which the agent of a User Mode Linux guest is reached, in place of a virtio-serial port.
pub const LINE: &str = "VIRTBENCH_LINE";

/// What such a guest says on its console once it runs, and again for each line that it is sent.
pub const HERE: &str = "virtbench-agent: here";

/// How long a controller may take to close its end.
const HANG_UP_LIMIT: Duration = Duration::from_secs(3);
/// How often that is looked at where nobody wakes the agent.
const HANG_UP_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long the host's port may take to appear once its driver is loaded.
const PORT_LIMIT: Duration = Duration::from_secs(20);

/// Runs as process 1: prepares the guest, serves the host, powers off. What goes wrong is told on
/// the console, which is all the host sees of a guest that has not greeted it.
pub fn run_as_init() -> ! {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("virtbench-agent: {panic}");
        power_off();
    }));
    if is_told(STAY) {
        stay();
    }
    if let Err(error) = prepare().and_then(|()| {
        if let Some(line) = std::env::var_os(LINE) {
            let line = open_line(&Path::new("/dev").join(line))?;
            let (reader, writer) = guest_ends(line.try_clone()?, line)?;
            return Ok(serve(reader, writer, Accounts::Controller)?);
        }
        let port = open_port()?;
        let heard = Heard::default();
        if is_told(WATCH) {
            heard.watch(|why| {
                eprintln!("virtbench-agent: {why}");
                power_off();
            });
        }
        serve(Watched { reader: port.try_clone()?, heard }, port.try_clone()?, Accounts::Controller)?;
        if is_told(WATCH) {
            await_hang_up(&port);
        }
        Ok(())
    }) {
        eprintln!("virtbench-agent: {error}");
    }
    power_off();
}

/// Waits until the controller has closed its end: a hypervisor may not like a guest that ends while somebody has a stream to it.
fn await_hang_up(port: &File) {
    let until = Instant::now() + HANG_UP_LIMIT;
    while Instant::now() < until {
        let mut asked = [PollFd::new(port, PollFlags::empty())];
        match poll(&mut asked, Some(&HANG_UP_LOOK)) {
            Ok(_) if asked[0].revents().contains(PollFlags::HUP) => return,
            _ => {}
        }
    }
}

/// Whether this word was among the kernel's.
fn is_told(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, value)| std::env::var(name).is_ok_and(|found| found == value))
}

/// Answers on the console, until the host ends the guest.
fn stay() -> ! {
    println!("{HERE}");
    for _ in io::stdin().lines().map_while(Result::ok) {
        println!("{HERE}");
    }
    loop {
        sleep(Duration::from_secs(3600));
    }
}

fn prepare() -> Result<(), Box<dyn Error>> {
    for (kind, place) in [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys")] {
        fs::create_dir_all(place)?;
        match mount(kind, place, kind, MountFlags::empty(), None) {
            Ok(()) | Err(Errno::BUSY) => {}
            Err(error) => return Err(format!("cannot mount {kind} on {place}: {error}").into()),
        }
    }
    for module in fs::read_to_string(MODULE_LIST)?.lines() {
        // One missing driver need not be fatal; if it is, the port's or disk's absence will tell.
        if let Err(error) = load(module) {
            eprintln!("virtbench-agent: cannot load {module}: {error}");
        }
    }
    Ok(())
}

fn load(module: &str) -> io::Result<()> {
    match finit_module(File::open(module)?, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Opens a serial line, so that bytes pass as they are.
fn open_line(path: &Path) -> Result<File, Box<dyn Error>> {
    let failed = |error: io::Error| format!("cannot open {}: {error}", path.display());
    let line = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    let mut settings = tcgetattr(&line).map_err(|error| failed(error.into()))?;
    settings.make_raw();
    tcsetattr(&line, OptionalActions::Now, &settings).map_err(|error| failed(error.into()))?;
    Ok(line)
}

/// Opens the virtio-serial port that carries the protocol.
fn open_port() -> Result<File, Box<dyn Error>> {
    let deadline = Instant::now() + PORT_LIMIT;
    loop {
        if let Some(device) = find_port(Path::new("/sys/class/virtio-ports")) {
            return OpenOptions::new()
                .read(true)
                .write(true)
                .open(&device)
                .map_err(|error| format!("cannot open {}: {error}", device.display()).into());
        }
        if Instant::now() > deadline {
            return Err(format!("no virtio-serial port {PORT_NAME} within {PORT_LIMIT:?}").into());
        }
        sleep(Duration::from_millis(2));
    }
}

fn find_port(class: &Path) -> Option<PathBuf> {
    fs::read_dir(class).ok()?.flatten().find_map(|entry| {
        let name = fs::read_to_string(entry.path().join("name")).ok()?;
        let device = Path::new("/dev").join(entry.file_name());
        (name.trim() == PORT_NAME && device.exists()).then_some(device)
    })
}

fn power_off() -> ! {
    sync();
    if let Err(error) = reboot(RebootCommand::PowerOff) {
        eprintln!("virtbench-agent: cannot power off: {error}");
    }
    // Init's end makes the kernel panic, which ends the guest too.
    std::process::exit(1);
}
