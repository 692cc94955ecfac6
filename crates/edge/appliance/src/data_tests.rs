use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use virtbench_recipe::{Manifest, Recipe};

use super::*;

const LIMIT: Duration = Duration::from_secs(60);
const RECIPE: &str = r#"
name = "one"
description = "a test"
packages = []
memory = "128MiB"
services = [{ name = "one", command = ["/bin/one"], ready = { tcp = 1 } }]
data = { folder = "/data", user = "root", prepare = [], size = "64MiB" }
"#;

fn appliance(digest: &str) -> Appliance {
    let recipe = Recipe::parse(RECIPE).unwrap();
    let manifest = Manifest {
        name: "one".into(),
        recipe_digest: String::new(),
        digest: digest.into(),
        suite: "s".into(),
        architecture: "a".into(),
        packages: Default::default(),
        image_digest: String::new(),
        image_bytes: 0,
        disk_bytes: 0,
        built_unix_s: 0,
        build_ms: 0,
        mmdebstrap: String::new(),
        mke2fs: String::new(),
        builder: 1,
    };
    Appliance { recipe, manifest, folder: PathBuf::new() }
}

/// Writes a file into the image without mounting it.
fn write(image: &Path, text: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let from = image.with_extension("text");
    fs::write(&from, text)?;
    let wanted = format!("write {} hello", from.display());
    let done = plain_command("debugfs").args(["-w", "-R", &wanted]).arg(image).output()?;
    fs::remove_file(from)?;
    if done.status.success() { Ok(()) } else { Err("debugfs".into()) }
}

fn read(image: &Path) -> String {
    let output = plain_command("debugfs").args(["-R", "cat hello"]).arg(image).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_data_set_is_filled_once_and_every_copy_begins_with_its_bytes() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let (store, never) = (Store::at(folder.path().join("store")), AtomicBool::new(false));
    let (first, filled) = (appliance("root 1"), AtomicU32::new(0));
    let get = |appliance: &Appliance, key: &str| {
        let fill = |image: &Path| {
            filled.fetch_add(1, Relaxed);
            write(image, key)
        };
        DataSets::new(&store, appliance).get(key, LIMIT, &never, fill).unwrap()
    };
    let set = get(&first, "1 warehouse");
    assert_eq!((get(&first, "1 warehouse"), filled.load(Relaxed)), (set.clone(), 1));
    assert_ne!(get(&first, "2 warehouses"), set);
    assert_ne!(get(&appliance("root 2"), "1 warehouse"), set);
    assert_eq!(filled.load(Relaxed), 3);
    assert_eq!(set.size_bytes, 64 << 20);

    let copy = folder.path().join("copy");
    set.copy_to(&copy, LIMIT, &never).unwrap();
    let bytes = fs::read(&copy).unwrap();
    assert!(bytes == fs::read(set.image()).unwrap());
    assert_eq!(read(&copy), "1 warehouse");
    assert!(fs::metadata(&copy).unwrap().blocks() * 512 <= set.disk_bytes + (1 << 20), "it keeps its holes");
    fs::write(&copy, "something else").unwrap();
    set.copy_to(&copy, LIMIT, &never).unwrap();
    assert!(bytes == fs::read(&copy).unwrap());

    let overlay = folder.path().join("overlay");
    set.overlay_at(&overlay, &never).unwrap();
    assert!(fs::metadata(&overlay).unwrap().len() < 1 << 20);
    let same = Command::new("qemu-img").arg("compare").args([&overlay, &set.image()]).output().unwrap();
    assert!(same.status.success(), "{same:?}");
}

#[test]
fn a_data_set_that_cannot_be_filled_leaves_nothing_and_says_why() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let (store, never) = (Store::at(folder.path().to_owned()), AtomicBool::new(false));
    let one = appliance("root");
    let sets = DataSets::new(&store, &one);
    let error = sets.get("a key", LIMIT, &never, |_| Err("initdb ended with 1".into())).unwrap_err();
    assert_eq!(error.to_string(), "the data \"a key\" cannot be prepared: initdb ended with 1");
    assert_eq!(fs::read_dir(store.data()).unwrap().count(), 0);
    // As a kill leaves it.
    let left = store.data().join("one-0.making");
    fs::create_dir(&left).unwrap();
    let mut without = one.clone();
    without.recipe.data = None;
    let none = DataSets::new(&store, &without).get("a key", LIMIT, &never, |_| Ok(()));
    assert!(matches!(none, Err(ApplianceError::NoData(_))));
    let mut large = one.clone();
    large.recipe.data.as_mut().unwrap().size = u64::MAX;
    let error = DataSets::new(&store, &large).get("a key", LIMIT, &never, |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains(&store.data().display().to_string()), "{error}");
}
