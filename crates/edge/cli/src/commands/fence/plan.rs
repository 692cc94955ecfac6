//! `virtbench fence plan`

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use virtbench_fence_evaluation::{Layout, Plan, Planned, Settings, Targets, Trial, front, plans, survivors};
use virtbench_model::Estimate;
use virtbench_report::{FenceFigure, FencePage, FenceTable, FenceValue, fence_html};

use super::evaluate::{calibrated, finished, threads};
use super::evaluated::cell;
use super::{evaluate, evaluated};
use crate::args::fence::{PlanArgs, SimulateArgs};
use crate::exit::{Failure, Kind, Outcome};
use crate::progress;
use crate::say::print_json;

/// A first look runs each candidate so often, and over a quarter of the accesses.
const FIRST_REPLICATIONS: u32 = 2;
const FIRST_SHARE: u32 = 4;

/// Searches and prints what was found.
pub fn execute(args: &PlanArgs) -> Outcome {
    let settings = evaluate::settings(&args.world)?;
    let targets = Targets {
        workload: args.workload,
        loads: args.load.clone(),
        deviation_percent: args.deviation,
        response_ms: args.response,
    };
    targets.check().map_err(|error| Failure::new(Kind::Usage, error))?;
    let candidates = plans(&targets.loads);
    let accesses = (settings.accesses / FIRST_SHARE).max(100);
    let brief = Settings { accesses, replications: FIRST_REPLICATIONS, ..settings };
    let first = try_all(&candidates, &targets, &brief, args.world.jobs)?;
    let kept: Vec<Plan> = survivors(&first, &targets, usize::from(args.budget))
        .into_iter()
        .filter_map(|place| candidates.get(place).copied())
        .collect();
    let trials = try_all(&kept, &targets, &settings, args.world.jobs)?;
    let found = Found::new(&targets, candidates.len(), &trials);
    if let Some(path) = &args.html {
        let html = found.page(&settings);
        fs::write(path, html).with_context(|| format!("--html {}: cannot be written", path.display()))?;
    }
    if args.toml {
        let nearest = trials.iter().min_by(|a, b| a.shortfall(&targets).total_cmp(&b.shortfall(&targets)));
        let nearest = nearest.ok_or_else(|| Failure::message(Kind::Other, "no candidate was simulated"))?;
        let text = toml::to_string(&Planned::new(&targets, &nearest.plan, &settings))
            .context("the plan cannot be written as TOML")?;
        writeln!(std::io::stdout().lock(), "# {}\n{text}", found.verdict)?;
        return Ok(());
    }
    found.print(args.json)
}

/// Simulates a plan that a file holds, and prints what it does.
pub fn again(path: &Path, args: &SimulateArgs) -> Outcome {
    let planned: Planned = evaluate::read("--plan", path)?;
    let wrong = |error: String| Failure::message(Kind::Usage, format!("--plan {}: {error}", path.display()));
    let plan = planned.plan().map_err(|error| wrong(error.to_string()))?;
    let settings = evaluate::over(planned.settings, &args.world)?;
    let trials = try_all(&[plan], &planned.targets, &settings, args.world.jobs)?;
    let found = Found::new(&planned.targets, 1, &trials);
    if let Some(path) = &args.html {
        fs::write(path, found.page(&settings))
            .with_context(|| format!("--html {}: cannot be written", path.display()))?;
    }
    found.print(args.json)
}

fn try_all(
    plans: &[Plan],
    targets: &Targets,
    settings: &Settings,
    jobs: Option<usize>,
) -> Result<Vec<Trial>, Failure> {
    let calibration = progress::during("calibration", || calibrated(settings))?;
    let progress = progress::counted(plans.len(), "candidates");
    let results = evaluate::in_order(
        plans,
        threads(jobs),
        || progress.inc(1),
        |plan| {
            plan.try_out(targets, settings, &calibration.predictors)
                .map_err(|error| Failure::new(Kind::Usage, error))
        },
    );
    progress.finish_and_clear();
    results.into_iter().map(finished).collect()
}

/// What was found; `--json` prints it.
#[derive(Serialize)]
struct Found<'a> {
    targets: &'a Targets,
    /// Whether a plan meets the targets.
    met: bool,
    verdict: String,
    /// Simulated in all, and at length.
    candidates: [usize; 2],
    /// Nearest to the targets first.
    plans: Vec<Row>,
}

/// One candidate that was simulated at length.
#[derive(Debug, Serialize)]
struct Row {
    scheduler: &'static str,
    slots: Option<u32>,
    slot_ms: Option<f64>,
    cache_bytes: u64,
    layout: Layout,
    response_deviation: Estimate,
    response_ms: Estimate,
    p99_ms: Estimate,
    reached: Estimate,
    /// At most 1 meets the targets.
    shortfall: f64,
    met: bool,
    on_front: bool,
}

impl Row {
    fn name(&self) -> String {
        let sharing = match (self.slots, self.slot_ms) {
            (Some(slots), Some(ms)) => format!("{slots} slots of {ms} ms"),
            _ => "virtual devices".to_owned(),
        };
        format!("{sharing}, {:.1} MiB of cache a machine, {}", self.cache_mib(), self.layout.name())
    }

