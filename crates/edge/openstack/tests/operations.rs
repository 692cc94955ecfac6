//! Operations, and lists.

use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use virtbench_openstack::{
    Address, FaultKind, Limit, LocalOpenStack, NewServer, OpenStack, Operation, Power,
};

pub fn soon() -> Limit {
    Limit::at(Instant::now() + Duration::from_secs(60))
}

pub fn connect(local: &LocalOpenStack) -> OpenStack {
    OpenStack::connect(&Address::parse(&local.argument()).unwrap(), soon()).unwrap()
}

pub fn make(cloud: &OpenStack, name: &str) -> String {
    let metadata = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let new = NewServer::new(name, "d", &metadata, ["f1", "i1"]);
    let (times, made) = cloud.perform("", &Operation::Create(new), soon());
    assert!(times.was_accepted && times.request.is_some(), "{times:?}: {made:?}");
    made.unwrap().unwrap()
}

#[test]
fn a_servers_life_is_followed_by_its_states() {
    let local = LocalOpenStack::start(0.2).unwrap();
    let cloud = connect(&local);
    assert_eq!((cloud.microversion(), cloud.project(), cloud.has_volumes()), ("2.90", "p1", true));
    let server = make(&cloud, "one");
    let done = |operation: &Operation<'_>| {
        let (times, result) = cloud.perform(&server, operation, soon());
        assert!(result.is_ok() && times.was_over, "{operation:?}: {result:?}");
        assert!(times.accepted > Duration::ZERO && times.seen.is_some(), "{operation:?}: {times:?}");
        (times, result.unwrap())
    };
    let power = || cloud.server(&server, soon()).unwrap().unwrap().power();
    let (stopped, _) = done(&Operation::Stop);
    let whole = stopped.scheduling + stopped.running + stopped.done;
    assert!(whole >= Duration::from_millis(150) && stopped.uncertainty <= whole, "{stopped:?}");
    assert_eq!(power(), Some(Power::Off));
    let told = cloud.told(&server, stopped.request.as_deref().unwrap(), soon()).unwrap();
    assert!(told.compute <= told.elapsed + Duration::from_secs(1), "{told:?}");
    let steps = [
        (Operation::Start, Power::On),
        (Operation::Suspend, Power::Suspended),
        (Operation::Resume, Power::On),
        (Operation::Reboot, Power::On),
        (Operation::LiveMigrate, Power::On),
        (Operation::ColdMigrate, Power::On),
        (Operation::Resize { flavor: "f2" }, Power::On),
        (Operation::Rebuild { image: "i1", runs: true }, Power::On),
        (Operation::Shelve, Power::Shelved),
        (Operation::Unshelve, Power::On),
        (Operation::Note { name: "n", text: "t" }, Power::On),
        (Operation::Console, Power::On),
    ];
    for (operation, state) in steps {
        done(&operation);
        assert_eq!(power(), Some(state), "{operation:?}");
    }
    let metadata = BTreeMap::new();
    let (_, image) = done(&Operation::CreateImage { name: "snap", metadata: &metadata });
    let image = image.unwrap();
    assert_eq!(cloud.image(&image, soon()).unwrap().unwrap().status, "active");
    done(&Operation::DeleteImage { image: &image });
    assert_eq!(cloud.image(&image, soon()).unwrap(), None);
    done(&Operation::Delete);
    assert_eq!(cloud.server(&server, soon()).unwrap(), None);
}

