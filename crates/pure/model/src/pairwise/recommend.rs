//! Which few configurations to use for all that was measured.

use super::Analysis;
use super::group::Advice;

/// A configuration and the groups it is to be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Its index.
    pub configuration: usize,
    /// Indices of the groups.
    pub groups: Vec<usize>,
}

/// A few configurations that cover all groups of which [`Group::advice`](super::Group::advice) tells what to use, each by
/// one of its choices: the one that is a choice most often is taken first, of those that are so equally
/// often the earlier. They come in the order of the groups.
#[must_use]
pub fn recommend(analysis: &Analysis) -> Vec<Use> {
    let told = |index: &usize| matches!(analysis.advice(&analysis.groups[*index]), Advice::Use(_));
    let mut left: Vec<usize> = (0..analysis.groups.len()).filter(told).collect();
    let mut uses = Vec::new();
    while !left.is_empty() {
        let good = |configuration: usize, index: &usize| {
            let choices = analysis.advice(&analysis.groups[*index]).choices();
            choices.iter().any(|standing| standing.configuration == configuration)
        };
        let count = |configuration: usize| left.iter().filter(|index| good(configuration, index)).count();
        let Some(configuration) = (0..analysis.measurements.configurations.len())
            .rev()
            .max_by_key(|configuration| count(*configuration))
        else {
            break;
        };
        let (groups, rest): (Vec<usize>, Vec<usize>) =
            left.iter().partition(|index| good(configuration, index));
        if groups.is_empty() {
            break;
        }
        uses.push(Use { configuration, groups });
        left = rest;
    }
    uses.sort_by_key(|item| item.groups.first().copied());
    uses
}
