//! What pages, sentences and CSV say of VMs side by side.

#![allow(clippy::unwrap_used)]

use crate::pages::synthetic;

use synthetic::sets::{deviation, matrix, neighbours};
use synthetic::{sets_html, sets_takeaway};
use virtbench_record::{Home, MachineFacts, MemberStart, MemberStatus, Plan, SetStart};
use virtbench_report::sets_csv;

#[test]
fn even_means_over_uneven_moments_are_said() {
    let (facts, records) = neighbours();
    let taken = sets_takeaway(&facts, &records);
    assert!(
        taken.headline.starts_with("Of 3 VMs at once (copy), the worst-off VM to the best-off is 0.9"),
        "{taken:?}"
    );
    let uneven = taken.details.iter().find(|detail| detail.starts_with("Interval by interval")).unwrap();
    assert!(uneven.contains("more even than the moments"), "{uneven}");
    // The picture's packed script is random letters, among them any three.
    assert!(!sets_html(&facts, &records).contains("TCG emulates"));
}

#[test]
fn guests_that_are_emulated_elsewhere_are_said_to_be_too() {
    let (mut facts, records) = neighbours();
    let mut guest = facts.guest.take().unwrap();
    guest.accelerator.name = "tcg".into();
    let host = facts.host.clone();
    facts.machines = vec![MachineFacts { environment: "hv".into(), facts: host, guest: Some(guest) }];
    let said = sets_takeaway(&facts, &records);
    assert!(said.cautions.iter().any(|caution| caution.contains("emulate")), "{said:?}");
}

#[test]
fn deviation_names_its_mean_and_the_most_disturbed() {
    let (facts, records) = deviation();
    let taken = sets_takeaway(&facts, &records);
    assert!(taken.headline.contains("throughput of 3 VMs deviates by 19.7 %"), "{taken:?}");
    assert!(taken.details.iter().any(|detail| detail.contains("vm3 (24.0 %)")), "{taken:?}");
}

#[test]
fn disks_in_memory_are_named_before_the_figures_and_on_the_page() {
    let note = "/tmp/x.disk is on tmpfs: this is memory, not a disk";
    let (mut facts, records) = deviation();
    assert!(!sets_html(&facts, &records).contains("not a disk"));
    facts.add_notes([note.to_owned(), note.to_owned()]);
    assert_eq!(sets_takeaway(&facts, &records).cautions[0], format!("{note}."));
    assert!(sets_html(&facts, &records).contains(note));
}

#[test]
fn a_matrix_names_the_worst_pair_and_escapes_what_a_user_wrote() {
    let (facts, records) = matrix();
    let taken = sets_takeaway(&facts, &records);
    assert!(
        taken.headline.starts_with("Most disturbed is cpu beside memory <b>: its throughput deviates by 2"),
        "{taken:?}"
    );
    let page = sets_html(&facts, &records);
    assert!(page.contains("memory &lt;b&gt;") && !page.contains("memory <b>"));
}

#[test]
fn a_host_out_of_processor_time_leaves_no_finding() {
    let (mut facts, mut records) = neighbours();
    facts.guest.as_mut().unwrap().accelerator.name = "tcg".into();
    for host in records.iter_mut().filter_map(|record| record.host.as_mut()) {
        host.cpu_percent = 199.0;
        host.processors = 2;
    }
    let taken = sets_takeaway(&facts, &records);
    assert!(taken.headline.starts_with("Nothing can be said"), "{taken:?}");
    assert!(
        taken.cautions.iter().any(|caution| caution.starts_with("Not a finding (1, 2, 3 VMs)")),
        "{taken:?}"
    );
}

#[test]
fn failed_vms_and_missing_measurements_are_said_and_have_rows() {
    let (facts, mut records) = neighbours();
    records.pop();
    let last = records.last_mut().unwrap();
    last.members[0].status = MemberStatus::Failed { why: "QEMU was killed\nmore".into() };
    let taken = sets_takeaway(&facts, &records);
    assert!(taken.cautions.iter().any(|caution| caution.contains("8 of 9 measurements")), "{taken:?}");
    assert!(taken.cautions.iter().any(|caution| caution.ends_with("QEMU was killed")), "{taken:?}");
    let csv = sets_csv(&records).unwrap();
    assert!(csv.lines().any(|line| line.contains(",failed,,")), "{csv}");
    assert_eq!(
        csv.lines().next().unwrap().split(',').count(),
        csv.lines().last().unwrap().split(',').count()
    );
}