#[test]
fn many_servers_are_followed_at_once() {
    let local = LocalOpenStack::start(0.5).unwrap();
    let cloud = connect(&local);
    thread::scope(|scope| {
        for number in 0..16 {
            let cloud = &cloud;
            scope.spawn(move || {
                let server = make(cloud, &format!("s{number}"));
                for operation in [Operation::Stop, Operation::Start, Operation::Delete] {
                    cloud.perform(&server, &operation, soon()).1.unwrap();
                }
            });
        }
    });
    let mut left = 0;
    cloud.each_server(soon(), |_| left += 1).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_refusal_and_a_failure_are_told_by_their_kinds() {
    let local = LocalOpenStack::start(0.0).unwrap();
    let cloud = connect(&local);
    let server = make(&cloud, "one");
    let fault = |operation: &Operation<'_>| cloud.perform(&server, operation, soon()).1.unwrap_err();
    let conflict = fault(&Operation::Start);
    assert_eq!(conflict.fault(), Some(FaultKind::Conflict));
    assert!(
        conflict.to_string().contains("os-start") && conflict.to_string().contains("(req-"),
        "{conflict}"
    );
    let gone = cloud.perform("none", &Operation::Stop, soon()).1.unwrap_err();
    assert_eq!(gone.fault(), Some(FaultKind::NotFound));
    for (change, kind) in [
        (json!({"quota": 1}), FaultKind::Quota),
        (json!({"quota": null, "hosts": 0}), FaultKind::NoValidHost),
        (
            json!({"hosts": 2, "refuse": [{"path": "/servers", "method": "POST", "status": 403, "message": "Policy doesn't allow"}]}),
            FaultKind::Denied,
        ),
        (json!({"refuse": [{"path": "/servers", "method": "POST", "status": 500}]}), FaultKind::Server),
    ] {
        local.control(&change).unwrap();
        let metadata = BTreeMap::new();
        let new = NewServer::new("x", "", &metadata, ["f1", "i1"]);
        let refused = cloud.perform("", &Operation::Create(new), soon()).1.unwrap_err();
        assert_eq!(refused.fault(), Some(kind), "{refused}");
        assert!(!format!("{refused:?}").contains("not-to-be-told"), "{refused:?}");
    }
}

#[test]
fn a_stuck_task_ends_with_the_deadline_and_says_how_the_server_was_found() {
    let local = LocalOpenStack::start(0.0).unwrap();
    let cloud = connect(&local);
    let server = make(&cloud, "one");
    local.control(&json!({"stuck": true})).unwrap();
    let limit = Limit::at(Instant::now() + Duration::from_secs(2));
    let (times, stuck) = cloud.perform(&server, &Operation::Stop, limit);
    let stuck = stuck.unwrap_err().to_string();
    assert!(stuck.contains("last found ACTIVE, task powering-off"), "{stuck}");
    assert!(times.was_accepted && !times.was_over, "{times:?}");
}

#[test]
fn a_list_is_read_page_by_page() {
    let local = LocalOpenStack::start(0.0).unwrap();
    local.control(&json!({"fill": 2500})).unwrap();
    let cloud = connect(&local);
    let mut names = Vec::new();
    cloud.each_server(soon(), |server| names.push(server.name)).unwrap();
    assert_eq!((names.len(), names[0].as_str(), names[2499].as_str()), (2500, "vm0", "vm2499"));
}

#[test]
fn a_token_that_ends_is_renewed_and_a_cloud_that_wants_fewer_requests_gets_them_later() {
    let local = LocalOpenStack::start(0.0).unwrap();
    let cloud = connect(&local);
    let server = make(&cloud, "one");
    local.control(&json!({"expire": true})).unwrap();
    let (times, stopped) = cloud.perform(&server, &Operation::Stop, soon());
    assert!(stopped.is_ok() && times.retries == 1, "{times:?}");
    for status in [413, 429, 503] {
        let rule =
            json!({"path": "/action", "method": "POST", "status": status, "retry_after": 1, "times": 1});
        local.control(&json!({ "refuse": [rule] })).unwrap();
        let operation = if status == 429 { Operation::Stop } else { Operation::Start };
        let begun = Instant::now();
        let (times, done) = cloud.perform(&server, &operation, soon());
        assert!(done.is_ok() && times.retries >= 1, "{status}: {done:?} {times:?}");
        assert!(begun.elapsed() >= Duration::from_millis(900), "{status}");
    }
    // A token of one's own cannot be renewed.
    let file = fs::read_to_string(local.clouds()).unwrap();
    let given = file.replace("username: admin", "token: token-of-nobody");
    fs::write(local.clouds(), given.replace("auth: {", "auth_type: token\n    auth: {")).unwrap();
    let refused = OpenStack::connect(&Address::parse(&local.argument()).unwrap(), soon()).unwrap_err();
    assert_eq!(refused.fault(), Some(FaultKind::NotAuthenticated));
    assert!(!refused.to_string().contains("token-of-nobody"), "{refused}");
}
