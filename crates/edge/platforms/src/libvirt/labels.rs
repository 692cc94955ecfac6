//! Whose domains and volumes are: their names begin with the label of a run.

use virtbench_lab::Label;

/// Words of a label.
const WORDS: usize = 6;

/// The label that a name begins with; nothing where nothing follows it.
pub(super) fn label_of(name: &str) -> Option<Label> {
    let (end, _) = name.match_indices('-').nth(WORDS - 1)?;
    Label::parse(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_made_is_known_by_its_name() {
        let label = Label::new();
        for name in ["7", "7.qcow2", "7-disk3.qcow2", "shared-kernel"] {
            assert_eq!(label_of(&format!("{label}-{name}")), Some(label.clone()), "{name}");
        }
        // The guest of another study is that study's own to remove.
        for name in [label.to_string(), "virtbench-a-b-c-d-e-f".into(), "my-vm".into(), format!("x{label}-7")]
        {
            assert_eq!(label_of(&name), None, "{name}");
        }
    }
}
