//! What is asked of every platform that runs many VMs.

use std::process::Command;
use std::time::Instant;

use virtbench_mark::{Mark, RunId};
use virtbench_platforms::{Action, Performed, Platform, VmState};
use virtbench_record::{CloneKind, Phase};

pub fn done(platform: &dyn Platform, vm: &str, action: &Action, deadline: Instant) -> Performed {
    let performed = platform.perform(vm, action, deadline);
    assert_eq!(performed.result, Ok(()), "{action:?}");
    for phase in [Phase::Client, Phase::Accepted] {
        assert!(performed.phases.get(phase).is_some_and(|length| length > 0), "{action:?}: {performed:?}");
    }
    performed
}

/// Makes a VM, has everything done with it, each within `soon`, and clones it; the names of the VM, which is off, and of its clone, which
/// is gone.
pub fn lives_through_everything(
    platform: &dyn Platform,
    clone: CloneKind,
    soon: fn() -> Instant,
) -> (String, String) {
    let name = |number: u32| format!("{}-{number}", platform.label());
    let (first, second) = (name(1), name(2));
    platform.create(&first, soon()).unwrap();
    let text = |text: &str| text.to_owned();
    let steps = [
        (Action::CreateSnapshot { name: text("snap") }, VmState::Off),
        (Action::Clone { into: second.clone(), kind: clone }, VmState::Off),
        (Action::DeleteSnapshot { name: text("snap") }, VmState::Off),
        (Action::AttachDisk { name: text("d") }, VmState::Off),
        (Action::DetachDisk { name: text("d") }, VmState::Off),
        (Action::PowerOn, VmState::On),
        (Action::Migrate, VmState::On),
        (Action::Suspend, VmState::Suspended),
        (Action::Resume, VmState::On),
        (Action::Reconfigure { note: text("n") }, VmState::On),
        (Action::PowerOff, VmState::Off),
    ];
    for (action, state) in steps {
        let performed = done(platform, &first, &action, soon());
        assert!(performed.phases.get(Phase::Seen).is_some(), "{action:?}: {performed:?}");
        assert_eq!(platform.state(&first, soon()).unwrap(), Some(state), "{action:?}");
    }
    done(platform, "", &Action::List, soon());
    let mut listed = platform.list(soon()).unwrap();
    listed.sort();
    assert_eq!(listed, [(first.clone(), VmState::Off), (second.clone(), VmState::Off)]);
    done(platform, &second, &Action::Remove, soon());
    assert_eq!(platform.state(&second, soon()).unwrap(), None);
    (first, second)
}

/// What a process wrote of a VM that has ended.
pub fn mark_of_the_dead() -> String {
    let mut child = Command::new("true").spawn().unwrap();
    let mark = Mark::new(RunId::new_random(), "vm").to_string();
    let mark = mark.replace(&format!("process={}", std::process::id()), &format!("process={}", child.id()));
    child.wait().unwrap();
    mark
}
