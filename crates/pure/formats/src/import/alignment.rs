//! Alignments that keep strides whole.

use virtbench_workload::Placement;

/// The coarsest alignment with which a placement's strides can be kept: other tools let a stride be
/// any multiple of a sector, whatever the block size.
pub(super) fn common_alignment(align_bytes: u64, placement: Placement) -> u64 {
    let (Placement::Strided { stride_bytes } | Placement::Backward { stride_bytes }) = placement else {
        return align_bytes;
    };
    let (mut larger, mut smaller) = (align_bytes, stride_bytes);
    while smaller > 0 {
        (larger, smaller) = (smaller, larger % smaller);
    }
    larger
}