#[test]
fn a_run_that_measured_nothing_says_so() {
    for study in [Plan::Neighbours, Plan::Deviation] {
        let (mut facts, _) = neighbours();
        let Plan::Neighbours(plan) = facts.plan else { panic!("{facts:?}") };
        facts.plan = study(plan);
        let taken = sets_takeaway(&facts, &[]);
        assert!(taken.headline.contains("No") || taken.headline.contains("nothing"), "{taken:?}");
        assert!(sets_html(&facts, &[]).contains("</html>"));
    }
}

/// Two machines in `metal`, the third in `vm`; together in repetition 2 one was late and a clock jumped.
fn in_environments() -> (virtbench_record::Provenance, Vec<virtbench_record::SetRecord>) {
    let (mut facts, mut records) = deviation();
    facts.guest = None;
    let (Plan::Deviation(plan) | Plan::Neighbours(plan)) = &mut facts.plan else { panic!() };
    plan.homes = [("vm1", "metal"), ("vm2", "metal"), ("vm3", "vm")]
        .map(|(vm, environment)| Home {
            vm: vm.into(),
            environment: environment.into(),
            uri: format!("ssh://{environment}/srv"),
        })
        .into();
    for record in &mut records {
        let loose = record.set == "together" && record.repetition == 1;
        let mut started = Vec::new();
        for member in &mut record.members {
            let MemberStatus::Measured(measured) = &mut member.status else { continue };
            let late_ns = if loose && member.vm == "vm3" { 80_000_000 } else { 150_000 };
            let start = MemberStart {
                late_ns,
                offset_uncertainty_ns: 50_000,
                clock_jump_ns: (loose && member.vm == "vm2").then_some(-30_000_000),
                offsets_measured: 6,
            };
            (measured.start, measured.host) = (Some(start), record.host.clone());
            started.push((start, measured.host_elapsed_ns));
        }
        (record.start, record.host) = (SetStart::of(&started), None);
    }
    (facts, records)
}

#[test]
fn a_set_that_did_not_begin_together_is_marked_on_the_page_in_sentences_json_and_csv() {
    let (facts, records) = in_environments();
    let taken = sets_takeaway(&facts, &records);
    let said = |words: &str| taken.cautions.iter().any(|caution| caution.contains(words));
    assert!(
        said("in 1 of 15 measurements: in together, repetition 2, a machine may have run 80.0"),
        "{taken:?}"
    );
    assert!(said("and the study needs 10.0 ms"), "{taken:?}");
    assert!(said("The clock of vm2 (metal) jumped by -30.0 ms"), "{taken:?}");
    let page = sets_html(&facts, &records);
    for words in
        ["together †", "† its machines did not begin together", "Machines and their hosts", "ssh://vm/srv"]
    {
        assert!(page.contains(words), "{words}");
    }
    let all = virtbench_record::Records::Sets(records.clone());
    let json = serde_json::to_value(virtbench_model::summarise(Default::default(), &facts, &all)).unwrap();
    let loose = &json["loose_starts"];
    assert_eq!((loose.as_array().unwrap().len(), &loose[0]["set"]), (1, &"together".into()), "{loose}");
    assert_eq!(
        (&loose[0]["uncertainty_ns"], &loose[0]["needed_ns"]),
        (&80_050_000.into(), &10_000_000.into())
    );
    assert_eq!(
        (&json["machines"][2]["late_ns"], &json["machines"][2]["environment"]),
        (&80_000_000.into(), &"vm".into())
    );
    let csv = sets_csv(&records).unwrap();
    assert!(csv.lines().next().unwrap().contains("late_ns,offset_uncertainty_ns,clock_jump_ns"), "{csv}");
    assert!(csv.contains(",80000000,50000,,80050000,10000000,120,0,"), "{csv}");
}

#[test]
fn runs_of_guests_have_no_machines_and_no_marks() {
    let (facts, records) = deviation();
    let page = sets_html(&facts, &records);
    assert!(!page.contains("†") && !page.contains("Machines and their hosts"));
    let json = serde_json::to_string(&virtbench_model::summarise(
        Default::default(),
        &facts,
        &virtbench_record::Records::Sets(records.clone()),
    ));
    assert!(!json.unwrap().contains("loose_starts"));
    assert!(!sets_csv(&records).unwrap().contains("late_ns"));
}
