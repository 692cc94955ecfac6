use super::*;
use crate::SchedulerConfig;
use crate::{BufferId, DeviceConfig, DeviceIo, DiskConfig, DiskId, RequestId};

pub(crate) fn config() -> Config {
    let disk = |n: u8| DiskConfig { uuid: [n; 16], offset_bytes: u64::from(n) << 30, size_bytes: 1 << 30 };
    Config {
        disks: (0..4).map(disk).collect(),
        slow: DeviceConfig { size_bytes: 4 << 30, depth: 1 },
        fast: DeviceConfig { size_bytes: 4 << 30, depth: 32 },
        backing: Backing::Slow,
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 1 << 20,
    }
}

fn read(id: u64, disk: u16, offset_bytes: u64) -> Request {
    Request {
        id: RequestId(id),
        disk: DiskId(disk),
        op: Op::Read,
        offset_bytes,
        len_bytes: 4096,
        buffer: BufferId(id),
    }
}

fn dispatched(fence: &mut Fence) -> DeviceIo {
    match fence.poll_effect() {
        Some(Effect::Dispatch(io)) => io,
        other => panic!("{other:?} is no dispatch"),
    }
}

#[test]
fn requests_reach_the_disk_one_at_a_time_in_their_order() {
    let mut fence = Fence::new(config()).unwrap();
    fence.submit(Time::ZERO, read(1, 0, 4096));
    fence.submit(Time::ZERO, read(2, 3, 0));
    let first = dispatched(&mut fence);
    assert_eq!((first.offset_bytes, first.disk), (4096, DiskId(0)));
    assert_eq!(fence.poll_effect(), None);
    let done = Completion { io: first.id, result: Ok(()), data_crc: 0 };
    fence.on_device(Time::from_ns(1), done).unwrap();
    assert_eq!(fence.poll_effect(), Some(Effect::Complete { request: RequestId(1), result: Ok(()) }));
    assert_eq!(dispatched(&mut fence).offset_bytes, 3 << 30);
    assert_eq!(fence.on_device(Time::from_ns(2), done), Err(UnknownIo(first.id)));
    assert_eq!(fence.outstanding(), 1);
}

#[test]
fn a_request_off_its_disk_fails_at_once() {
    let mut fence = Fence::new(config()).unwrap();
    for request in [read(1, 4, 0), read(1, 0, 1 << 30), read(1, 0, 100), read(1, 0, u64::MAX - 511)] {
        fence.submit(Time::ZERO, request);
        let answer = Effect::Complete { request: RequestId(1), result: Err(IoError::OutOfRange) };
        assert_eq!(fence.poll_effect(), Some(answer));
        assert_eq!(fence.poll_effect(), None);
    }
}
