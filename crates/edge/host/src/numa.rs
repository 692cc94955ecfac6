//! Memory that was given on another node than that of the processor that wanted it.

use std::fs;

use virtbench_record::NumaPages;

/// The kernel's counts at one instant.
#[derive(Debug, Clone, Copy)]
pub struct NumaSample(NumaPages);

impl NumaSample {
    /// Reads `/proc/vmstat`; nothing where the kernel does not count by node.
    #[must_use]
    pub fn take() -> Option<Self> {
        parse(&fs::read_to_string("/proc/vmstat").ok()?).map(Self)
    }

    /// What was given from this sample to a `later` one.
    #[must_use]
    pub fn until(self, later: Self) -> NumaPages {
        let since = |of: fn(&NumaPages) -> u64| of(&later.0).saturating_sub(of(&self.0));
        NumaPages {
            local: since(|pages| pages.local),
            remote: since(|pages| pages.remote),
            migrated: since(|pages| pages.migrated),
        }
    }
}

fn parse(text: &str) -> Option<NumaPages> {
    let count = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    // Without balancing there are no migrations to count.
    Some(NumaPages {
        local: count("numa_local ")?,
        remote: count("numa_other ")?,
        migrated: count("numa_pages_migrated ").unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_and_held_against_later_ones() {
        let sample = |local: u64| {
            NumaSample(
                parse(&format!("numa_hit 9\nnuma_local {local}\nnuma_other 5\nnuma_pages_migrated 2\n"))
                    .unwrap(),
            )
        };
        assert_eq!(sample(10).until(sample(25)), NumaPages { local: 15, remote: 0, migrated: 0 });
        assert!(parse("nr_free_pages 1\n").is_none());
    }
}
