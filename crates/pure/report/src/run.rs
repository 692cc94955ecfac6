//! A run as every part of the report looks at it.

use virtbench_model::{Comparison, Side, compare};
use virtbench_record::{PointRecord, Provenance};

/// Which side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The reference: the host itself.
    Native,
    /// The virtual machine.
    Vm,
}

impl Which {
    /// Both, the reference first.
    pub(crate) const BOTH: [Self; 2] = [Self::Native, Self::Vm];

    /// Its name in figures and tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Vm => "VM",
        }
    }

    /// Where it measures, within a sentence.
    pub(crate) fn place(self) -> &'static str {
        match self {
            Self::Native => "natively",
            Self::Vm => "in the VM",
        }
    }

    /// This side of a point.
    pub(crate) fn side(self, point: &virtbench_model::ComparedPoint) -> &Side {
        match self {
            Self::Native => &point.reference,
            Self::Vm => &point.subject,
        }
    }
}

/// A run and what follows from it.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) provenance: &'a Provenance,
    pub(crate) records: &'a [PointRecord],
    pub(crate) comparison: Comparison,
}

impl<'a> Run<'a> {
    pub(crate) fn new(provenance: &'a Provenance, records: &'a [PointRecord]) -> Self {
        let mut run = Self { provenance, records, comparison: Comparison::default() };
        run.comparison = compare(
            records,
            run.environment(Which::Native),
            run.environment(Which::Vm),
            provenance.plan.seed(),
        );
        run
    }

    /// The name under which a side's records are kept: the plan names the reference first.
    pub(crate) fn environment(&self, which: Which) -> &'a str {
        let (index, usual) = match which {
            Which::Native => (0, "native"),
            Which::Vm => (1, "vm"),
        };
        self.provenance.plan.environments().get(index).map_or(usual, String::as_str)
    }

    /// Which side a record belongs to, if either.
    pub(crate) fn side_of(&self, record: &PointRecord) -> Option<Which> {
        Which::BOTH.into_iter().find(|which| self.environment(*which) == record.environment)
    }
}
