//! Where on this host a study runs its appliances, in every study that has such places.

/// Where on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Natively.
    Native,
    /// In a VM.
    Vm,
}

/// Reads `native` or `vm`, also as environments are written: `native:`. Nothing where it is neither.
pub fn place(text: &str) -> Option<Result<Place, String>> {
    match text.split_once(':').unwrap_or((text, "")) {
        ("native", "") => Some(Ok(Place::Native)),
        ("vm", "") => Some(Ok(Place::Vm)),
        (name @ ("native" | "vm"), rest) => Some(Err(format!(
            "{name}:{rest}: this study takes {name} without a folder; --target-dir names one where it has data"
        ))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_as_environments_are_or_by_name_alone() {
        assert_eq!(
            ["native", "native:", "vm", "vm:"].map(place),
            [Place::Native, Place::Native, Place::Vm, Place::Vm].map(|place| Some(Ok(place)))
        );
        assert!(
            place("native:/srv")
                .is_some_and(|wrong| wrong.is_err_and(|why| why.contains("without a folder")))
        );
        assert_eq!(
            ["", "natively", "existing", "ssh://host/srv", "vnc://desk1"].map(place),
            [const { None }; 5]
        );
    }
}
