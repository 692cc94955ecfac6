use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;

use virtbench_fence::{Backing, Config, Device, DeviceConfig, DiskConfig, DiskId, SchedulerConfig};

use super::*;
use crate::device::FileBackend;
use crate::frontend::{Action, Done, Memory, Request};

const BYTES: u64 = 1 << 20;

/// Has something new at every turn.
struct Restless;

impl FrontEnd for Restless {
    fn start(&mut self, _host: &mut Host<'_>) {}
    fn ready(&mut self, _token: u64, _host: &mut Host<'_>) {}
    fn completed(&mut self, _done: Done, _host: &mut Host<'_>) {}
    fn poll(&mut self, _host: &mut Host<'_>) -> usize {
        1
    }
}

/// Reads once.
struct Reader {
    asked: bool,
    first_byte: Rc<Cell<Option<u8>>>,
}

impl FrontEnd for Reader {
    fn start(&mut self, _host: &mut Host<'_>) {}
    fn ready(&mut self, _token: u64, _host: &mut Host<'_>) {}
    fn poll(&mut self, host: &mut Host<'_>) -> usize {
        if std::mem::replace(&mut self.asked, true) {
            return 0;
        }
        let buffer = host.buffer(4096);
        let request =
            Request { tag: 7, disk: DiskId(0), action: Action::Read, offset_bytes: 0, len_bytes: 4096 };
        host.submit(request, Memory::Owned(buffer)).unwrap();
        1
    }
    fn completed(&mut self, done: Done, _host: &mut Host<'_>) {
        assert_eq!((done.tag, done.result), (7, Ok(())));
        self.first_byte.set(done.buffer.map(|buffer| buffer[0]));
    }
}

#[test]
fn a_busy_client_keeps_no_other_from_the_device() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[0xa5; 1 << 16]).unwrap();
    let facts = Facts { size_bytes: BYTES, block_bytes: 512, memory_alignment: 512 };
    let fence = Fence::new(Config {
        disks: vec![DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes: BYTES }],
        slow: DeviceConfig { size_bytes: BYTES, depth: 8 },
        fast: DeviceConfig { size_bytes: 0, depth: 1 },
        backing: Backing::Slow,
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 1 << 20,
    })
    .unwrap();
    let first_byte = Rc::new(Cell::new(None));
    let parts = Parts {
        fence,
        write_through: vec![false],
        devices: [Some(Box::new(FileBackend::new(Device::Slow, file, facts))), None],
        front_ends: vec![
            Box::new(Restless),
            Box::new(Reader { asked: false, first_byte: Rc::clone(&first_byte) }),
        ],
        requests_per_disk: 8,
        max_request_bytes: 1 << 20,
        spin: Duration::ZERO,
        figures: Metrics::new(["disk".to_owned()].into_iter(), 0),
    };
    let mut runtime = Runtime::new(parts, Stopper::new().unwrap()).unwrap();
    runtime.begin();
    let begun = Instant::now();
    while first_byte.get().is_none() && begun.elapsed() < Duration::from_secs(10) {
        runtime.turn().unwrap();
    }
    assert_eq!(first_byte.get(), Some(0xa5));
}
