//! What is written of a run, by its study.

use std::collections::BTreeMap;

use virtbench_model::Margin;
use virtbench_model::application::analyse_application_study;
use virtbench_model::desktops::analyse_desktops;
use virtbench_model::oltp::analyse_oltp;
use virtbench_model::operations::analyse_operations;
use virtbench_model::samples::analyse_samples;
use virtbench_model::tiles_study::analyse_tiles_study;
use virtbench_model::together::{analyse_deviation, analyse_neighbours};
use virtbench_record::{Plan, Provenance, Records, SidesPlan};

use crate::application::application_study_csv;
use crate::application::of_application_study;
use crate::configurations::Analysed;
use crate::desktops::desktops_csv;
use crate::desktops::of_desktops;
use crate::oltp::of_oltp;
use crate::oltp::oltp_csv;
use crate::operations::of_operations;
use crate::operations_rows::{operations_csv, operations_metrics};
use crate::page;
use crate::page::Outline;
use crate::platform::Card;
use crate::platform::of_platform;
use crate::rows::{CsvError, csv};
use crate::run::Run;
use crate::samples::of_samples;
use crate::samples::samples_csv;
use crate::set_rows::sets_csv;
use crate::sets::{of_deviation, of_neighbours};
use crate::takeaway::{Takeaway, of_run};
use crate::tiles::tiles_csv;
use crate::tiles_study::of_tiles_study;
use crate::trials::{
    head as predictions_head, predictions_html, predictions_takeaway, trials_csv, trials_markdown,
};

/// Everything that is written of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// The page, self-contained.
    pub html: String,
    /// Every measurement, as CSV.
    pub csv: String,
    /// One more file: its name and its text.
    pub more: Option<(&'static str, String)>,
}

/// The page of a run.
///
/// `histograms` holds latencies in nanoseconds, encoded as HdrHistogram logs hold them, under
/// [`PointRecord::histogram_tag`](virtbench_record::PointRecord::histogram_tag) followed by `/read` or `/write`. Where a
/// tag is missing, the histogram inside the record is used; where that is missing too, the point has no latency curve. Any
/// records will do, from none at all to an incomplete run: the page says what is missing.
#[must_use]
pub fn html(provenance: &Provenance, records: &Records, histograms: &BTreeMap<String, String>) -> String {
    match &provenance.plan {
        Plan::NativeVsVm(_) => page::native_vs_vm::page(&Run::new(provenance, records.points()), histograms),
        Plan::Adapters(_) | Plan::Compare(_) => {
            Analysed::run(provenance, records.points(), Margin::default()).html()
        }
        Plan::Neighbours(_) => crate::sets::neighbours_page(provenance, records.sets()),
        Plan::Deviation(_) => crate::sets::deviation(provenance, records.sets()),
        Plan::Predictions(_) => predictions_html(provenance, records.trials()),
        Plan::Oltp(plan) => crate::oltp::page(provenance, plan, records.oltp()),
        Plan::Operations(plan) => crate::operations::page(provenance, plan, records.operations()),
        Plan::Application(plan) => crate::application::page(provenance, plan, records.application()),
        Plan::Desktops(plan) => crate::desktops::page(provenance, plan, records.desktops()),
        Plan::Tiles(plan) => crate::tiles_study::page(provenance, plan, records.tiles()),
        Plan::Platform(plan) => crate::platform::page(provenance, plan, records.samples()),
        Plan::Network(_) => crate::samples::page(provenance, &sides(provenance), records.samples()),
    }
}

/// What a reader takes away from a run.
#[must_use]
pub fn takeaway(provenance: &Provenance, records: &Records) -> Takeaway {
    let (points, sets) = (records.points(), records.sets());
    match &provenance.plan {
        Plan::NativeVsVm(_) => of_run(&Run::new(provenance, points)),
        Plan::Adapters(_) | Plan::Compare(_) => {
            Analysed::run(provenance, points, Margin::default()).takeaway()
        }
        Plan::Neighbours(_) => of_neighbours(&analyse_neighbours(provenance, sets), provenance, sets),
        Plan::Deviation(_) => of_deviation(&analyse_deviation(provenance, sets), provenance, sets),
        Plan::Predictions(_) => predictions_takeaway(provenance, records.trials()),
        Plan::Oltp(plan) => of_oltp(provenance, plan, &analyse_oltp(plan, records.oltp())),
        Plan::Operations(plan) => of_operations(plan, &analyse_operations(plan, records.operations())),
        Plan::Application(plan) => {
            of_application_study(provenance, plan, &analyse_application_study(plan, records.application()))
        }
        Plan::Desktops(plan) => of_desktops(provenance, plan, &analyse_desktops(plan, records.desktops())),
        Plan::Tiles(plan) => of_tiles_study(provenance, plan, &analyse_tiles_study(plan, records.tiles())),
        Plan::Platform(plan) => of_platform(&Card::new(provenance, plan, records.samples())),
        Plan::Network(_) => {
            let sides = sides(provenance);
            of_samples(provenance, &sides, &analyse_samples(&sides, records.samples()))
        }
    }
}

