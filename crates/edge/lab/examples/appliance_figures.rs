//! How long an appliance takes to get ready, and what the path to it costs. ROOT is an ext4 image of its root, DATA one of its
//! data, which are prepared first if they are empty, and changed.
//! `cargo run --release -p virtbench-lab --example appliance_figures -- RECIPE ROOT DATA native|guest|uml user|tap [STARTS] [VCPUS]`
//!
//! With `wait` for STARTS it prints the process that runs the appliance, and waits to be killed: the tests do, with signal 9.

use std::path::PathBuf;
use std::time::Duration;

use virtbench_lab::{
    ApplianceSpec, BOOT_LIMIT, GuestPlace, Network, NetworkNamespace, Place, RunningAppliance, TierLinks,
    UmlPlace,
};
use virtbench_recipe::{Recipe, supplied};

type Failure = Box<dyn std::error::Error>;

fn recipe(name: &str) -> Result<Recipe, Failure> {
    match supplied::find(name) {
        Some(supplied) => Ok(supplied.recipe()?),
        None => Ok(Recipe::parse(&std::fs::read_to_string(name)?)?),
    }
}

/// Runs the recipe's own commands where the data's folder has nothing but what a new file system has.
fn prepare(spec: &ApplianceSpec) -> Result<(), Failure> {
    let Some(data) = &spec.recipe.data else { return Ok(()) };
    let mut appliance = RunningAppliance::open(spec)?;
    let look = ["/bin/sh", "-c", &format!("test -z \"$(ls {} | grep -v lost+found)\"", data.folder)];
    let limit = Duration::from_secs(600);
    if appliance.run(&look.map(str::to_owned), "root", limit)?.exit_code == Some(0) {
        appliance.prepare_data(limit)?;
    }
    appliance.stop()?;
    Ok(())
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, root, data, place, network, rest @ ..] = words.as_slice() else {
        return Err("RECIPE ROOT DATA native|guest|uml user|tap [STARTS] [VCPUS]".into());
    };
    let waits = rest.first().is_some_and(|word| word == "wait");
    let number = |index: usize| rest.get(index).filter(|_| !waits).map_or(Ok(1), |text| text.parse::<u32>());
    let recipe = recipe(name)?;
    let spec = ApplianceSpec {
        name: place.clone(),
        memory_bytes: recipe.memory,
        data: recipe.data.as_ref().map(|_| PathBuf::from(data)),
        recipe,
        root: root.into(),
        vcpus: number(1)?,
        network: if network == "tap" { Network::Namespace(NetworkNamespace::new()?) } else { Network::User },
        tiers: TierLinks::default(),
        processors: Vec::new(),
        place: match place.as_str() {
            "guest" => Place::Guest(Box::new(GuestPlace::on_this_host(BOOT_LIMIT)?)),
            "uml" => Place::Uml(Box::new(UmlPlace::on_this_host(BOOT_LIMIT)?)),
            _ => Place::Native,
        },
    };
    prepare(&ApplianceSpec { place: Place::Native, network: Network::User, ..spec.clone() })?;
    if waits {
        let appliance = RunningAppliance::start(&spec)?;
        println!("{}", appliance.processes()[0]);
        std::thread::sleep(Duration::from_secs(120));
        return Ok(());
    }
    for _ in 0..number(0)? {
        let appliance = RunningAppliance::start(&spec)?;
        println!("{}", serde_json::to_string(appliance.facts())?);
        let (services, notes) = appliance.stop()?;
        println!("stopped: {services:?} {notes:?}");
    }
    Ok(())
}
