//! What pages, sentences and CSV say of VMs side by side.

#![allow(clippy::unwrap_used)]

mod synthetic;

use synthetic::sets::{deviation, matrix, neighbours};
use synthetic::{sets_html, sets_takeaway};
use virtbench_record::{MemberStatus, Plan};
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
