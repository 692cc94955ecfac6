//! vSphere behind the seam of platforms, through a network that breaks.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_platforms::{Action, OnVsphere, Platform, VmState, VsphereOptions};
use virtbench_record::{CloneKind, FailureKind};
use virtbench_vsphere::LocalVcenter;

const OPTIONS: VsphereOptions = VsphereOptions { memory_bytes: 64 << 20, disk_bytes: 1 << 20 };

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// Connections that are open, and whether new ones are.
#[derive(Default)]
struct Wires {
    open: Vec<TcpStream>,
    is_cut: bool,
}

/// A network to a server, which can be cut.
struct Network {
    port: u16,
    wires: Arc<Mutex<Wires>>,
}

impl Network {
    fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, wires) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Wires>>::default());
        let (server, shared) = (server.to_owned(), Arc::clone(&wires));
        // It ends with the test's process.
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let mut wires = shared.lock().unwrap();
                if wires.is_cut {
                    continue;
                }
                let far = TcpStream::connect(&server).unwrap();
                for (mut from, mut to) in [(&near, &far), (&far, &near)]
                    .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
                {
                    thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                wires.open.extend([near, far]);
            }
        });
        Self { port, wires }
    }

    fn cut(&self) {
        let mut wires = self.wires.lock().unwrap();
        wires.is_cut = true;
        wires.open.drain(..).for_each(|wire| _ = wire.shutdown(Shutdown::Both));
    }

    fn mend(&self) {
        self.wires.lock().unwrap().is_cut = false;
    }

    fn connect(&self, vcenter: &LocalVcenter) -> OnVsphere {
        let near = format!("127.0.0.1:{}", self.port);
        OnVsphere::connect(&vcenter.argument().replacen(vcenter.host(), &near, 1), OPTIONS, soon()).unwrap()
    }

    /// Does it while the network is away for a second, a moment after the beginning.
    fn cut_during<T>(&self, what: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(500));
                self.cut();
                thread::sleep(Duration::from_secs(1));
                self.mend();
            });
            what()
        })
    }
}

#[test]
fn an_operation_that_an_outage_cuts_off_is_followed_once_the_server_is_there_again() {
    // A task of two seconds, a call of one, and a clone whose call takes one.
    let delays =
        ["--task-delay", "PowerOnVM_Task=2s", "--delay", "PowerOffVM_Task=1s", "--delay", "CloneVM_Task=1s"];
    let vcenter = LocalVcenter::start(&[&["--hosts", "2", "--vms", "1"][..], &delays].concat()).unwrap();
    let network = Network::to(vcenter.host());
    let platform = network.connect(&vcenter);
    let (first, second) = (format!("{}-1", platform.label()), format!("{}-2", platform.label()));
    platform.create(&first, soon()).unwrap();
    let clone = Action::Clone { into: second.clone(), kind: CloneKind::Full };
    for (action, state) in
        [(Action::PowerOn, VmState::On), (Action::PowerOff, VmState::Off), (clone, VmState::Off)]
    {
        let performed = network.cut_during(|| platform.perform(&first, &action, soon()));
        assert_eq!(performed.result, Ok(()), "{action:?}: {performed:?}");
        // A waiter for a task hears of its end from a thread that asks again by itself.
        assert!(performed.retries > 0 || action == Action::PowerOn, "{performed:?}");
        assert_eq!(platform.state(&first, soon()), Ok(Some(state)), "{action:?}");
    }
    assert_eq!(platform.state(&second, soon()), Ok(Some(VmState::Off)), "the clone is known");

    network.cut();
    let until = Instant::now() + Duration::from_secs(3);
    let away = platform.perform(&first, &Action::PowerOn, until).result.unwrap_err();
    assert_eq!(away.kind, FailureKind::Unreachable, "{away}");
    network.mend();
    assert_eq!(platform.state(&first, soon()), Ok(Some(VmState::Off)), "it was never asked for");
    assert_eq!(platform.perform(&first, &Action::PowerOn, soon()).result, Ok(()));
    assert_eq!(
        network.cut_during(|| platform.remove_all(soon())),
        Ok(2),
        "what is left goes after an outage too"
    );
}
