use super::*;
use virtbench_workload::files::Personality;

fn set(entries: u32, dir_width: u32, prealloc_percent: u8) -> FileSet {
    let size = Draw::Gamma { mean: 2000.0, shape: 1.5 };
    FileSet { name: "files".into(), entries, size, dir_width, prealloc_percent }
}

fn make(set: &FileSet) -> (tempfile::TempDir, FileTree) {
    let place = tempfile::tempdir().unwrap();
    let tree = FileTree::make(set, place.path(), 5, &|| false).unwrap();
    (place, tree)
}

#[test]
fn the_share_that_exists_has_the_sizes_that_were_drawn() {
    let (_place, tree) = make(&set(200, 20, 80));
    let existing = tree.state().existing.clone();
    assert_eq!((existing.len(), tree.state().absent.len()), (160, 40));
    for index in existing {
        assert_eq!(fs::metadata(tree.path(index)).unwrap().len(), tree.size(index));
    }
    for index in tree.state().absent.clone() {
        assert!(!tree.path(index).exists());
    }
}

#[test]
fn folders_have_the_mean_width_and_the_depth_that_follows() {
    let mut random = Random::new(1);
    let wide = folders(&set(10_000, 20, 0), Path::new("/x"), &mut random);
    let mean = 10_000.0 / wide.len() as f64;
    assert!((15.0..25.0).contains(&mean), "{mean}");
    // 500 folders in folders of 20: three deep, as log(10,000) / log(20) says.
    assert!(wide.iter().all(|(path, _)| path.components().count() == 2 + 3), "{:?}", wide[0]);
    let mail = &Personality::MailServer.model().filesets[0];
    assert_eq!(folders(mail, Path::new("/x"), &mut random).len(), 1);
}

#[test]
fn a_file_in_use_is_not_deleted_and_lists_stay_whole() {
    let (_place, tree) = make(&set(10, 20, 50));
    let mut random = Random::new(2);
    let held = tree.hold_existing(&mut random).unwrap();
    let mut deleted = Vec::new();
    while let Some(index) = tree.take_idle(&mut random) {
        deleted.push(index);
        tree.absent_again(index);
    }
    assert_eq!(deleted.len(), 4);
    assert!(!deleted.contains(&held));
    tree.release(held);
    assert_eq!(tree.take_idle(&mut random), Some(held));
    tree.absent_again(held);
    let mut made = Vec::new();
    while let Some(index) = tree.take_absent(&mut random) {
        tree.created(index);
        made.push(index);
    }
    made.sort_unstable();
    assert_eq!(made, (0..10).collect::<Vec<u32>>());
    assert!(tree.hold_existing(&mut random).is_some());
}
