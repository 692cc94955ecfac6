//! Requests in flight whose clients have left: until they are done, they can land on whatever comes next.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy)]
struct Left {
    export: usize,
    in_flight: usize,
}

/// Connections that are over and have requests in flight, by the names of those connections.
#[derive(Debug, Default)]
pub(super) struct Departed(BTreeMap<u64, Left>);

impl Departed {
    /// A connection is over.
    pub(super) fn add(&mut self, name: u64, export: usize, in_flight: usize) {
        if in_flight > 0 {
            self.0.insert(name, Left { export, in_flight });
        }
    }

    /// A request of such a connection is done. Gives the export that it was of.
    pub(super) fn done(&mut self, name: u64) -> Option<usize> {
        let left = self.0.get_mut(&name)?;
        left.in_flight -= 1;
        let Left { export, in_flight } = *left;
        if in_flight == 0 {
            self.0.remove(&name);
        }
        Some(export)
    }

    /// Those of an export.
    pub(super) fn on_export(&self, export: usize) -> impl Iterator<Item = u64> {
        self.0.iter().filter(move |(_, left)| left.export == export).map(|(name, _)| *name)
    }

    /// Whether requests of this connection are in flight though it is over.
    pub(super) fn has(&self, name: u64) -> bool {
        self.0.contains_key(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_forgotten_with_its_last_request() {
        let mut departed = Departed::default();
        departed.add(1, 0, 2);
        departed.add(2, 1, 1);
        departed.add(3, 0, 0);
        assert_eq!(departed.on_export(0).collect::<Vec<_>>(), [1]);
        assert_eq!((departed.done(1), departed.has(1)), (Some(0), true));
        assert_eq!((departed.done(1), departed.has(1), departed.done(1)), (Some(0), false, None));
        assert_eq!(departed.on_export(1).collect::<Vec<_>>(), [2]);
    }
}