    fn cache_mib(&self) -> f64 {
        self.cache_bytes as f64 / f64::from(1 << 20)
    }
}

impl<'a> Found<'a> {
    fn new(targets: &'a Targets, candidates: usize, trials: &[Trial]) -> Self {
        let on_front = front(trials);
        let row = |(place, trial): (usize, &Trial)| Row {
            scheduler: if trial.plan.slots().is_some() { "slots" } else { "paced" },
            slots: trial.plan.slots(),
            slot_ms: trial.plan.slot_ms(),
            cache_bytes: trial.cache_bytes,
            layout: trial.plan.layout,
            response_deviation: trial.deviation,
            response_ms: trial.response_ms,
            p99_ms: trial.p99_ms,
            reached: trial.reached,
            shortfall: trial.shortfall(targets),
            met: trial.meets(targets),
            on_front: on_front.contains(&place),
        };
        let mut plans: Vec<Row> = trials.iter().enumerate().map(row).collect();
        plans.sort_by(|a, b| a.shortfall.total_cmp(&b.shortfall));
        let met = plans.first().is_some_and(|plan| plan.met);
        let mut verdict = plans.first().map_or_else(String::new, |best| verdict(best, targets));
        // A configuration with slots wants their plan, though virtual devices come nearer.
        let slots = plans.iter().position(|plan| plan.slots.is_some());
        if let Some(slots) = slots.filter(|place| *place > 0) {
            verdict = format!("{verdict} With slots: {}", self::verdict(&plans[slots], targets));
        }
        Self { targets, met, verdict, candidates: [candidates, trials.len()], plans }
    }

    fn print(&self, json: bool) -> Outcome {
        if json {
            print_json(self)?;
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", self.verdict)?;
        evaluated::plain(&mut out, &self.table())?;
        Ok(())
    }

    fn table(&self) -> FenceTable {
        let cells = |row: &Row| {
            vec![
                row.name(),
                cell(&row.response_deviation, "%"),
                cell(&row.response_ms, "ms"),
                cell(&row.p99_ms, "ms"),
                format!("{:.0} %", row.reached.mean * 100.0),
                if row.on_front { "front" } else { "" }.to_owned(),
                if row.met {
                    "meets".to_owned()
                } else {
                    format!("misses, {:.2} times a target", row.shortfall)
                },
            ]
        };
        FenceTable {
            title: "Plans".to_owned(),
            caption: format!(
                "{}Deviation and response time are those of the machine with the most; load is the least share reached. No \
                 candidate of the same scheduler beats one on the front in both.",
                match self.candidates {
                    [1, 1] => String::new(),
                    [brief, long] => format!(
                        "{brief} candidates were simulated briefly, these {long} at length; nearest to the targets first. "
                    ),
                }
            ),
            header: ["plan", "response deviation", "response time", "p99", "load", "front", "targets"]
                .map(str::to_owned)
                .into(),
            rows: self.plans.iter().map(cells).collect(),
        }
    }

    fn page(&self, settings: &Settings) -> String {
        let mut on_front: Vec<&Row> = self.plans.iter().filter(|row| row.on_front).collect();
        on_front.sort_by(|a, b| a.response_deviation.mean.total_cmp(&b.response_deviation.mean));
        let value = |row: &&Row| FenceValue {
            workload: if row.slots.is_some() { "slots" } else { "virtual devices" }.to_owned(),
            system: row.name(),
            x: Some(row.response_deviation.mean),
            machine: "worst".to_owned(),
            metric: "response together".to_owned(),
            unit: "ms".to_owned(),
            measured: row.response_ms.mean,
            interval: row.response_ms.span().map(|span| (span.low, span.high)),
            range: None,
            published: None,
            mark: None,
            outside: None,
        };
        let title = "The Pareto front: response time over deviation";
        let figure = FenceFigure {
            name: "plan".to_owned(),
            title: title.to_owned(),
            axis: Some("deviation, %".to_owned()),
            values: on_front.iter().map(value).collect(),
            findings: Vec::new(),
        };
        let loads: Vec<String> = self.targets.loads.iter().map(f64::to_string).collect();
        fence_html(&FencePage {
            headline: self.verdict.clone(),
            details: vec![format!(
                "Targets: response time deviates by {} % at most and is {} ms at most, with {} accesses a second of {}. \
                 Seed {}, {} runs of each plan.",
                self.targets.deviation_percent,
                self.targets.response_ms,
                loads.join(", "),
                self.targets.workload.name(),
                settings.seed,
                settings.replications
            )],
            cautions: super::explain::cautions(settings),
            figures: if on_front.is_empty() { Vec::new() } else { vec![figure] },
            tables: vec![self.table()],
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}

fn verdict(best: &Row, targets: &Targets) -> String {
    let figures = format!(
        "deviation {}, response time {}, {:.0} % of the load",
        cell(&best.response_deviation, "%"),
        cell(&best.response_ms, "ms"),
        best.reached.mean * 100.0
    );
    if best.met {
        format!("Plan: {}: {figures}.", best.name())
    } else {
        format!(
            "No plan that was tried meets the targets ({} %, {} ms). Nearest comes {}: {figures}.",
            targets.deviation_percent,
            targets.response_ms,
            best.name()
        )
    }
}
