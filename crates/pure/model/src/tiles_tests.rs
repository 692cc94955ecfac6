use virtbench_record::{Conclusion, TileRow};

use super::*;

/// Values and references of the members of one tile, and the first member that breaks its levels.
fn tile(
    configuration: &str,
    run: [u32; 3],
    members: &[(&str, f64, f64)],
    breaks: Option<&str>,
) -> Vec<TileRow> {
    let [repetition, tiles, tile] = run;
    let row = |(member, value, reference): &(&str, f64, f64)| TileRow {
        configuration: configuration.into(),
        repetition,
        tiles,
        tile,
        member: (*member).into(),
        done: Some([*value, *reference]),
        held: Some(breaks != Some(*member)),
    };
    members.iter().map(row).collect()
}

/// Half, equal and double have the geometric mean 1; a tile of [2, 8] has 4.
#[test]
fn a_tile_s_score_is_the_geometric_mean_of_normalised_metrics() {
    assert!((tile_score(&[0.5, 1.0, 2.0]).unwrap() - 1.0).abs() < 1e-12);
    assert!((tile_score(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
    assert_eq!((tile_score(&[]), tile_score(&[1.0, -1.0]), tile_score(&[1.0, 0.0])), (None, None, Some(0.0)));
}

/// Mail 1 %, web 4 % above the reference and a database 10 % below it: the cube root of 1.01 x 1.04 x 0.9 is
/// 0.98144; with a second tile of 1.0 the total is 1.98144. An idle member counts for its levels alone.
#[test]
fn the_total_is_the_sum_over_tiles_and_an_idle_member_is_not_scored() {
    let mut rows =
        tile("a", [0, 2, 1], &[("mail", 303.0, 300.0), ("web", 52.0, 50.0), ("oltp", 9.0, 10.0)], None);
    rows.extend(tile(
        "a",
        [0, 2, 2],
        &[("mail", 300.0, 300.0), ("web", 50.0, 50.0), ("oltp", 10.0, 10.0)],
        None,
    ));
    rows.push(TileRow { member: "standby".into(), done: None, ..rows[0].clone() });
    let analysis = analyse_tiles(&rows, 1);
    let step = &analysis.configurations[0].steps[0];
    let expected = (1.01_f64 * 1.04 * 0.9).cbrt() + 1.0;
    assert!((step.score().unwrap().mean - expected).abs() < 1e-12 && (expected - 1.981_444_5).abs() < 1e-6);
    let standby = step.members.iter().find(|member| member.name == "standby").unwrap();
    assert_eq!((standby.normalised, standby.broken), (None, 0));
}

/// A published total of VMmark 3: applications 11.18 and infrastructure 1.07 make 9.16 (Dell, "World Record VMmark 3 Single-Socket
/// Performance", Table 10, AMD EPYC 7002).
#[test]
fn a_published_total_comes_out() {
    assert!((total_score(11.18, Some(1.07)) - 9.158).abs() < 1e-12);
    assert_eq!(format!("{:.2}", total_score(11.18, Some(1.07))), "9.16");
    assert!((total_score(11.18, None) - 11.18).abs() < 1e-12);
}

#[test]
fn totals_with_and_without_an_infrastructure_load_are_not_compared() {
    let mut rows = tile("a", [0, 1, 1], &[("web", 1.0, 1.0)], None);
    rows.extend(tile("b", [0, 1, 1], &[("web", 2.0, 1.0)], None));
    rows.extend(tile("b", [0, 1, virtbench_record::INFRASTRUCTURE], &[("clone", 0.5, 1.0)], None));
    let analysis = analyse_tiles(&rows, 1);
    let total = analysis.configurations[1].steps[0].score().unwrap().mean;
    assert!((total - 1.7).abs() < 1e-12, "80 % of 2 and 20 % of a half: {total}");
    assert!((analysis.changes[0].sum.value - 2.0).abs() < 1e-12, "the tiles alone");
}

#[test]
fn one_member_below_its_levels_in_one_run_voids_that_number_of_tiles() {
    let mut rows = Vec::new();
    for repetition in 0..3 {
        for tiles in 1..=4 {
            for number in 1..=tiles {
                let slow = 1.0 / f64::from(tiles);
                let breaks = (tiles == 3 && repetition == 1 && number == 3).then_some("web");
                let members = [("web", slow, 1.0), ("oltp", 1.0, 1.0)];
                rows.extend(tile("a", [repetition, tiles, number], &members, breaks));
            }
        }
    }
    let analysis = analyse_tiles(&rows, 1);
    let one = &analysis.configurations[0];
    assert_eq!(one.most().map(|step| step.tiles), Some(2));
    assert_eq!(one.too_many().map(|step| (step.tiles, step.held, step.runs)), Some((3, 2, 3)));
    assert_eq!(one.too_many().and_then(TileStep::weakest).map(|member| member.name.as_str()), Some("web"));
    // Four tiles held by chance: what does not fit with three does not fit with more.
    assert!(one.steps[3].fits() && one.steps[2].score().is_none() && one.steps[2].sum.is_some());
    assert!((one.holds_at_least().unwrap() - 0.05_f64.cbrt()).abs() < 1e-12);
    let web = &one.steps[1].members[0];
    assert!((web.of_one_tile.unwrap().value - 0.5).abs() < 1e-12, "half is left beside a second tile");
    assert!((one.steps[1].jain.unwrap() - 0.9).abs() < 1e-12, "0.5 and 1 are 2.25/2.5");
}

#[test]
fn a_change_names_the_member_that_moved_most() {
    let mut rows = Vec::new();
    for repetition in 0..3 {
        let noise = 1.0 + 0.01 * f64::from(repetition);
        rows.extend(tile("before", [repetition, 1, 1], &[("web", noise, 1.0), ("oltp", 1.0, 1.0)], None));
        rows.extend(tile("after", [repetition, 1, 1], &[("web", noise, 1.0), ("oltp", 2.25, 1.0)], None));
    }
    let analysis = analyse_tiles(&rows, 1);
    let [change] = analysis.changes.as_slice() else { panic!("{:?}", analysis.changes) };
    assert!((change.sum.value - 1.5).abs() < 1e-9, "the root of 2.25");
    assert_eq!((change.members[0].0.as_str(), change.tiles), ("oltp", 1));
    let numbers = summarise_tiles(Conclusion::default(), &analysis);
    assert_eq!((numbers.configurations[0].fits, numbers.changes[0].reference.as_str()), (Some(1), "before"));
}

#[test]
fn a_tile_that_was_not_reported_leaves_the_run_without_a_score() {
    let rows = tile("a", [0, 2, 1], &[("web", 1.0, 1.0)], None);
    assert_eq!(analyse_tiles(&rows, 1).configurations[0].steps[0].score(), None);
}

#[test]
fn a_member_that_did_nothing_makes_its_tile_s_score_nothing() {
    for reference in [2.0, 0.0] {
        let mut rows = tile("a", [0, 2, 1], &[("web", 1.0, 1.0), ("oltp", 0.0, reference)], Some("oltp"));
        rows.extend(tile("a", [0, 2, 2], &[("web", 1.0, 1.0), ("oltp", 2.0, 2.0)], None));
        let analysis = analyse_tiles(&rows, 1);
        let step = &analysis.configurations[0].steps[0];
        assert_eq!(step.sum.map(|sum| sum.mean), Some(1.0), "a tile of 0 and one of 1");
        let oltp = step.members.iter().find(|member| member.name == "oltp").unwrap();
        assert_eq!(oltp.normalised.map(|normalised| normalised.mean), Some(0.0), "{reference}");
        assert_eq!((step.fits(), step.score()), (false, None));
    }
    let rows = tile("a", [0, 1, 1], &[("web", 1.0, 0.0)], None);
    assert_eq!(analyse_tiles(&rows, 1).configurations[0].steps[0].total, None, "something of nothing");
}

#[test]
fn a_member_whose_figure_is_missing_leaves_the_run_without_a_score() {
    let both = [("web", 1.0, 1.0), ("oltp", 1.0, 1.0)];
    let mut rows = tile("a", [0, 2, 1], &both, None);
    rows.extend(tile("a", [0, 2, 2], &both[..1], None));
    rows.extend(tile("b", [0, 1, 1], &both[..1], None));
    rows.extend(tile("a", [1, 1, 0], &both[..1], None));
    let analysis = analyse_tiles(&rows, 1);
    let steps = analysis.configurations.iter().flat_map(|one| &one.steps);
    let found: Vec<_> = steps.map(|step| (step.tiles, step.total.is_some(), step.missing.len())).collect();
    assert_eq!(found, [(1, false, 2), (2, false, 2), (1, false, 1)], "a with one tile and with two, b");
    let missing = &analysis.configurations[0].steps[1].missing;
    assert_eq!(*missing, ["oltp of tile 2 in run 1", "the operation web in run 1"]);
}

#[test]
fn of_members_that_broke_as_often_the_first_is_named() {
    let mut rows = tile("a", [0, 1, 1], &[("oltp", 1.0, 1.0)], Some("oltp"));
    rows.extend(tile("a", [0, 1, 1], &[("key-value", 1.0, 1.0)], Some("key-value")));
    let analysis = analyse_tiles(&rows, 1);
    assert_eq!(analysis.configurations[0].steps[0].weakest().map(|one| one.name.as_str()), Some("oltp"));
}

#[test]
fn levels_that_nobody_told_of_are_not_known_to_be_kept() {
    let mut rows = tile("a", [0, 1, 1], &[("web", 1.0, 1.0)], None);
    assert!(analyse_tiles(&rows, 1).configurations[0].steps[0].levels_known);
    rows[0].held = None;
    assert!(!analyse_tiles(&rows, 1).configurations[0].steps[0].levels_known);
    rows[0].tiles = 0;
    let none = &analyse_tiles(&rows, 1).configurations[0].steps[0];
    assert_eq!((none.fits(), none.total), (false, None), "no tile fits in no tile");
}
