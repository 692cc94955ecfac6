//! What happens in a study, for programs that watch it: `--progress json`.

use serde_json::{Value, json};
use virtbench_record::GuestsState;
use virtbench_study::Event;

/// An event as an object; nothing for remarks, which all commands have.
pub fn json(event: &Event<'_>) -> Option<Value> {
    Some(match event {
        Event::Remark(_) => return None,
        Event::Opened(folder) => json!({ "event": "opened", "folder": folder.display().to_string() }),
        Event::Making { what, done, total } => {
            json!({ "event": "making", "what": what, "done": done, "total": total })
        }
        Event::Planned(estimate) => json!({
            "event": "planned",
            "measurements": estimate.measurements,
            "total_ns": estimate.total_ns,
            "is_bound": estimate.is_bound,
        }),
        Event::Doing(what) => json!({ "event": "doing", "what": what }),
        Event::Done { done, total } => json!({ "event": "done", "done": done, "total": total }),
        Event::Searched { done, most } => json!({ "event": "searched", "done": done, "most": most }),
        Event::Starting(name) => json!({ "event": "starting", "environment": name }),
        Event::Idling(state) => {
            let guests = if *state == GuestsState::Running { "running" } else { "stopped" };
            json!({ "event": "idling", "guests": guests })
        }
        Event::Measuring { done, what } => json!({ "event": "measuring", "done": done, "what": what }),
        Event::Recorded(host) => json!({ "event": "recorded", "host": host }),
        Event::Tried(trial) => json!({
            "event": "tried",
            "case": trial.case,
            "trial": trial.trial,
            "predicted": trial.predicted,
            "measured": trial.truth,
        }),
    })
}
