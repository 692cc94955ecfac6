//! Configurations as they were asked for and as their guests found them.

use maud::{Markup, html};
use virtbench_record::{DeviceFacts, SetupFacts};
use virtbench_units::format_bytes;

use crate::format::shell_line;

/// A row for each configuration, with what was not honoured marked.
pub(crate) fn settings(setups: &[SetupFacts]) -> Markup {
    html! {
        p.hint { "What each guest's own kernel says of its disk. What it does not say is empty, never assumed." }
        div.scroll tabindex="0" role="region" aria-label="Settings as found in the guests" {
            table {
                thead { tr {
                    @for title in [
                        "configuration", "adapter", "backing", "asked for", "driver", "disk", "queues", "outstanding at most",
                        "scheduler", "write cache", "blocks", "largest request", "not honoured",
                    ] { th scope="col" { (title) } }
                } }
                tbody { @for setup in setups { (row(setup)) } }
            }
        }
        details {
            summary { "Command lines" }
            dl.facts {
                @for setup in setups {
                    dt { (setup.name) }
                    dd {
                        @for line in [&setup.server_command_line, &setup.command_line] {
                            @if !line.is_empty() { pre tabindex="0" { code { (shell_line(line)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn row(setup: &SetupFacts) -> Markup {
    let asked: Vec<String> = setup.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let backing = &setup.backing;
    html! {
        tr {
            td { strong { (setup.name) } }
            td { (setup.adapter) small { (setup.summary) } }
            td { (backing.name) small { (backing.description) "; " (backing.preparation) "; " (format_bytes(backing.allocated_bytes)) " allocated" } }
            td { (asked.join(", ")) }
            @match &setup.found {
                Some(found) => (device(found)),
                None => { td colspan="8" { "The guest has not booted." } }
            }
            td class=[(!setup.not_honoured.is_empty()).then_some("lower")] {
                @for item in &setup.not_honoured {
                    div { "✗ " (item.setting) ": " (item.asked) " asked for, " (item.found) " found" }
                }
            }
        }
    }
}

fn device(found: &DeviceFacts) -> Markup {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
    let medium = match found.rotational {
        Some(true) => "rotating",
        Some(false) => "not rotating",
        None => "",
    };
    let blocks = match (found.logical_block_bytes, found.physical_block_bytes) {
        (Some(logical), Some(physical)) => format!("{logical} / {physical} B"),
        (Some(one), None) | (None, Some(one)) => format!("{one} B"),
        (None, None) => String::new(),
    };
    html! {
        td { (text(&found.driver)) small { (text(&found.model)) } }
        td { (found.name) small { (medium) } }
        td.number { (number(found.queues)) }
        td.number {
            (number(found.outstanding()))
            @if let Some(requests) = found.nr_requests { small { "block layer " (requests) } }
        }
        td { (text(&found.scheduler)) }
        td { (text(&found.write_cache)) }
        td { (blocks) }
        td { (found.max_request_kib.map_or_else(String::new, |kib| format!("{kib} KiB"))) }
    }
}