/// What the page of a run says and draws, for summaries in other forms; `histograms` as for [`html`].
#[must_use]
pub fn outline(provenance: &Provenance, records: &Records, histograms: &BTreeMap<String, String>) -> Outline {
    let (points, sets) = (records.points(), records.sets());
    match &provenance.plan {
        Plan::NativeVsVm(_) => {
            page::native_vs_vm::head(&Run::new(provenance, points), histograms).outline(provenance)
        }
        Plan::Adapters(_) | Plan::Compare(_) => {
            crate::configurations::head(&Analysed::run(provenance, points, Margin::default()))
                .outline(provenance)
        }
        Plan::Neighbours(_) => {
            crate::sets::neighbours_head(provenance, sets, &analyse_neighbours(provenance, sets))
                .outline(provenance)
        }
        Plan::Deviation(_) => {
            crate::sets::deviation_head(provenance, sets, &analyse_deviation(provenance, sets))
                .outline(provenance)
        }
        Plan::Predictions(_) => predictions_head(provenance, records.trials()).outline(provenance),
        Plan::Oltp(plan) => {
            let all = records.oltp();
            crate::oltp::head(provenance, plan, all, &analyse_oltp(plan, all)).outline(provenance)
        }
        Plan::Operations(plan) => {
            let all = records.operations();
            crate::operations::head(provenance, plan, all, &analyse_operations(plan, all)).outline(provenance)
        }
        Plan::Application(plan) => {
            let all = records.application();
            let analysis = analyse_application_study(plan, all);
            crate::application::head(provenance, plan, all, &analysis).outline(provenance)
        }
        Plan::Desktops(plan) => {
            let all = records.desktops();
            crate::desktops::head(provenance, plan, all, &analyse_desktops(plan, all)).outline(provenance)
        }
        Plan::Tiles(plan) => {
            let all = records.tiles();
            crate::tiles_study::head(provenance, plan, all, &analyse_tiles_study(plan, all))
                .outline(provenance)
        }
        Plan::Platform(plan) => crate::platform::outline(&Card::new(provenance, plan, records.samples())),
        Plan::Network(_) => {
            let plan = sides(provenance);
            crate::samples::head(provenance, &plan, &analyse_samples(&plan, records.samples()))
                .outline(provenance)
        }
    }
}

/// The page of a run, its measurements, and what else its study has.
///
/// # Errors
/// A table cannot be written.
pub fn documents(
    provenance: &Provenance,
    records: &Records,
    histograms: &BTreeMap<String, String>,
) -> Result<Documents, CsvError> {
    let (csv, more) = match &provenance.plan {
        Plan::NativeVsVm(_) => (csv(records.points())?, None),
        Plan::Adapters(_) | Plan::Compare(_) => {
            let verdicts = Analysed::run(provenance, records.points(), Margin::default()).verdicts_csv()?;
            (csv(records.points())?, Some(("verdicts.csv", verdicts)))
        }
        Plan::Neighbours(_) | Plan::Deviation(_) => (sets_csv(records.sets())?, None),
        Plan::Predictions(_) => {
            (trials_csv(records.trials()), Some(("results.md", trials_markdown(records.trials()))))
        }
        Plan::Oltp(_) => (oltp_csv(records.oltp())?, None),
        Plan::Operations(plan) => {
            let metrics = operations_metrics(&plan.platform, &analyse_operations(plan, records.operations()));
            (operations_csv(records.operations())?, Some(("operations.prom", metrics)))
        }
        Plan::Application(plan) => (application_study_csv(plan, records.application())?, None),
        Plan::Desktops(plan) => (desktops_csv(plan, records.desktops())?, None),
        Plan::Tiles(plan) => (tiles_csv(plan, records.tiles())?, None),
        Plan::Network(_) | Plan::Platform(_) => (samples_csv(records.samples())?, None),
    };
    Ok(Documents { html: html(provenance, records, histograms), csv, more })
}

/// What is compared side by side; nothing of a run of something else.
fn sides(provenance: &Provenance) -> SidesPlan {
    provenance.plan.sides().unwrap_or_default()
}
