//! What two plans do not share. It is worked out from what is written of them, so that no part can be forgotten.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

/// How parts of plans are called, those first that say most. Others go by their names in `run.json`.
const WORDS: [(&str, &str); 53] = [
    ("study", "the study"),
    ("grid", "the grid"),
    ("blocks_bytes", "the grid's block sizes"),
    ("read_percents", "the grid's shares of reads"),
    ("random_percents", "the grid's shares of random seeks"),
    ("database", "the database"),
    ("load", "what is loaded, and how"),
    ("recipe", "the recipe"),
    ("tile", "the tile"),
    ("root", "the appliance's root"),
    ("members", "the members"),
    ("platform", "the platform"),
    ("cases", "the applications"),
    ("paths", "the network paths"),
    ("workloads", "who runs beside whom"),
    ("sets", "who runs beside whom"),
    ("pinned", "who runs beside whom"),
    ("homes", "what the environments are"),
    ("uris", "what the environments are"),
    ("environments", "the environments"),
    ("tiers", "the tiers"),
    ("metrics", "the metrics"),
    ("sides", "the sides"),
    ("neighbours", "the neighbours"),
    ("neighbour", "the neighbours"),
    ("mix", "the mix"),
    ("day_file", "the day"),
    ("operations", "the day"),
    ("masks", "the masks"),
    ("link", "the link to desktops"),
    ("desktops", "the numbers of desktops"),
    ("tiles", "the numbers of tiles"),
    ("vms", "the numbers of VMs"),
    ("users", "the users"),
    ("warehouses", "the number of warehouses"),
    ("trials", "the number of trials"),
    ("repetitions", "the number of repetitions"),
    ("outstanding", "the queue depth"),
    ("workers", "the number of workers"),
    ("ramp_ns", "the ramp-up"),
    ("ramp_up_ns", "the ramp-up"),
    ("search_ns", "the time of the search"),
    ("time_ns", "the measuring time"),
    ("limit_ns", "the time limit"),
    ("size_bytes", "the size of the disk"),
    ("memory_bytes", "the memory"),
    ("vcpus", "the processors"),
    ("disk", "the disk"),
    ("network", "the network"),
    ("host", "the machine that runs members"),
    ("infrastructure", "the infrastructure load"),
    ("accelerator", "the accelerator"),
    ("seed", "the seed"),
];

/// What may differ: how long something takes by the user's own account.
const LEFT_OUT: [&str; 1] = ["takes_ns"];

/// The first part of a plan that another one does not share, as a user knows it.
pub(crate) fn first_difference(a: &impl Serialize, b: &impl Serialize) -> Option<Cow<'static, str>> {
    let (a, b) = (parts(a), parts(b));
    let differs = |name: &str| a.get(name) != b.get(name);
    let known = WORDS.iter().find(|(name, _)| differs(name)).map(|(_, words)| Cow::Borrowed(*words));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    known.or_else(|| names.into_iter().find(|name| differs(name)).map(|name| unnamed(name).into()))
}

fn parts(plan: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(mut parts)) = serde_json::to_value(plan) else { return Map::new() };
    parts.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    parts
}

/// `most_at_once` as `the plan's "most at once"`.
fn unnamed(name: &str) -> String {
    let words = name.trim_end_matches("_ns").trim_end_matches("_bytes").replace('_', " ");
    format!("the plan's {words:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_part_differs_is_found_that_first_which_says_most() {
        let plan = json!({"study": "oltp", "seed": 1, "vms": [1, 2], "most_at_once": 4, "takes_ns": 5});
        assert_eq!(first_difference(&plan, &plan), None);
        for (name, words) in [
            ("study", Some("the study")),
            ("seed", Some("the seed")),
            ("vms", Some("the numbers of VMs")),
            ("most_at_once", Some("the plan's \"most at once\"")),
            ("takes_ns", None),
        ] {
            let mut other = plan.clone();
            other[name] = json!("another");
            assert_eq!(first_difference(&plan, &other).as_deref(), words, "{name}");
            other.as_object_mut().unwrap().remove(name);
            assert_eq!(first_difference(&plan, &other).as_deref(), words, "{name} is missing");
            other["study"] = json!("tiles");
            assert_eq!(first_difference(&other, &plan).as_deref(), Some("the study"));
        }
    }

    #[test]
    fn a_part_without_words_goes_by_its_name() {
        assert_eq!(unnamed("most_at_once"), "the plan's \"most at once\"");
        assert_eq!(unnamed("piece_ns"), "the plan's \"piece\"");
    }
}
