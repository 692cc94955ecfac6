//! Whose the host's CPU use was ([ESX Adapters 2006]: all physical processors, summed; here also by process).

use maud::{Markup, html};
use virtbench_record::{
    GuestsState, HostUse, IdleBaseline, Measured, PointRecord, ProcessRole, ProcessUse, role_percent,
    unattributed_percent,
};

use super::Cell;

/// Roles in the order of the table, those of idle guests together.
const ROLES: [(&str, &[ProcessRole]); 4] = [
    ("QEMU of the measured guest", &[ProcessRole::MeasuredGuest]),
    ("servers of its blocks", &[ProcessRole::Backing]),
    ("idle guests and their servers", &[ProcessRole::IdleGuest, ProcessRole::IdleBacking]),
    ("virtbench", &[ProcessRole::Virtbench]),
];

/// The host, its parts by role, and the rest, in percent of one processor.
fn split(host: &HostUse, processes: &[ProcessUse]) -> Vec<f64> {
    let of = |roles: &[ProcessRole]| roles.iter().map(|role| role_percent(processes, *role)).sum::<f64>();
    let parts = ROLES.iter().map(|(_, roles)| of(roles));
    std::iter::once(host.cpu_percent).chain(parts).chain([unattributed_percent(host, processes)]).collect()
}

/// The mean of each column.
fn means(rows: &[Vec<f64>]) -> Option<Vec<f64>> {
    let columns = rows.first()?.len();
    let sum = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>();
    Some((0..columns).map(|column| sum(column) / rows.len() as f64).collect())
}

fn heads(first: &str) -> Markup {
    html! {
        thead { tr {
            th scope="col" { (first) }
            th scope="col" { "host in all " span.unit { "%" } }
            @for (title, _) in ROLES { th scope="col" { (title) " " span.unit { "%" } } }
            th scope="col" { "rest " span.unit { "%" } }
        } }
    }
}

/// While points were measured: a row for each configuration. Nothing where no process was told apart.
pub(crate) fn accounting(records: &[PointRecord], configurations: &[String]) -> Option<Markup> {
    let told = |measured: &&Measured| !measured.processes.is_empty();
    records.iter().filter_map(PointRecord::measured).any(|measured| told(&measured)).then_some(())?;
    let row = |name: &String| {
        let rows: Vec<Vec<f64>> = records
            .iter()
            .filter(|record| record.environment == *name)
            .filter_map(PointRecord::measured)
            .filter(told)
            .map(|measured| split(&measured.host, &measured.processes))
            .collect();
        means(&rows)
    };
    Some(html! {
        p.hint {
            "Means over all points, in percent of one processor. The host in all is what I/O per %CPU is reckoned \
             with. The rest is what no process accounts for: interrupts, threads of the kernel, everything else \
             that ran."
        }
        div.scroll tabindex="0" role="region" aria-label="CPU use while points were measured" {
            table {
                (heads("while measuring"))
                tbody {
                    @for name in configurations {
                        @if let Some(means) = row(name) { tr { th scope="row" { (name) } (numbers(&means)) } }
                    }
                }
            }
        }
    })
}

fn numbers(values: &[f64]) -> Markup {
    html! { @for value in values { (Cell::number(Some(*value)).markup()) } }
}

/// Without a load: a row for each baseline.
pub(crate) fn idle(baselines: &[IdleBaseline]) -> Markup {
    html! {
        p.hint {
            "The same without a load anywhere. Stopped is how guests wait while another is measured: what that \
             costs is in every figure above."
        }
        div.scroll tabindex="0" role="region" aria-label="CPU use of idle guests" {
            table {
                (heads("without a load"))
                tbody {
                    @for baseline in baselines {
                        tr {
                            th scope="row" {
                                (baseline.environments.len()) @match baseline.guests {
                                    GuestsState::Running => " guests running",
                                    GuestsState::Stopped => " guests stopped",
                                }
                            }
                            (numbers(&split(&baseline.host, &baseline.processes)))
                        }
                    }
                }
            }
        }
    }
}
