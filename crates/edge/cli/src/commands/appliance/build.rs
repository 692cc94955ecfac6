//! `virtbench appliance build`

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde::Serialize;
use virtbench_appliance::{BuildOptions, Phase, Progress, Store, build};
use virtbench_recipe::Manifest;
use virtbench_study::find_recipe;

use crate::args::appliance::ApplianceBuildArgs;
use crate::commands::study_runs::study_failure;
use crate::exit::Outcome;
use crate::say::{self, print_json, say, tell};
use crate::{interrupt, progress};

use super::words::on_disk;
use crate::appliance_failure::failure;

/// Off a terminal it is said so often that a phase goes on.
const INTERVAL: Duration = Duration::from_secs(10);

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    new: bool,
    image: String,
    manifest: &'a Manifest,
}

/// Builds an appliance, or finds it.
pub fn execute(args: &ApplianceBuildArgs) -> Outcome {
    let found = find_recipe(&args.recipe).map_err(study_failure)?;
    let options = BuildOptions { update: args.update, limit: args.limit, stop: interrupt::flag() };
    let mut shown = Shown::new(&found.recipe.name);
    let done = build(&Store::of_user(), &found.recipe, options, &mut |now| shown.tell(&now));
    drop(shown);
    let built = done.map_err(failure)?;
    let (manifest, image) = (&built.appliance.manifest, built.appliance.image());
    if args.json {
        let answer = Answer { new: built.is_new, image: image.display().to_string(), manifest };
        return Ok(print_json(&answer)?);
    }
    let how = if built.is_new {
        format!("built in {:.0} s", manifest.build_ms as f64 / 1e3)
    } else {
        "is built already; --update looks for newer packages".to_owned()
    };
    say!("{} {how}", manifest.name);
    say!(
        "root   {}, {} packages of {} ({})",
        on_disk(manifest.disk_bytes),
        manifest.packages.len(),
        manifest.suite,
        manifest.architecture
    );
    say!("image  {}", image.display());
    Ok(())
}

/// Progress on stderr: a line that changes on a terminal, lines at intervals where they are wanted, objects for programs.
struct Shown {
    name: String,
    begun: Instant,
    said: Option<(Phase, Instant)>,
    bar: Option<ProgressBar>,
}

impl Shown {
    fn new(name: &str) -> Self {
        let says = say::is_for_machines() || say::is_in_lines();
        let bar = (!says).then(|| progress::spinner(name));
        Self { name: name.to_owned(), begun: Instant::now(), said: None, bar }
    }

    fn tell(&mut self, now: &Progress) {
        if let Some(bar) = &self.bar {
            return bar.set_message(self.words(now));
        }
        let is_due = self.said.is_none_or(|(phase, at)| phase != now.phase || at.elapsed() >= INTERVAL);
        if !is_due {
            return;
        }
        self.said = Some((now.phase, Instant::now()));
        let seconds = self.begun.elapsed().as_secs();
        if say::is_for_machines() {
            say::event(&serde_json::json!({
                "event": "appliance", "name": self.name, "phase": now.phase.name(), "share": now.share, "detail": now.detail,
                "seconds": seconds,
            }));
        } else {
            tell!("{}, {seconds} s", self.words(now));
        }
    }

    fn words(&self, now: &Progress) -> String {
        let share = now.share.map_or_else(String::new, |share| format!(" {:.0} %", share * 100.0));
        let detail = if now.detail.is_empty() { String::new() } else { format!(", {}", now.detail) };
        format!("{}: {}{share}{detail}", self.name, now.phase.name())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
